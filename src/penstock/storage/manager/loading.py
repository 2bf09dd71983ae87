"""What a log directory holds at the start, and the opening of its logs in parallel.

Everything that does not look like a partition is left alone: `lost+found`, other programs' files, the quorum log of a
KRaft Kafka. Directories renamed for deletion are handed back to be removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from uuid import UUID

from penstock.base.errors import KafkaError
from penstock.base.internal_topics import CLUSTER_METADATA
from penstock.base.ports import Clock, Files, Tasks, Timer
from penstock.base.types import TopicPartition
from penstock.storage.config import LogConfig
from penstock.storage.directories.log_directory import LogDirectory
from penstock.storage.directories.names import (
    DirectoryKind,
    directory_name,
    parse_directory_name,
)
from penstock.storage.directories.partition_metadata import read_partition_metadata
from penstock.storage.log import Log

log = logging.getLogger(__name__)

PROGRESS_INTERVAL_S = 2.0


@dataclass(slots=True, kw_only=True)
class DirectoryContents:
    """One log directory as it was found: its partitions, and what the last run left in its checkpoints."""

    partitions: list[TopicPartition] = field(default_factory=list)
    leftovers: list[str] = field(default_factory=list)
    """Paths that were renamed for deletion."""
    recovery_points: dict[TopicPartition, int] = field(default_factory=dict)
    log_start_offsets: dict[TopicPartition, int] = field(default_factory=dict)
    high_watermarks: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLog:
    """A log that was on disk. Whether its topic exists, and is this one, is for the caller to decide."""

    topic_partition: TopicPartition
    topic_id: UUID | None
    log: Log
    directory: str


def scan_directory(directory: LogDirectory, files: Files) -> DirectoryContents:
    """Look what is there, and take the clean-shutdown marker away. Blocks."""
    directory.take_clean_shutdown_marker()
    contents = DirectoryContents(
        recovery_points=directory.recovery_points.read(),
        log_start_offsets=directory.log_start_offsets.read(),
        high_watermarks=directory.high_watermarks.read(),
    )
    for name in files.list_directory(directory.path):
        path = f"{directory.path}/{name}"
        if files.is_directory(path):
            _sort_in(contents, name, path)
    return contents


def _sort_in(contents: DirectoryContents, name: str, path: str) -> None:
    parsed = parse_directory_name(name)
    if parsed is None or parsed.topic_partition.topic == CLUSTER_METADATA:
        log.debug("%s is not a partition of ours and is left alone", path)
    elif parsed.kind is DirectoryKind.DELETE:
        contents.leftovers.append(path)
    elif parsed.kind is not DirectoryKind.LIVE:
        log.warning("%s is set aside (%s) and is not opened", path, parsed.kind.value.removeprefix("-"))
    elif name != directory_name(parsed.topic_partition):
        log.warning("%s is not how the directory of %s is called, and is left alone", path, parsed.topic_partition)
    else:
        contents.partitions.append(parsed.topic_partition)


@dataclass(slots=True, kw_only=True)
class OpenedLogs:
    logs: list[Log] = field(default_factory=list)
    failures: dict[TopicPartition, str] = field(default_factory=dict)
    """Partitions that could not be opened although the disk answers."""


class LogOpener:
    """Opens the logs of one log directory, a bounded number at a time, each in a worker."""

    def __init__(
        self,
        directory: LogDirectory,
        contents: DirectoryContents,
        *,
        files: Files,
        clock: Clock,
        tasks: Tasks,
        log_config_for: Callable[[str], LogConfig],
        producer_expiration_ms: int,
    ) -> None:
        self._directory = directory
        self._contents = contents
        self._files = files
        self._clock = clock
        self._tasks = tasks
        self._log_config_for = log_config_for
        self._producer_expiration_ms = producer_expiration_ms
        self._remaining = list(reversed(contents.partitions))
        self._opened = OpenedLogs()
        self._progress_timer: Timer | None = None

    async def open_all(self, *, parallel: int) -> OpenedLogs:
        """OSError: the disk failed, and the whole directory with it."""
        self._watch_progress()
        try:
            results = await asyncio.gather(*(self._open_some() for _ in range(parallel)), return_exceptions=True)
        finally:
            if self._progress_timer is not None:
                self._progress_timer.cancel()
        for result in results:
            if result is not None:
                self._close_opened()
                raise result
        return self._opened

    def _close_opened(self) -> None:
        for opened in self._opened.logs:
            opened.fail("its log directory failed while it was loaded")

    async def _open_some(self) -> None:
        while self._remaining:
            topic_partition = self._remaining.pop()
            config = self._log_config_for(topic_partition.topic)
            try:
                opened = await self._tasks.run_blocking(self._open_call(topic_partition, config))
            except KafkaError as error:
                log.error("%s in %s cannot be opened: %s", topic_partition, self._directory, error.message)
                self._opened.failures[topic_partition] = error.message
                continue
            except OSError:
                self._remaining.clear()
                raise
            self._opened.logs.append(opened)

    def _open_call(self, topic_partition: TopicPartition, config: LogConfig) -> Callable[[], Log]:
        path = f"{self._directory.path}/{directory_name(topic_partition)}"

        def open_log() -> Log:
            return Log.open(
                directory=path,
                topic_partition=topic_partition,
                topic_id=read_partition_metadata(path, self._files),
                config=config,
                files=self._files,
                clock=self._clock,
                recovery_point=self._contents.recovery_points.get(topic_partition, 0),
                log_start_offset=self._contents.log_start_offsets.get(topic_partition, 0),
                clean=self._directory.was_clean,
                producer_expiration_ms=self._producer_expiration_ms,
            )

        return open_log

    def _watch_progress(self) -> None:
        self._progress_timer = self._tasks.call_later(PROGRESS_INTERVAL_S, self._report_progress)

    def _report_progress(self) -> None:
        log.info(
            "%s logs in %s: %d of %d done",
            "opening" if self._directory.was_clean else "recovering",
            self._directory,
            len(self._opened.logs) + len(self._opened.failures),
            len(self._contents.partitions),
        )
        self._watch_progress()
