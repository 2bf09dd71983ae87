"""All logs of a broker: opening them at the start, creating, deleting, flushing, checkpointing, closing them.

State changes happen on the loop; what blocks (opening, syncing, unlinking, checkpoint files) runs in workers that
share nothing with it. A disk that fails takes its own logs offline, and the others go on: asking for such a log
raises KAFKA_STORAGE_ERROR.

Start: take and identify the directories, open every log in parallel, adopt the checkpointed high watermarks. Stop:
end the duties, close every log (which makes it durable), write the checkpoints, and last of all the clean-shutdown
marker, so that a stop that was cut short is not taken for a clean one.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import posixpath
import random
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

from penstock.base import metric_names
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock, Files, Tasks
from penstock.base.types import TopicPartition, new_uuid
from penstock.storage.config import LogConfig
from penstock.storage.directories.directory_set import DirectorySet
from penstock.storage.directories.log_directory import LogDirectory, LogDirectoryError
from penstock.storage.directories.names import DirectoryKind, directory_name, suffixed_name
from penstock.storage.directories.partition_metadata import read_partition_metadata, write_partition_metadata
from penstock.storage.log import Log
from penstock.storage.manager.checkpointing import ALL_KINDS, START_OFFSETS, Checkpointer
from penstock.storage.manager.deferred_removal import DeferredRemoval
from penstock.storage.manager.describing import DirectoryDescription
from penstock.storage.manager.duties import LogDuties
from penstock.storage.manager.flusher import LogFlusher
from penstock.storage.manager.loading import DirectoryContents, FoundLog, LogOpener, OpenedLogs, scan_directory
from penstock.storage.manager.registry import LogRegistry, OfflineListener, check_topic_id
from penstock.storage.manager.settings import LogManagerSettings as LogManagerSettings
from penstock.storage.manager.shared_runs import SharedRuns
from penstock.storage.segments.segment import Segment

CLOSED_ONE_BY_ONE_MAX = 64
"""More logs than this are made durable together at a stop, by syncing the whole file system."""

log = logging.getLogger(__name__)

_NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EMFILE, errno.ENFILE})
"""No space or no descriptor is left: that passes, and what is in the directory is as good as before."""


class LogManager:
    def __init__(
        self,
        dirs: Sequence[str],
        *,
        files: Files,
        clock: Clock,
        tasks: Tasks,
        log_config_for: Callable[[str], LogConfig],
        node_id: int,
        cluster_id: str | None = None,
        settings: LogManagerSettings | None = None,
        metrics: Metrics | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._files = files
        self._clock = clock
        self._tasks = tasks
        self._log_config_for = log_config_for
        self._node_id = node_id
        self._wanted_cluster_id = cluster_id
        self._settings = settings or LogManagerSettings()
        self._rng = rng or random.SystemRandom()
        metrics = metrics or Metrics()
        runs = SharedRuns(tasks)
        self._runs = runs
        self._directories = DirectorySet(dirs, files)
        self._registry = LogRegistry(self._directories, metrics)
        self._flusher = LogFlusher(
            self._registry,
            runs,
            clock=clock,
            tasks=tasks,
            times=metrics.histogram(metric_names.LOG_FLUSHES, scale=1000),
        )
        self._checkpointer = Checkpointer(self._directories, self._registry, runs, tasks)
        self._removal = DeferredRemoval(tasks)
        self._placing: dict[TopicPartition, LogDirectory] = {}
        self._duties = LogDuties(
            self._settings,
            registry=self._registry,
            flusher=self._flusher,
            checkpointer=self._checkpointer,
            removal=self._removal,
            clock=clock,
            tasks=tasks,
        )
        self._is_taken = False
        self._is_started = False

    # -- Questions -------------------------------------------------------------------------------------------------

    def get(self, topic_partition: TopicPartition) -> Log | None:
        """The log of a partition, None when there is none. KAFKA_STORAGE_ERROR when it is offline."""
        return self._registry.get(topic_partition)

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return self._registry.is_offline(topic_partition)

    @property
    def cluster_id(self) -> str:
        """Of the cluster that the directories belong to; known after `start`."""
        return self._directories.cluster_id

    @property
    def logs(self) -> list[Log]:
        return list(self._registry.logs.values())

    @property
    def live_directories(self) -> list[LogDirectory]:
        return list(self._directories)

    @property
    def offline_directories(self) -> list[str]:
        return [directory.path for directory in self._directories.offline]

    @property
    def offline_partitions(self) -> list[TopicPartition]:
        return self._registry.offline_partitions

    def directory_of(self, topic_partition: TopicPartition) -> LogDirectory:
        """The log directory that a log lives in; KeyError when it is not here."""
        return self._registry.home(topic_partition)

    async def describe_directories(self) -> list[DirectoryDescription]:
        """Every directory, the offline ones too."""
        everything = [*self._directories, *self._directories.offline]
        return list(await asyncio.gather(*map(self._describe, everything)))

    async def _describe(self, directory: LogDirectory) -> DirectoryDescription:
        path = posixpath.abspath(directory.path)
        try:
            total, usable = await self._tasks.run_blocking(lambda: self._files.space(directory.path))
        except OSError as error:
            # Whoever writes to it finds out by himself whether it still works; a question takes nothing offline.
            log.warning("%s cannot be described: %s", directory, error)
            return DirectoryDescription(path=path, offline=True)
        if directory.is_offline:
            return DirectoryDescription(path=path, offline=True)
        logs = self._registry.in_directory(directory)
        return DirectoryDescription(path=path, logs=logs, total_bytes=total, usable_bytes=usable)

    def add_offline_listener(self, listener: OfflineListener) -> None:
        self._registry.add_listener(listener)

    # -- Start -----------------------------------------------------------------------------------------------------

    async def start(self) -> list[FoundLog]:
        """Open every log in the directories, which are taken first unless they have been."""
        started = self._clock.monotonic()
        if not self._is_taken:
            await self.take_directories()
        try:
            for result in await asyncio.gather(*map(self._load, self._directories), return_exceptions=True):
                if result is not None:
                    raise result
            if not self.live_directories:
                raise LogDirectoryError(f"every log directory failed: {', '.join(self.offline_directories)}")
            self._is_started = True
        finally:
            if not self._is_started:
                self._abandon()
        elapsed_ms = int((self._clock.monotonic() - started) * 1000)
        log.info("opened %d logs in %d ms", len(self._registry.logs), elapsed_ms)
        return [
            FoundLog(topic_partition=tp, topic_id=opened.topic_id, log=opened, directory=self.directory_of(tp).path)
            for tp, opened in self._registry.logs.items()
        ]

    async def take_directories(self) -> None:
        """Lock the directories and check whose they are: from here on nobody else writes to them.

        LogDirectoryError: they must not be used.
        """
        await self._tasks.run_blocking(
            lambda: self._directories.take(node_id=self._node_id, cluster_id=self._wanted_cluster_id, rng=self._rng)
        )
        self._is_taken = True

    @property
    def was_clean(self) -> bool:
        """Whether the last stop closed every log; known after `start`."""
        return all(directory.was_clean for directory in self._directories)

    def _abandon(self) -> None:
        for opened in self.logs:
            opened.fail("the start of the broker failed")
        self._directories.release()

    async def _load(self, directory: LogDirectory) -> None:
        contents = DirectoryContents()
        try:
            contents = await self._tasks.run_blocking(lambda: scan_directory(directory, self._files))
            opened = await self._open_logs(directory, contents)
        except OSError as error:
            self._registry.fail_directory(directory, str(error))
            for topic_partition in contents.partitions:
                self._registry.set_offline(topic_partition, f"log directory {directory} failed: {error}")
            return
        self._adopt(directory, contents, opened)

    async def _open_logs(self, directory: LogDirectory, contents: DirectoryContents) -> OpenedLogs:
        if contents.partitions and not directory.was_clean:
            log.info("%s was not closed cleanly: its %d logs are checked", directory, len(contents.partitions))
        opener = LogOpener(
            directory,
            contents,
            files=self._files,
            clock=self._clock,
            tasks=self._tasks,
            log_config_for=self._log_config_for,
            producer_expiration_ms=self._settings.producer_id_expiration_ms,
        )
        return await opener.open_all(parallel=self._settings.recovery_threads_per_data_dir)

    def _adopt(self, directory: LogDirectory, contents: DirectoryContents, opened: OpenedLogs) -> None:
        for loaded in opened.logs:
            try:
                self._add(loaded, directory)
            except LogDirectoryError:
                for other in opened.logs:
                    other.fail("there is another copy of a partition")
                raise
            loaded.set_high_watermark(contents.high_watermarks.get(loaded.topic_partition, 0))
        for topic_partition, reason in opened.failures.items():
            self._registry.set_offline(topic_partition, reason)
        contents.partitions = list(opened.failures)
        self._checkpointer.keep_entries(directory, contents)
        directory.is_loaded = not opened.failures
        for path in contents.leftovers:
            self._remove_later(path, 0)

    def _add(self, opened: Log, directory: LogDirectory) -> None:
        self._registry.add(opened, directory)
        opened.on_roll = self._flusher.flush_after_roll

    # -- Creation and deletion -------------------------------------------------------------------------------------

    async def create(self, topic_partition: TopicPartition, topic_id: UUID, *, is_new: bool = True) -> Log:
        """The log of a partition, made if it is not there, in the directory with the fewest logs.

        `is_new=False` says that the partition was here before: then it may be in a directory that is offline, and no
        second one is made beside it.
        """
        found = self.get(topic_partition)
        if found is not None:
            await self.assign_topic_id(topic_partition, topic_id)
            return found
        if not is_new and self._directories.offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"The log of {topic_partition} may be in {', '.join(self.offline_directories)}, which is offline",
            )
        await self._runs.run(("create", topic_partition), lambda: self._create(topic_partition, topic_id))
        created = self.get(topic_partition)
        if created is None:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {topic_partition} was deleted meanwhile")
        check_topic_id(topic_partition, created.topic_id, topic_id)
        return created

    async def _create(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        if topic_partition in self._registry.logs:
            return
        for directory in self._registry.fewest_first(also=self._placing.values()):
            self._placing[topic_partition] = directory
            try:
                created = await self._tasks.run_blocking(self._creation_in(directory, topic_partition, topic_id))
            except OSError as error:
                if error.errno in _NO_ROOM:
                    raise KafkaError(
                        ErrorCode.KAFKA_STORAGE_ERROR, f"{topic_partition} cannot be created: {error}"
                    ) from error
                self._registry.fail_directory(directory, f"{topic_partition} cannot be created: {error}")
                continue
            finally:
                del self._placing[topic_partition]
            if not directory.is_offline:
                self._add(created, directory)
                return
            created.fail("its log directory failed meanwhile")
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"No log directory is left to create {topic_partition} in")

    def _creation_in(
        self, directory: LogDirectory, topic_partition: TopicPartition, topic_id: UUID
    ) -> Callable[[], Log]:
        config = self._log_config_for(topic_partition.topic)
        path = f"{directory.path}/{directory_name(topic_partition)}"

        def create() -> Log:
            # It may have been put there while the broker ran: then it is checked like any log that was found.
            existed = self._files.is_directory(path)
            if existed:
                check_topic_id(topic_partition, read_partition_metadata(path, self._files), topic_id)
            self._files.make_directory(path)
            write_partition_metadata(path, topic_id, self._files)
            created = Log.open(
                directory=path,
                topic_partition=topic_partition,
                topic_id=topic_id,
                config=config,
                files=self._files,
                clock=self._clock,
                clean=not existed,
                producer_expiration_ms=self._settings.producer_id_expiration_ms,
            )
            self._files.sync_directory(directory.path)
            return created

        return create

    async def assign_topic_id(self, topic_partition: TopicPartition, topic_id: UUID) -> None:
        """Give a log that has none its topic id. INCONSISTENT_TOPIC_ID when it has another one."""
        found = self._registry.logs[topic_partition]
        check_topic_id(topic_partition, found.topic_id, topic_id)
        if found.topic_id is not None:
            return
        path = found.directory
        try:
            await self._tasks.run_blocking(lambda: write_partition_metadata(path, topic_id, self._files))
        except OSError as error:
            self._registry.fail_directory(self.directory_of(topic_partition), f"its files cannot be written: {error}")
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{path} cannot be written: {error}") from error
        found.topic_id = topic_id

    async def delete(self, topic_partition: TopicPartition) -> None:
        """Take a log away for good: its directory is renamed now and unlinked after `file.delete.delay.ms`."""
        removed = await self._set_aside(topic_partition, DirectoryKind.DELETE)
        if removed is not None:
            log.info("the log of %s is renamed to %s and will be deleted", topic_partition, removed.directory)
            self._remove_later(removed.directory, removed.config.file_delete_delay_ms)

    async def mark_stray(self, topic_partition: TopicPartition) -> None:
        """Take a log out of service that the cluster does not know here, but keep its files for a person to judge."""
        removed = await self._set_aside(topic_partition, DirectoryKind.STRAY)
        if removed is not None:
            log.warning("the log of %s does not belong here and is renamed to %s", topic_partition, removed.directory)

    async def _set_aside(self, topic_partition: TopicPartition, kind: DirectoryKind) -> Log | None:
        found = self.get(topic_partition)
        if found is None:
            return None
        directory = self.directory_of(topic_partition)
        self._registry.remove(topic_partition)
        name = suffixed_name(topic_partition, kind, new_uuid(self._rng))
        try:
            found.rename_for_deletion(f"{directory.path}/{name}")
            await self._tasks.run_blocking(lambda: self._files.sync_directory(directory.path))
        except FileNotFoundError:
            log.warning("the directory of %s was gone already", topic_partition)
            found = None
        except OSError as error:
            self._registry.fail_directory(directory, f"{topic_partition} cannot be renamed: {error}")
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {topic_partition} cannot be renamed: {error}"
            ) from error
        # A later log of the same name must not start with the offsets of this one.
        await self._checkpointer.write_directory(directory, *ALL_KINDS)
        return found

    def _remove_later(self, path: str, delay_ms: int) -> None:
        self._removal.schedule(delay_ms, lambda: self._files.remove_tree(path), path)

    def fail_directory(self, path: str, reason: str) -> None:
        """Take a log directory out of service after an error of its disk."""
        for directory in self._directories:
            if directory.path == path:
                self._registry.fail_directory(directory, reason)

    def update_settings(self, settings: LogManagerSettings) -> None:
        """The broker's configuration has changed. Intervals of duties that run already stay as they are."""
        self._settings = settings
        for found in self.logs:
            found.producers.set_expiration_ms(settings.producer_id_expiration_ms)

    # -- Duties ----------------------------------------------------------------------------------------------------

    def start_background(self) -> None:
        """Begin the periodic duties."""
        self._duties.start()

    async def run_retention(self) -> None:
        """Roll what is old enough, and take out the segments that retention lets go."""
        await self._duties.run_retention()

    async def checkpoint(self) -> None:
        """Write all checkpoints now."""
        await self._checkpointer.write(*ALL_KINDS)

    async def flush(self, found: Log, up_to_offset: int | None = None) -> None:
        """Return when the log is durable up to an offset, by default its present end. Requests share a sync."""
        await self._flusher.flush(found, up_to_offset)

    async def trim(self, found: Log) -> None:
        """Make a start that `Log.delete_records_before` has moved durable, and take out the segments before it."""
        topic_partition = found.topic_partition
        await self._checkpointer.write_directory(self.directory_of(topic_partition), START_OFFSETS)
        # The disk may have failed while the file was written, or the log may have been deleted.
        if self.get(topic_partition) is found:
            self.remove_segments(found, found.delete_old_segments(self._clock.time_ms()))

    def remove_segments(self, found: Log, removed: Iterable[Segment]) -> None:
        """Unlink segments that have left a log (by DeleteRecords or truncation) after `file.delete.delay.ms`."""
        self._duties.remove_segments(found, removed)

    # -- Stop ------------------------------------------------------------------------------------------------------

    async def stop(self, *, broker_epoch: int = -1) -> None:
        """Close everything cleanly. Nothing may be appended any more."""
        if not self._is_started:
            self._directories.release()
            return
        self._is_started = False
        await self._duties.stop()
        await self._runs.settle()
        await self._removal.finish()
        await asyncio.gather(*(self._close_directory(directory, broker_epoch) for directory in self._directories))
        self._directories.release()
        log.info("closed %d logs", len(self._registry.logs))

    async def _close_directory(self, directory: LogDirectory, broker_epoch: int) -> None:
        remaining = self._registry.in_directory(directory)
        parallel = self._settings.recovery_threads_per_data_dir
        try:
            # One by one, every log costs several waits for the disk; thousands of them would take half a minute.
            together = len(remaining) > CLOSED_ONE_BY_ONE_MAX and await self._sync_file_system(directory)
            closings = (self._close_some(remaining, sync=not together) for _ in range(parallel))
            for result in await asyncio.gather(*closings, return_exceptions=True):
                if result is not None:
                    raise result
            if together:
                await self._sync_file_system(directory)
            await self._checkpointer.write_directory(directory, *ALL_KINDS)
            if directory.is_loaded and not directory.is_offline:
                await self._tasks.run_blocking(lambda: directory.write_clean_shutdown_marker(broker_epoch))
        except OSError as error:
            self._registry.fail_directory(directory, f"it cannot be closed: {error}")

    async def _sync_file_system(self, directory: LogDirectory) -> bool:
        return await self._tasks.run_blocking(lambda: self._files.sync_file_system(directory.path))

    async def _close_some(self, remaining: list[Log], *, sync: bool) -> None:
        while remaining:
            await self._tasks.run_blocking(partial(remaining.pop().close, sync=sync))
