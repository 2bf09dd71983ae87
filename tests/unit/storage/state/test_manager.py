"""The log manager on real files with real logs: starts, stops, crashes, deletions and failing disks."""

from __future__ import annotations

import asyncio
import errno
import random
import shutil
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from uuid import UUID
from zlib import crc32

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Buffer, File, Files
from penstock.base.system import SystemClock, SystemFiles, SystemTasks
from penstock.base.types import TopicPartition
from penstock.records.builder import Record, build_batch
from penstock.records.validation import trust_batch
from penstock.storage.config import LogConfig
from penstock.storage.directories.log_directory import CLEAN_SHUTDOWN_FILE, LogDirectoryError
from penstock.storage.log import Log
from penstock.storage.manager.manager import LogManager, LogManagerSettings

TP = TopicPartition("orders", 0)
OTHER = TopicPartition("orders", 1)
TOPIC_ID = UUID("b8a3ee2c-3c0f-4bd8-9a0b-9d8f20ab4c11")
ELSE_ID = UUID("00000000-0000-4000-8000-000000000001")


class FaultyFiles(SystemFiles):
    """A disk that refuses writes, syncs and renames below some paths."""

    def __init__(self) -> None:
        self.broken: set[str] = set()
        self.syncs = 0

    def _check(self, path: str) -> None:
        if any(path.startswith(prefix) for prefix in self.broken):
            raise OSError(errno.EIO, "the disk is broken", path)

    def open(self, path: str, *, create: bool = True) -> File:
        self._check(path)
        return FaultyFile(self, path, create)

    def write_atomically(self, path: str, data: bytes) -> None:
        self._check(path)
        super().write_atomically(path, data)

    def rename(self, source: str, target: str) -> None:
        self._check(source)
        super().rename(source, target)

    def make_directory(self, path: str) -> None:
        self._check(path)
        super().make_directory(path)


class FaultyFile:
    def __init__(self, files: FaultyFiles, path: str, create: bool) -> None:
        self._files = files
        self._file = SystemFiles().open(path, create=create)
        self.path = path

    def fileno(self) -> int:
        return self._file.fileno()

    def size(self) -> int:
        return self._file.size()

    def append(self, data: Buffer) -> None:
        self._files._check(self.path)
        self._file.append(data)

    def read_at(self, position: int, length: int) -> bytes:
        return self._file.read_at(position, length)

    def truncate(self, size: int) -> None:
        self._file.truncate(size)

    def sync(self) -> None:
        self._files._check(self.path)
        self._files.syncs += 1
        self._file.sync()

    def close(self) -> None:
        self._file.close()


StartManager = Callable[..., Awaitable[LogManager]]


@pytest.fixture
async def tasks() -> AsyncIterator[SystemTasks]:
    tasks = SystemTasks(asyncio.get_running_loop(), threads=4)
    yield tasks
    await tasks.close()


@pytest.fixture
async def start(tmp_path: Path, tasks: SystemTasks) -> AsyncIterator[StartManager]:
    managers: list[LogManager] = []

    async def start_manager(
        *directories: Path,
        files: Files | None = None,
        config: LogConfig | None = None,
        settings: LogManagerSettings | None = None,
        metrics: Metrics | None = None,
    ) -> LogManager:
        manager = LogManager(
            [str(path) for path in directories or (tmp_path / "data",)],
            files=files or SystemFiles(),
            clock=SystemClock(),
            tasks=tasks,
            log_config_for=lambda topic: config or LogConfig(),
            node_id=1,
            settings=settings,
            metrics=metrics,
            rng=random.Random(3),
        )
        await manager.start()
        managers.append(manager)
        return manager

    yield start_manager
    for manager in managers:
        await manager.stop()


def append(log: Log, count: int = 1, *, timestamp: int | None = None) -> None:
    now_ms = SystemClock().time_ms()
    for _ in range(count):
        record = Record(timestamp=now_ms if timestamp is None else timestamp, key=None, value=b"v" * 50, headers=())
        log.append_as_leader(trust_batch(bytearray(build_batch([record]))), 0, now_ms)


