"""Reading: which bytes for which offset, and slices that outlive what they came from."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import iter_batches
from penstock.records.builder import ControlType
from penstock.storage.log import Log
from penstock.storage.segments.segment_list import OPEN_INACTIVE_MAX
from penstock.storage.segments.slices import FileSlice
from tests.unit.storage.core.building import (
    START_MS,
    append,
    append_marker,
    offsets,
    open_log,
    read_all,
    reopen,
    small_segments,
)


def fetch(
    log: Log, offset: int, max_bytes: int = 1 << 20, *, up_to: int | None = None, min_one: bool = True
) -> FileSlice | None:
    end = log.log_end_offset if up_to is None else up_to
    return log.read(offset, max_bytes, up_to_offset=end, min_one_batch=min_one)


def batches(file_slice: FileSlice | None) -> list[int]:
    """The base offsets of the whole batches in a slice, which is released."""
    if file_slice is None:
        return []
    data = file_slice.read()
    file_slice.release()
    return [header.base_offset for _, header in iter_batches(data)]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Forty batches of two records over several segments."""
    log = open_log(tmp_path, config=small_segments())
    for number in range(40):
        append(log, b"%d" % number, b"x" * 20)
    assert len(log.segments) > 3
    return log


def test_an_offset_inside_a_batch_returns_the_whole_batch(log: Log) -> None:
    for offset in range(80):
        assert batches(fetch(log, offset))[0] == offset // 2 * 2


def test_out_of_range(log: Log) -> None:
    log.set_high_watermark(80)
    log.delete_records_before(7)
    for offset in (-1, 6, 81):
        with pytest.raises(KafkaError) as caught:
            fetch(log, offset)
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert fetch(log, 80) is None
    assert batches(fetch(log, 7))[0] == 6


def test_reads_end_before_the_bound(log: Log) -> None:
    base = log.segments[1].base_offset
    for up_to in range(base, base + 6):
        found = batches(fetch(log, base, up_to=up_to))
        assert found == list(range(base, up_to - 1, 2))
    assert fetch(log, base, up_to=base) is None
    assert fetch(log, base + 4, up_to=base) is None
    # A bound in a later segment ends the read with its own.
    assert batches(fetch(log, 0, up_to=79)) == list(range(0, base, 2))


def test_max_bytes_may_cut_the_last_batch_but_never_the_first(log: Log) -> None:
    whole = fetch(log, 0)
    assert whole is not None
    size = len(whole.read()) // len(batches(whole))
    cut = fetch(log, 0, size + 10)
    assert cut is not None
    assert (cut.length, batches(cut)) == (size + 10, [0])
    first = fetch(log, 0, 1)
    assert first is not None
    assert (first.length, batches(first)) == (size, [0])
    assert fetch(log, 0, size - 1, min_one=False) is None
    assert batches(fetch(log, 0, size, min_one=False)) == [0]


@pytest.mark.parametrize("max_bytes", [1, 100, 250, 1 << 20])
def test_a_consumer_gets_everything_once(log: Log, max_bytes: int) -> None:
    assert offsets(read_all(log, max_bytes=max_bytes)) == list(range(80))


def test_a_caught_up_consumer_follows_across_rolls(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments())
    for number in range(60):
        assert append(log, b"v" * 40).first_offset == number
        assert batches(fetch(log, number)) == [number]
        assert fetch(log, number + 1) is None
    assert len(log.segments) > 3


def test_a_gap_is_read_over(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments())
    for _ in range(40):
        append(log, b"v" * 40)
    missing = log.segments[1]
    after = log.segments[2].base_offset
    Path(missing.path).unlink()
    log = reopen(log, tmp_path, clean=False)
    assert batches(fetch(log, missing.base_offset))[0] == after
    assert offsets(read_all(log)) == [*range(missing.base_offset), *range(after, 40)]


