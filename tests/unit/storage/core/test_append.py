"""Appending: offsets, epochs, rolling, duplicates, failing disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import OffsetAndEpoch
from penstock.records.batch import TimestampType
from penstock.storage.config import LogConfig
from tests.unit.storage.core.building import (
    START_MS,
    ManualClock,
    append,
    batch_of,
    offsets,
    open_log,
    read_all,
    reopen,
    small_segments,
)
from tests.unit.storage.core.faulty_files import FaultyFiles

DAY_MS = 86_400_000


def test_offsets_and_epoch_are_set_in_place(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert append(log, b"a", b"b", leader_epoch=4) == (0, 1, -1, 0, False)
    validated = batch_of([b"c"])
    assert log.append_as_leader(validated, 5, START_MS)[:2] == (2, 2)
    assert validated.buffer[:8] == (2).to_bytes(8, "big")
    assert validated.buffer[12:16] == (5).to_bytes(4, "big")
    assert [(record.offset, record.value) for record in read_all(log)] == [(0, b"a"), (1, b"b"), (2, b"c")]
    assert log.latest_epoch == 5
    assert log.end_offset_for_epoch(4) == OffsetAndEpoch(2, 4)
    assert log.end_offset_for_epoch(5) == OffsetAndEpoch(3, 5)
    assert log.end_offset_for_epoch(6) is None
    log.check_invariants()


def test_log_append_time_is_answered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    batch = batch_of([b"a"], timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=START_MS + 5)
    assert log.append_as_leader(batch, 0, START_MS).log_append_time == START_MS + 5


def test_rolls_before_a_batch_that_would_exceed_the_segment(tmp_path: Path) -> None:
    size = len(batch_of([b"x" * 100]).buffer)
    log = open_log(tmp_path, config=LogConfig(segment_bytes=2 * size))
    for _ in range(5):
        append(log, b"x" * 100)
    assert [segment.base_offset for segment in log.segments] == [0, 2, 4]
    log.check_invariants()


def test_a_batch_larger_than_a_segment_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments())
    append(log, b"a")
    with pytest.raises(KafkaError) as caught:
        append(log, b"x" * 1000)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 1


def test_rolls_by_the_age_of_the_first_batch_in_record_time(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_ms=DAY_MS))
    append(log, timestamps=START_MS - 10 * DAY_MS)
    # The clock says ten days, the records say none: old data that is copied in does not roll at every batch.
    append(log, timestamps=START_MS - 10 * DAY_MS + 5)
    append(log, timestamps=START_MS - 9 * DAY_MS)
    assert len(log.segments) == 1
    append(log, timestamps=START_MS - 9 * DAY_MS + 1)
    assert [segment.base_offset for segment in log.segments] == [0, 3]


def test_rolls_by_the_clock_when_records_have_no_timestamps(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_ms=DAY_MS))
    append(log, timestamps=-1)
    append(log, timestamps=-1, now_ms=START_MS + DAY_MS)
    assert len(log.segments) == 1
    append(log, timestamps=-1, now_ms=START_MS + DAY_MS + 1)
    assert len(log.segments) == 2


def test_jitter_rolls_earlier(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_ms=DAY_MS, segment_jitter_ms=DAY_MS))
    jitter_ms = log.segments[0].jitter_ms
    assert 0 < jitter_ms < DAY_MS
    append(log, timestamps=START_MS)
    append(log, timestamps=START_MS + DAY_MS - jitter_ms)
    assert len(log.segments) == 1
    append(log, timestamps=START_MS + DAY_MS - jitter_ms + 1)
    assert len(log.segments) == 2


def test_rolls_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(index_interval_bytes=0, segment_index_bytes=40))
    for number in range(12):
        append(log, timestamps=START_MS + number)
    # Three time entries fit, one slot is for the forced one; the first batch of a segment needs none.
    assert [segment.base_offset for segment in log.segments] == [0, 3, 6, 9]
    log.check_invariants()


def test_rolls_when_a_relative_offset_would_not_fit(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    far = 2**31 + 5
    log.append_as_follower(batch_of([b"b"], base_offset=far, leader_epoch=0).buffer)
    assert [segment.base_offset for segment in log.segments] == [0, far]
    assert offsets(read_all(log)) == [0, far]
    log.check_invariants()


def test_maybe_roll_by_time_rolls_an_idle_segment_once(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=LogConfig(segment_ms=DAY_MS))
    assert not log.maybe_roll_by_time(START_MS + 2 * DAY_MS)
    append(log)
    assert not log.maybe_roll_by_time(START_MS + DAY_MS)
    assert log.maybe_roll_by_time(START_MS + DAY_MS + 1)
    assert not log.maybe_roll_by_time(START_MS + 9 * DAY_MS)


def test_rolling_an_empty_segment_does_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    rolled: list[int] = []
    log.on_roll = lambda rolled_log: rolled.append(rolled_log.active_base_offset)
    log.roll()
    append(log, b"a", b"b")
    log.roll()
    log.roll()
    assert rolled == [2]
    assert log.producers.snapshot_offsets == [2]


def test_follower_keeps_offsets_and_drops_a_partial_batch(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments())
    batches = [batch_of([b"v" * 50] * 2, base_offset=2 * n, leader_epoch=n // 10).buffer for n in range(20)]
    data = b"".join(batches)
    info = log.append_as_follower(memoryview(data[:-1]))
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (0, 37, 38)
    assert log.latest_epoch == 1
    assert log.end_offset_for_epoch(0) == OffsetAndEpoch(20, 0)
    log.append_as_follower(memoryview(batches[-1]))
    assert offsets(read_all(log)) == list(range(40))
    assert len(log.segments) > 2
    log.check_invariants()


def test_follower_refuses_what_it_has_and_what_is_damaged(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = batch_of([b"a", b"b"], base_offset=0, leader_epoch=0).buffer
    log.append_as_follower(first)
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(first)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    damaged = batch_of([b"c"], base_offset=2, leader_epoch=0).buffer
    damaged[-1] ^= 1
    with pytest.raises(KafkaError) as caught:
        log.append_as_follower(damaged)
    assert caught.value.code is ErrorCode.CORRUPT_MESSAGE
    assert log.log_end_offset == 2


def test_a_duplicate_is_answered_with_its_first_offsets(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"other")
    sequence = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0}
    assert append(log, b"a", b"b", **sequence) == (1, 2, -1, 0, False)
    append(log, b"c", producer_id=7, producer_epoch=0, base_sequence=2)
    assert append(log, b"a", b"b", **sequence) == (1, 2, START_MS, 0, True)
    assert log.log_end_offset == 4


@pytest.mark.parametrize("clean", [True, False])
def test_idempotence_survives_a_restart(tmp_path: Path, clean: bool) -> None:
    log = open_log(tmp_path, config=small_segments())
    for sequence in range(40):
        append(log, b"v" * 30, producer_id=7, producer_epoch=1, base_sequence=sequence)
    log = reopen(log, tmp_path, clean=clean)
    assert append(log, b"v" * 30, producer_id=7, producer_epoch=1, base_sequence=39).duplicate
    with pytest.raises(KafkaError) as caught:
        append(log, b"v", producer_id=7, producer_epoch=1, base_sequence=41)
    assert caught.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    with pytest.raises(KafkaError) as caught:
        append(log, b"v", producer_id=7, producer_epoch=0, base_sequence=0)
    assert caught.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    assert append(log, b"v", producer_id=7, producer_epoch=1, base_sequence=40)[:2] == (40, 40)
    log.check_invariants()


def test_idempotence_survives_truncation(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments())
    for sequence in range(40):
        append(log, b"v" * 30, producer_id=7, producer_epoch=1, base_sequence=sequence)
    log.truncate_to(25)
    assert append(log, b"v" * 30, producer_id=7, producer_epoch=1, base_sequence=24).duplicate
    assert not append(log, b"v" * 30, producer_id=7, producer_epoch=1, base_sequence=25).duplicate
    log.check_invariants()


@pytest.mark.parametrize("room", [0, 1, 60, 61, 100])
def test_a_failed_write_leaves_nothing_behind(tmp_path: Path, room: int) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files, config=LogConfig(index_interval_bytes=0))
    append(log, b"a", leader_epoch=1)
    append(log, b"b", leader_epoch=1)
    files.room = room
    with pytest.raises(KafkaError) as caught:
        append(
            log, b"c" * 50, leader_epoch=2, timestamps=START_MS + 9, producer_id=7, producer_epoch=0, base_sequence=0
        )
    assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert (log.log_end_offset, log.latest_epoch) == (2, 1)
    log.check_invariants()
    files.room = None
    # The sequence was not taken: the retry is no duplicate.
    assert append(log, b"c", producer_id=7, producer_epoch=0, base_sequence=0, leader_epoch=2)[:2] == (2, 2)
    assert [record.value for record in read_all(log)] == [b"a", b"b", b"c"]
    log.check_invariants()


def test_an_index_that_finds_no_room_fails_the_append(tmp_path: Path) -> None:
    """Without a reservation the store into the map would kill the process."""
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    append(log, b"a" * 5000)
    files.maps_are_full = True
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            append(log, b"b", timestamps=START_MS + 1)
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        log.check_invariants()
    files.maps_are_full = False
    append(log, b"b", timestamps=START_MS + 1)
    assert log.segments[0].offset_index.entries == 1
    log.check_invariants()


def test_a_failed_first_write_leaves_an_empty_segment(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    files.room = 10
    with pytest.raises(KafkaError):
        append(log, b"a")
    log.check_invariants()
    assert log.segments[0].first_timestamp is None


def test_a_log_that_cannot_be_cut_back_refuses_everything(tmp_path: Path) -> None:
    files = FaultyFiles()
    log = open_log(tmp_path, files=files)
    append(log, b"a")
    files.room, files.truncation_fails = 10, True
    for _ in range(2):
        with pytest.raises(KafkaError) as caught:
            append(log, b"b")
        assert caught.value.code is ErrorCode.KAFKA_STORAGE_ERROR
        files.room, files.truncation_fails = None, False
    with pytest.raises(KafkaError):
        log.read(0, 100, up_to_offset=1, min_one_batch=True)
    log.fail("as a broker does then")
    again = open_log(tmp_path)
    assert offsets(read_all(again)) == [0]


def test_a_closed_log_refuses(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    append(log, b"a")
    log.close()
    log.close()
    with pytest.raises(KafkaError, match="closed"):
        append(log, b"b")


def test_flush_moves_the_recovery_point(tmp_path: Path) -> None:
    clock = ManualClock()
    log = open_log(tmp_path, clock=clock, config=small_segments())
    assert log.flush_plan() is None
    for _ in range(30):
        append(log, b"v" * 30)
    assert log.unflushed_messages == 30
    inactive = log.flush_plan(log.active_base_offset)
    assert inactive is not None
    log.flushed(inactive())
    assert log.recovery_point == log.active_base_offset
    plan = log.flush_plan()
    assert plan is not None
    clock.now_ms += 5
    log.flushed(plan())
    assert (log.recovery_point, log.unflushed_messages, log.last_flush_ms) == (30, 0, START_MS + 5)


def test_a_flush_does_not_vouch_for_what_was_truncated_meanwhile(tmp_path: Path) -> None:
    log = open_log(tmp_path, config=small_segments())
    for _ in range(30):
        append(log, b"v" * 30)
    plan = log.flush_plan()
    assert plan is not None
    for segment in log.truncate_to(5):
        segment.remove_files()
    for _ in range(30):
        append(log, b"w" * 30)
    log.flushed(plan())
    assert log.recovery_point == 5