def crash(manager: LogManager) -> None:
    """The process is gone: nothing is written any more, the lock is free."""
    manager._abandon()
    manager._is_started = False


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


async def test_an_empty_directory(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    assert manager.logs == []
    assert manager.get(TP) is None
    assert (tmp_path / "data" / "meta.properties").exists()
    assert len(manager.cluster_id) == 22


async def test_a_clean_stop_and_start(start: StartManager, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    data = tmp_path / "data"
    manager = await start()
    log = await manager.create(TP, TOPIC_ID)
    append(log, 5)
    log.set_high_watermark(4)
    await manager.stop(broker_epoch=9)
    assert (data / CLEAN_SHUTDOWN_FILE).read_text() == '{"version":0,"brokerEpoch":9}'
    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 0 5\n"
    assert (data / "replication-offset-checkpoint").read_text() == "0\n1\norders 0 4\n"
    assert (data / "log-start-offset-checkpoint").read_text() == "0\n0\n"
    assert (data / "orders-0" / "partition.metadata").exists()

    again = await start()
    assert not (data / CLEAN_SHUTDOWN_FILE).exists()
    reopened = again.get(TP)
    assert reopened is not None
    assert (reopened.log_end_offset, reopened.high_watermark, reopened.topic_id) == (5, 4, TOPIC_ID)
    assert again.cluster_id == manager.cluster_id
    assert "not closed cleanly" not in caplog.text
    reopened.check_invariants()


async def test_start_tells_what_it_found(start: StartManager, tmp_path: Path, tasks: SystemTasks) -> None:
    manager = await start()
    await manager.create(TP, TOPIC_ID)
    await manager.create(OTHER, TOPIC_ID)
    await manager.stop()
    (tmp_path / "data" / "orders-1" / "partition.metadata").unlink()
    again = LogManager(
        [str(tmp_path / "data")],
        files=SystemFiles(),
        clock=SystemClock(),
        tasks=tasks,
        log_config_for=lambda topic: LogConfig(),
        node_id=1,
    )
    found = {entry.topic_partition: entry for entry in await again.start()}
    assert {tp: entry.topic_id for tp, entry in found.items()} == {TP: TOPIC_ID, OTHER: None}
    assert found[TP].directory == str(tmp_path / "data")
    assert found[TP].log is again.get(TP)
    await again.stop()


async def test_a_crash_is_recovered_from(start: StartManager, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    manager = await start()
    log = await manager.create(TP, TOPIC_ID)
    append(log, 7)
    crash(manager)
    segment = tmp_path / "data" / "orders-0" / "00000000000000000000.log"
    with segment.open("ab") as file:
        file.write(b"torn batch")
    again = await start()
    recovered = again.get(TP)
    assert recovered is not None
    assert recovered.log_end_offset == 7
    assert "was not closed cleanly" in caplog.text
    recovered.check_invariants()


async def test_flushed_data_moves_the_recovery_point(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    log = await manager.create(TP, TOPIC_ID)
    append(log, 3)
    assert log.recovery_point == 0
    await manager.flush(log)
    assert log.recovery_point == 3
    await manager.checkpoint()
    checkpoint = tmp_path / "data" / "recovery-point-offset-checkpoint"
    assert checkpoint.read_text() == "0\n1\norders 0 3\n"
    assert (tmp_path / "data" / "orders-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n0 0\n"


@pytest.mark.parametrize("content", [b"", b"garbage", b"0\n9\norders 0 1\n", b"\xff\xff"])
async def test_broken_checkpoints_are_ignored(start: StartManager, tmp_path: Path, content: bytes) -> None:
    manager = await start()
    append(await manager.create(TP, TOPIC_ID), 4)
    await manager.stop()
    for name in ("recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"):
        (tmp_path / "data" / name).write_bytes(content)
    (tmp_path / "data" / CLEAN_SHUTDOWN_FILE).unlink()
    log = (await start()).get(TP)
    assert log is not None
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark) == (0, 4, 0)


async def test_other_things_in_a_log_directory_are_left_alone(start: StartManager, tmp_path: Path) -> None:
    data = tmp_path / "data"
    for name in (
        "lost+found",
        "__cluster_metadata-0",
        f"orders-5.{'a' * 32}-stray",
        f"orders-6.{'b' * 32}-future",
        "orders-07",
    ):
        (data / name).mkdir(parents=True)
        (data / name / "00000000000000000000.log").write_bytes(b"not ours")
    (data / "bootstrap.checkpoint").write_bytes(b"x")
    before = names(data)
    manager = await start()
    assert manager.logs == []
    await manager.stop()
    assert set(before) <= set(names(data))
    assert (data / "__cluster_metadata-0" / "00000000000000000000.log").read_bytes() == b"not ours"


async def test_leftovers_of_deletions_are_removed(start: StartManager, tmp_path: Path) -> None:
    leftover = tmp_path / "data" / f"orders-0.{'c' * 32}-delete"
    leftover.mkdir(parents=True)
    (leftover / "00000000000000000000.log").write_bytes(b"x")
    manager = await start()
    await manager.stop()
    assert not leftover.exists()


# -- Creation and deletion ---------------------------------------------------------------------------------------------


async def test_concurrent_creations_make_one_log(start: StartManager) -> None:
    manager = await start()
    created = await asyncio.gather(*(manager.create(TP, TOPIC_ID) for _ in range(5)))
    assert len({id(log) for log in created}) == 1
    assert await manager.create(TP, TOPIC_ID) is created[0]


async def test_a_log_of_another_topic_id_is_refused(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    await manager.create(TP, TOPIC_ID)
    with pytest.raises(KafkaError) as refused:
        await manager.create(TP, ELSE_ID)
    assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID
    shutil.copytree(tmp_path / "data" / "orders-0", tmp_path / "data" / "orders-1")
    with pytest.raises(KafkaError) as refused:
        await manager.create(OTHER, ELSE_ID)
    assert refused.value.code is ErrorCode.INCONSISTENT_TOPIC_ID


async def test_a_log_without_an_id_takes_the_one_of_its_topic(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    append(await manager.create(TP, TOPIC_ID), 2)
    await manager.stop()
    metadata = tmp_path / "data" / "orders-0" / "partition.metadata"
    metadata.unlink()
    again = await start()
    log = await again.create(TP, ELSE_ID, is_new=False)
    assert (log.topic_id, log.log_end_offset) == (ELSE_ID, 2)
    assert "AAAAAAAAQACAAAAAAAAAAQ" in metadata.read_text()


async def test_new_logs_go_where_the_fewest_are(start: StartManager, tmp_path: Path) -> None:
    manager = await start(tmp_path / "a", tmp_path / "b")
    await asyncio.gather(*(manager.create(TopicPartition("orders", index), TOPIC_ID) for index in range(6)))
    for directory in ("a", "b"):
        assert len([name for name in names(tmp_path / directory) if name.startswith("orders-")]) == 3


async def test_deletion_renames_now_and_unlinks_later(start: StartManager, tmp_path: Path) -> None:
    data = tmp_path / "data"
    manager = await start(config=LogConfig(file_delete_delay_ms=50))
    append(await manager.create(TP, TOPIC_ID), 3)
    await manager.checkpoint()
    await manager.delete(TP)
    assert manager.get(TP) is None
    renamed = [name for name in names(data) if name.startswith("orders")]
    assert len(renamed) == 1
    assert renamed[0].startswith("orders-0.")
    assert renamed[0].endswith("-delete")
    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n0\n"
    again = await manager.create(TP, ELSE_ID)
    assert again.log_end_offset == 0
    await asyncio.sleep(0.3)
    assert [name for name in names(data) if name.startswith("orders")] == ["orders-0"]
    await manager.delete(OTHER)


async def test_a_stop_unlinks_what_waits(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    await manager.create(TP, TOPIC_ID)
    await manager.delete(TP)
    await manager.stop()
    assert not [name for name in names(tmp_path / "data") if name.startswith("orders")]


async def test_a_stray_log_is_set_aside_and_kept(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    append(await manager.create(TP, TOPIC_ID))
    await manager.mark_stray(TP)
    assert manager.get(TP) is None
    await manager.stop()
    (stray,) = [path for path in (tmp_path / "data").iterdir() if path.name.startswith("orders")]
    assert stray.name.endswith("-stray")
    assert (stray / "00000000000000000000.log").stat().st_size > 0
    assert (await start()).logs == []


async def test_metrics_come_and_go_with_their_logs(start: StartManager) -> None:
    metrics = Metrics()
    manager = await start(metrics=metrics)
    log = await manager.create(TP, TOPIC_ID)
    append(log, 2)
    await manager.flush(log)
    text = metrics.render_prometheus()
    assert f'kafka_log_log_size{{partition="0",topic="orders"}} {log.size_bytes}\n' in text
    assert 'kafka_log_log_logendoffset{partition="0",topic="orders"} 2\n' in text
    assert "kafka_log_logmanager_offlinelogdirectorycount 0\n" in text
    assert "kafka_log_logflushstats_logflushrateandtimems_count 1\n" in text
    await manager.delete(TP)
    assert "kafka_log_log_size{" not in metrics.render_prometheus()


# -- Duties ------------------------------------------------------------------------------------------------------------


async def test_retention_takes_old_segments(start: StartManager, tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=1000, retention_ms=60_000, file_delete_delay_ms=20)
    manager = await start(config=config)
    log = await manager.create(TP, TOPIC_ID)
    append(log, 40, timestamp=1_000_000)
    append(log, 5)
    log.set_high_watermark(log.log_end_offset)
    count = len(log.segments)
    await manager.run_retention()
    assert len(log.segments) < count
    assert log.log_start_offset > 0
    directory = tmp_path / "data" / "orders-0"
    assert [name for name in names(directory) if name.endswith(".deleted")]
    await asyncio.sleep(0.3)
    assert not [name for name in names(directory) if name.endswith(".deleted")]
    log.check_invariants()


async def test_a_moved_start_survives_a_crash(start: StartManager, tmp_path: Path) -> None:
    manager = await start()
    log = await manager.create(TP, TOPIC_ID)
    append(log, 10)
    log.set_high_watermark(10)
    log.delete_records_before(6)
    await manager.checkpoint()
    assert (tmp_path / "data" / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 6\n"
    crash(manager)
    reopened = (await start()).get(TP)
    assert reopened is not None
    assert (reopened.log_start_offset, reopened.log_end_offset, reopened.high_watermark) == (6, 10, 10)


async def test_a_roll_flushes_what_is_before_it(start: StartManager) -> None:
    manager = await start(config=LogConfig(segment_bytes=1000))
    log = await manager.create(TP, TOPIC_ID)
    append(log, 20)
    for _ in range(200):
        await asyncio.sleep(0.01)
        if log.recovery_point >= log.active_base_offset:
            break
    assert log.recovery_point == log.active_base_offset > 0


async def test_duties_run_by_themselves(start: StartManager, tmp_path: Path) -> None:
    settings = LogManagerSettings(
        high_watermark_checkpoint_interval_ms=10,
        flush_scheduler_interval_ms=10,
        retention_check_interval_ms=10,
        recovery_point_checkpoint_interval_ms=10,
        start_offset_checkpoint_interval_ms=10,
        producer_id_expiration_check_interval_ms=10,
        initial_task_delay_ms=0,
    )
    manager = await start(config=LogConfig(flush_ms=1), settings=settings)
    log = await manager.create(TP, TOPIC_ID)
    manager.start_background()
    append(log, 3)
    log.set_high_watermark(3)
    checkpoint = tmp_path / "data" / "replication-offset-checkpoint"
    for _ in range(300):
        await asyncio.sleep(0.01)
        if log.recovery_point == 3 and checkpoint.exists() and checkpoint.read_text() == "0\n1\norders 0 3\n":
            break
    assert log.recovery_point == 3
    assert checkpoint.read_text() == "0\n1\norders 0 3\n"


async def test_many_flushes_of_one_log_share_syncs(start: StartManager) -> None:
    files = FaultyFiles()
    manager = await start(files=files)
    log = await manager.create(TP, TOPIC_ID)
    append(log)
    before = files.syncs
    await manager.flush(log)
    per_flush = files.syncs - before
    waiting = []
    for _ in range(30):
        append(log)
        waiting.append(asyncio.ensure_future(manager.flush(log)))
    await asyncio.gather(*waiting)
    assert log.recovery_point == 31
    assert files.syncs - before <= 4 * per_flush


# -- Refusals and failures ---------------------------------------------------------------------------------------------


async def test_a_second_manager_is_refused(start: StartManager, tmp_path: Path) -> None:
    await start()
    with pytest.raises(LogDirectoryError, match=f"{tmp_path / 'data'} is in use"):
        await start()


async def test_a_partition_in_two_directories_is_refused(start: StartManager, tmp_path: Path) -> None:
    manager = await start(tmp_path / "a", tmp_path / "b")
    await manager.create(TP, TOPIC_ID)
    await manager.stop()
    home, other = ("a", "b") if (tmp_path / "a" / "orders-0").exists() else ("b", "a")
    shutil.copytree(tmp_path / home / "orders-0", tmp_path / other / "orders-0")
    with pytest.raises(LogDirectoryError, match="orders-0 is both in"):
        await start(tmp_path / "a", tmp_path / "b")
    shutil.rmtree(tmp_path / other / "orders-0")
    assert (await start(tmp_path / "a", tmp_path / "b")).get(TP) is not None


async def start_two(start: StartManager, tmp_path: Path, files: Files) -> tuple[LogManager, Log, Log]:
    manager = await start(tmp_path / "a", tmp_path / "b", files=files)
    for index in range(4):
        await manager.create(TopicPartition("orders", index), TOPIC_ID)
    by_home = {manager.directory_of(log.topic_partition).path: log for log in manager.logs}
    return manager, by_home[str(tmp_path / "a")], by_home[str(tmp_path / "b")]


async def test_a_failing_disk_takes_only_its_own_logs(start: StartManager, tmp_path: Path) -> None:
    files = FaultyFiles()
    metrics_seen: list[tuple[str, int]] = []
    manager, lost, kept = await start_two(start, tmp_path, files)
    manager.add_offline_listener(lambda path, partitions: metrics_seen.append((path, len(partitions))))
    append(lost)
    append(kept)
    files.broken.add(str(tmp_path / "a"))
    with pytest.raises(KafkaError) as refused:
        await manager.flush(lost)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert metrics_seen == [(str(tmp_path / "a"), 2)]
    assert manager.is_offline(lost.topic_partition)
    with pytest.raises(KafkaError) as refused:
        manager.get(lost.topic_partition)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    with pytest.raises(KafkaError):
        append(lost)
    await manager.flush(kept)
    append(kept)
    fresh = await manager.create(TopicPartition("fresh", 0), ELSE_ID)
    assert fresh.directory.startswith(str(tmp_path / "b"))
    with pytest.raises(KafkaError):
        await manager.create(TopicPartition("known", 0), ELSE_ID, is_new=False)
    await manager.stop()
    assert not (tmp_path / "a" / CLEAN_SHUTDOWN_FILE).exists()
    assert (tmp_path / "b" / CLEAN_SHUTDOWN_FILE).exists()


async def test_a_checkpoint_that_cannot_be_written_fails_its_directory(start: StartManager, tmp_path: Path) -> None:
    files = FaultyFiles()
    manager, lost, kept = await start_two(start, tmp_path, files)
    files.broken.add(str(tmp_path / "a" / "replication"))
    await manager.checkpoint()
    assert manager.is_offline(lost.topic_partition)
    assert manager.get(kept.topic_partition) is kept


async def test_a_log_that_cannot_be_created_goes_to_another_directory(start: StartManager, tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = await start(tmp_path / "a", tmp_path / "b", files=files)
    files.broken.add(str(tmp_path / "a"))
    log = await manager.create(TP, TOPIC_ID)
    assert log.directory.startswith(str(tmp_path / "b"))
    assert manager.offline_directories == [str(tmp_path / "a")]
    files.broken.add(str(tmp_path / "b"))
    with pytest.raises(KafkaError) as refused:
        await manager.create(OTHER, TOPIC_ID)
    assert refused.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert manager.live_directories == []


async def test_a_disk_that_fails_while_loading(start: StartManager, tmp_path: Path) -> None:
    manager, lost, kept = await start_two(start, tmp_path, SystemFiles())
    append(lost)
    await manager.stop()
    files = FaultyFiles()
    files.broken.add(f"{tmp_path / 'a'}/orders")
    again = await start(tmp_path / "a", tmp_path / "b", files=files)
    assert again.offline_directories == [str(tmp_path / "a")]
    assert again.is_offline(lost.topic_partition)
    assert again.get(kept.topic_partition) is not None


async def test_a_failed_close_leaves_no_clean_marker(start: StartManager, tmp_path: Path) -> None:
    files = FaultyFiles()
    manager = await start(files=files)
    append(await manager.create(TP, TOPIC_ID))
    files.broken.add(f"{tmp_path / 'data'}/orders-0")
    await manager.stop()
    assert not (tmp_path / "data" / CLEAN_SHUTDOWN_FILE).exists()
    log = (await start()).get(TP)
    assert log is not None
    assert log.log_end_offset == 1


async def test_a_log_that_cannot_be_opened_is_offline_alone_and_keeps_its_checkpoints(
    start: StartManager, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    manager = await start()
    for topic_partition in (TP, OTHER):
        append(await manager.create(topic_partition, TOPIC_ID), 3)
    await manager.stop()
    segment = data / "orders-0" / "00000000000000000000.log"
    # A message of the format before batches: CRC-32, then magic 1, attributes, timestamp, no key, a value.
    body = struct.pack(">bbqii", 1, 0, 1_000_000, -1, 80) + b"v" * 80
    segment.write_bytes(struct.pack(">qiI", 0, len(body) + 4, crc32(body)) + body)
    (data / CLEAN_SHUTDOWN_FILE).unlink()
    (data / "log-start-offset-checkpoint").write_text("0\n1\norders 0 2\n")
    (data / "recovery-point-offset-checkpoint").write_text("0\n0\n")

    again = await start()
    assert again.is_offline(TP)
    assert again.offline_directories == []
    assert again.get(OTHER) is not None
    await again.stop()
    assert not (data / CLEAN_SHUTDOWN_FILE).exists()
    assert (data / "log-start-offset-checkpoint").read_text() == "0\n1\norders 0 2\n"
    assert (data / "recovery-point-offset-checkpoint").read_text() == "0\n1\norders 1 3\n"


async def test_a_directory_put_there_meanwhile_is_checked_like_any_other(start: StartManager, tmp_path: Path) -> None:
    data = tmp_path / "data"
    manager = await start()
    log = await manager.create(TP, TOPIC_ID)
    append(log, 3)
    shutil.copytree(data / "orders-0", data / "orders-1")
    segment = data / "orders-1" / "00000000000000000000.log"
    content = bytearray(segment.read_bytes())
    content[len(content) // 2] ^= 0xFF
    segment.write_bytes(content)
    # The damage is in the second of three batches, where only a full check finds it.
    copied = await manager.create(OTHER, TOPIC_ID)
    assert (copied.log_end_offset, copied.size_bytes) == (1, log.size_bytes // 3)
    copied.check_invariants()