def test_descriptors_of_inactive_segments_are_bounded(log: Log) -> None:
    read_all(log)
    log.roll()
    held = [fetch(log, segment.base_offset) for segment in log.segments[:-1]]
    assert sum(segment.is_open for segment in log.segments) <= OPEN_INACTIVE_MAX + 1
    for file_slice, segment in zip(held, log.segments, strict=False):
        assert file_slice is not None
        assert batches(file_slice)[0] == segment.base_offset


def test_near_end_is_only_what_was_just_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"old")
    log = reopen(log, tmp_path, clean=True)
    append(log, b"new")
    old, new = fetch(log, 0), fetch(log, 1)
    assert old is not None
    assert not old.near_end
    assert new is not None
    assert new.near_end


def test_a_slice_survives_the_deletion_of_its_segment(log: Log) -> None:
    held = fetch(log, 0)
    assert held is not None
    content = held.read()
    log.set_high_watermark(80)
    log.delete_records_before(log.segments[2].base_offset)
    for segment in log.delete_old_segments(START_MS):
        segment.remove_files()
    assert held.valid
    assert held.read() == content
    file = held.file
    held.release()
    held.release()
    assert file.fileno() == -1
    assert _is_invalid(held)


def test_a_slice_turns_invalid_when_the_file_is_cut_under_it(log: Log) -> None:
    base = log.active_base_offset
    before, under = fetch(log, base, up_to=base + 2), fetch(log, base)
    assert before is not None
    assert under is not None
    log.truncate_to(base + 2)
    append(log, b"another", b"content")
    assert before.valid
    assert not under.valid
    fresh = fetch(log, base)
    assert fresh is not None
    assert fresh.valid


def test_slices_of_a_deleted_log_stay_readable(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    held = fetch(log, 0)
    assert held is not None
    log.rename_for_deletion(str(tmp_path / "orders-3.0123-delete"))
    assert Path(log.segments[0].path).exists()
    assert held.valid
    assert len(held.read()) == held.length
    with pytest.raises(KafkaError, match="deleted"):
        fetch(log, 0)


def test_aborted_transactions_and_the_last_stable_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments(segment_bytes=400))
    transactional = {"producer_epoch": 0, "transactional": True}
    append(log, b"plain")
    append(log, b"a" * 50, producer_id=1, base_sequence=0, **transactional)
    append(log, b"b" * 50, producer_id=2, base_sequence=0, **transactional)
    log.set_high_watermark(3)
    assert log.last_stable_offset == 1
    assert append_marker(log, ControlType.ABORT, producer_id=1).first_offset == 3
    log.set_high_watermark(log.log_end_offset)
    assert log.last_stable_offset == 2
    append(log, b"c" * 50, producer_id=2, base_sequence=1, **transactional)
    append_marker(log, ControlType.COMMIT, producer_id=2)
    log.set_high_watermark(5)
    assert log.last_stable_offset == 2
    log.set_high_watermark(6)
    assert log.last_stable_offset == 6
    assert len(log.segments) > 1
    (aborted,) = log.aborted_transactions(0, 6)
    assert aborted == (1, 1, 3, 2)
    assert log.aborted_transactions(4, 6) == []
    whole = fetch(log, 0)
    assert whole is not None
    assert log.upper_bound_offset(whole) >= log.segments[1].base_offset
    for clean in (True, False):
        log = reopen(log, tmp_path, clean=clean)
        assert log.aborted_transactions(0, 6) == [aborted]
        log.set_high_watermark(6)
        assert log.last_stable_offset == 6
    log.check_invariants()


def test_an_open_transaction_is_remembered_over_a_crash(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"plain")
    append(log, b"a", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    log = reopen(log, tmp_path, clean=False)
    log.set_high_watermark(2)
    assert log.last_stable_offset == 1
    with pytest.raises(KafkaError) as caught:
        append_marker(log, ControlType.ABORT, producer_id=1, producer_epoch=-1)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH


def _is_invalid(file_slice: FileSlice) -> bool:
    return not file_slice.valid
