"""Which segments retention takes, and what happens to their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.storage.config import LogConfig
from penstock.storage.log import Log
from tests.unit.storage.core.building import START_MS, append, offsets, open_log, read_all, reopen

HOUR_MS = 3_600_000


def segments_of_ten(directory: Path, count: int, **config: object) -> Log:
    """Segments of ten records each, an hour apart, and an empty active one."""
    log = open_log(directory, config=LogConfig(**config))  # type: ignore[arg-type]
    for number in range(count):
        append(log, *[b"v"] * 10, timestamps=START_MS + number * HOUR_MS)
        log.roll()
    log.set_high_watermark(log.log_end_offset)
    return log


def deleted(log: Log, now_ms: int = START_MS) -> list[int]:
    return [segment.base_offset for segment in log.delete_old_segments(now_ms)]


def test_by_time_of_the_newest_record(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 5, retention_ms=HOUR_MS)
    assert deleted(log, START_MS + HOUR_MS) == []
    assert deleted(log, START_MS + 2 * HOUR_MS + 1) == [0, 10]
    assert (log.log_start_offset, offsets(read_all(log))) == (20, list(range(20, 50)))
    log.check_invariants()


def test_by_size_keeps_at_least_the_size(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 5, retention_ms=-1)
    one = log.segments[0].size
    log.update_config(LogConfig(retention_ms=-1, retention_bytes=2 * one + 1))
    assert deleted(log) == [0, 10]
    log.update_config(LogConfig(retention_ms=-1, retention_bytes=2 * one))
    assert deleted(log) == [20]


def test_the_active_segment_rolls_when_it_is_too_old(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(retention_ms=HOUR_MS))
    append(log, b"a", b"b")
    log.set_high_watermark(2)
    assert deleted(log, START_MS + HOUR_MS + 1) == [0]
    assert (log.log_start_offset, log.log_end_offset, log.active_base_offset) == (2, 2, 2)
    assert deleted(log, START_MS + 9 * HOUR_MS) == []
    log.check_invariants()


def test_nothing_above_the_high_watermark_goes(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 5, retention_ms=0)
    log.set_high_watermark(25)
    assert deleted(log, START_MS + 99 * HOUR_MS) == [0, 10]


def test_a_compacted_topic_is_only_trimmed_by_its_start(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 5, retention_ms=0, retention_bytes=0, cleanup_delete=False, cleanup_compact=True)
    assert deleted(log, START_MS + 99 * HOUR_MS) == []
    assert log.delete_records_before(35) == 35
    assert deleted(log) == [0, 10, 20]
    assert log.log_start_offset == 35


def test_unlimited_keeps_everything(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 3, retention_ms=-1, retention_bytes=-1)
    assert deleted(log, START_MS + 10**6 * HOUR_MS) == []


def test_delete_records_moves_the_start_and_keeps_it(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 3, retention_ms=-1)
    assert log.delete_records_before(15) == 15
    assert log.delete_records_before(5) == 15
    with pytest.raises(KafkaError) as caught:
        log.delete_records_before(31)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert log.epochs.earliest_entry == (0, 15)
    log = reopen(log, tmp_path, clean=True)
    assert offsets(read_all(log)) == list(range(15, 30))


def test_files_are_renamed_first_and_unlinked_later(tmp_path: Path) -> None:
    log = segments_of_ten(tmp_path, 2, retention_ms=-1)
    log.delete_records_before(20)
    gone = log.delete_old_segments(START_MS)
    names = {path.name for path in (tmp_path / "orders-3").iterdir()}
    zero, ten = f"{0:020d}", f"{10:020d}"
    assert {f"{zero}.log.deleted", f"{zero}.index.deleted", f"{ten}.timeindex.deleted"} <= names
    assert f"{ten}.snapshot.deleted" in names
    for segment in gone:
        segment.remove_files()
        segment.remove_files()
    left = {path.name for path in (tmp_path / "orders-3").iterdir()}
    assert not any(name.startswith((zero, ten)) for name in left)


def test_records_without_timestamps_go_by_the_age_of_the_file(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(retention_ms=HOUR_MS))
    append(log, b"a", timestamps=-1)
    log.set_high_watermark(1)
    written_ms = log.segments[0].largest_timestamp
    assert written_ms > START_MS
    assert deleted(log, written_ms + HOUR_MS) == []
    assert deleted(log, written_ms + HOUR_MS + 1) == [0]
