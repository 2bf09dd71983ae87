"""Finding records by timestamp, with timestamps in any order."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.records.batch import TimestampType
from penstock.records.compression import Codec
from penstock.storage.log import Log
from tests.unit.storage.core.building import (
    append,
    batch_of,
    open_log,
    reopen,
    scratch_directory,
    small_segments,
)

stamps = st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=60)


def first_reaching(records: list[int], timestamp: int, start: int) -> tuple[int, int, int] | None:
    found = [(stamp, offset, 0) for offset, stamp in enumerate(records) if stamp >= timestamp and offset >= start]
    return found[0] if found else None


def check_lookups(log: Log, records: list[int], start: int) -> None:
    for timestamp in range(-1, 33):
        assert log.offset_for_timestamp(timestamp) == first_reaching(records, timestamp, start), timestamp
    largest = log.offset_of_max_timestamp()
    if records:
        assert largest == (max(records), records.index(max(records)), 0)
    else:
        assert largest is None


@settings(max_examples=60, deadline=None)
@given(batches=stamps, codec=st.sampled_from(list(Codec)), start=st.integers(0, 60), truncated=st.integers(0, 200))
def test_the_first_record_that_reaches_the_timestamp(
    batches: list[list[int]], codec: Codec, start: int, truncated: int
) -> None:
    with scratch_directory() as directory:
        log = open_log(directory, config=small_segments(segment_bytes=1500))
        for batch in batches:
            append(log, *[b"v" * 15] * len(batch), timestamps=batch, codec=codec)
        records = [stamp for batch in batches for stamp in batch]
        check_lookups(log, records, 0)
        log.set_high_watermark(log.log_end_offset)
        start = min(start, log.log_end_offset)
        log.delete_records_before(start)
        for timestamp in range(-1, 33):
            assert log.offset_for_timestamp(timestamp) == first_reaching(records, timestamp, start)
        for clean in (True, False):
            log = reopen(log, directory, clean=clean, log_start_offset=0)
            check_lookups(log, records, 0)
        # Truncation takes index entries away, and then the log goes on from there.
        log.truncate_to(truncated)
        while records and len(records) > truncated:
            records = records[: -len(batches.pop())]
        if len(records) == log.log_end_offset:
            append(log, b"later", timestamps=17)
            records.append(17)
            check_lookups(log, records, 0)
            log.check_invariants()
        log.fail("done")


def test_append_time_belongs_to_every_record(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = batch_of([b"a", b"b"], timestamps=[3, 4], timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=50)
    log.append_as_leader(batch, 2, 0)
    assert log.offset_for_timestamp(5) == (50, 0, 2)
    assert log.offset_of_max_timestamp() == (50, 0, 2)


def test_the_ends_of_the_log(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.earliest() == (-1, 0, -1)
    assert log.latest(0) == (-1, 0, -1)
    append(log, b"a", leader_epoch=3)
    append(log, b"b", leader_epoch=5)
    log.set_high_watermark(1)
    assert log.earliest() == (-1, 0, 3)
    assert log.latest(log.high_watermark) == (-1, 1, 5)


def test_records_without_timestamps_are_found_by_none(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a", timestamps=-1)
    assert log.offset_for_timestamp(0) is None
    assert log.offset_of_max_timestamp() is None


@pytest.mark.parametrize("batch_count", [200, 2000])
def test_a_lookup_reads_little_whatever_the_size(tmp_path: Path, batch_count: int) -> None:
    """Flat timestamps leave one time entry for the whole segment; the search must not scan from there."""
    log = open_log(tmp_path, config=small_segments(segment_bytes=1 << 20, segment_index_bytes=1 << 16))
    append(log, b"first", timestamps=10)
    for _ in range(batch_count):
        append(log, b"v" * 50, timestamps=5)
    append(log, b"last", timestamps=20)
    file = log.segments[0].open_file().file
    reads: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> object:
            return getattr(file, name)

        def read_at(self, position: int, length: int) -> bytes:
            reads.append(length)
            return file.read_at(position, length)

    log.segments[0].open_file().file = Counting()  # type: ignore[assignment]
    assert log.offset_for_timestamp(11) == (20, batch_count + 1, 0)
    assert sum(reads) < 12_000
