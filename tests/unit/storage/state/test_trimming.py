"""The start of a log that DeleteRecords has moved: durable at once, and only as far as the disk allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.storage.config import LogConfig
from penstock.storage.log import Log
from tests.unit.storage.state.test_manager import (
    TOPIC_ID,
    TP,
    FaultyFiles,
    StartManager,
    append,
    crash,
    start,
    tasks,
)

__all__ = ["start", "tasks"]


async def filled(manager: object, count: int = 10) -> Log:
    log: Log = await manager.create(TP, TOPIC_ID)  # type: ignore[attr-defined]
    append(log, count)
    log.set_high_watermark(count)
    return log


async def test_a_crash_right_after_it(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    log = await filled(manager)
    log.delete_records_before(4)
    await manager.trim(log)
    assert (tmp_path / "data" / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 4\n"
    crash(manager)
    again = (await start()).get(TP)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (4, 10)
    again.check_invariants()


async def test_segments_before_it_leave_the_log(start: StartManager, tmp_path: Path) -> None:
    manager = await start(config=LogConfig(segment_bytes=300))
    log = await filled(manager, 20)
    segments = len(log.segments)
    log.delete_records_before(15)
    await manager.trim(log)
    assert len(log.segments) < segments
    assert log.segments[0].base_offset <= 15
    crash(manager)
    again = (await start(config=LogConfig(segment_bytes=300))).get(TP)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (15, 20)
    again.check_invariants()


async def test_everything(start: StartManager) -> None:
    manager = await start()
    log = await filled(manager)
    log.delete_records_before(10)
    await manager.trim(log)
    crash(manager)
    again = (await start()).get(TP)
    assert again is not None
    assert (again.log_start_offset, again.log_end_offset) == (10, 10)
    append(again)
    assert again.log_end_offset == 11


async def test_a_disk_that_cannot_remember_it(start: StartManager, tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = await start(files=files)
    log = await filled(manager)
    files.broken.add(str(tmp_path / "data" / "log-start-offset-checkpoint"))
    log.delete_records_before(4)
    with pytest.raises(KafkaError) as refused:
        await manager.trim(log)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.offline_directories == [str(tmp_path / "data")]


async def test_directories_are_described(start: StartManager, tmp_path: Path) -> None:
    files = FaultyFiles()
    paths = [tmp_path / "one", tmp_path / "two"]
    manager = await start(*paths, files=files)
    log = await filled(manager)
    manager.fail_directory(str(tmp_path / "two"), "broken")
    one, two = await manager.describe_directories()
    assert (one.path, one.offline, list(one.logs)) == (str(paths[0]), False, [log])
    assert one.total_bytes >= one.usable_bytes > 0
    assert (two.path, two.offline, list(two.logs)) == (str(paths[1]), True, [])
