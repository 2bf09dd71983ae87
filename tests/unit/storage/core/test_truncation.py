"""Cutting the end of a log off."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.storage.log import Log
from tests.unit.storage.core.building import append, offsets, open_log, read_all, reopen, small_segments


@pytest.fixture
def log(tmp_path: Path) -> Log:
    """Forty batches of two records, a new leader epoch every ten."""
    log = open_log(tmp_path, config=small_segments())
    for number in range(40):
        append(log, b"v" * 20, b"w" * 20, leader_epoch=number // 10, timestamps=[number, 100 - number])
    log.set_high_watermark(80)
    return log


@pytest.mark.parametrize("offset", range(0, 80, 7))
def test_everything_from_the_offset_on_goes(log: Log, offset: int) -> None:
    for segment in log.truncate_to(offset):
        segment.remove_files()
    assert log.log_end_offset == log.high_watermark == offset
    assert offsets(read_all(log)) == list(range(offset // 2 * 2))
    log.check_invariants()
    assert append(log, b"next", leader_epoch=9).first_offset == offset
    assert offsets(read_all(log))[-1] == offset
    log.check_invariants()


def test_at_the_end_nothing_goes_but_an_unused_epoch(log: Log) -> None:
    log.epochs.assign(7, 80)
    assert log.truncate_to(80) == []
    assert (log.log_end_offset, log.latest_epoch) == (80, 3)


def test_epochs_and_recovery_point_follow(log: Log) -> None:
    plan = log.flush_plan()
    assert plan is not None
    log.flushed(plan())
    log.truncate_to(30)
    assert (log.latest_epoch, log.recovery_point) == (1, 30)


def test_below_the_first_segment_the_log_starts_anew(log: Log) -> None:
    log.delete_records_before(log.segments[2].base_offset)
    for segment in log.delete_old_segments(0):
        segment.remove_files()
    log.truncate_to(4)
    assert (log.log_start_offset, log.log_end_offset, log.size_bytes) == (4, 4, 0)
    log.check_invariants()


def test_fully_and_again_from_the_same_offset(log: Log, tmp_path: Path) -> None:
    for segment in log.truncate_fully_and_start_at(0):
        segment.remove_files()
    assert (log.log_start_offset, log.log_end_offset, log.latest_epoch) == (0, 0, None)
    append(log, b"new", leader_epoch=4)
    log.check_invariants()
    log = reopen(log, tmp_path, clean=True)
    assert [record.value for record in read_all(log)] == [b"new"]
    log.truncate_fully_and_start_at(500, log_start_offset=490)
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (490, 500, 500)
