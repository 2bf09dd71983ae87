"""The logs a broker has, where each of them lives, and which are offline.

A log directory fails as a whole: its logs refuse everything from then on, asking for one raises KAFKA_STORAGE_ERROR,
and the listeners learn which partitions went. Only a restart brings them back.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from itertools import chain
from uuid import UUID

from penstock.base import metric_names
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.types import TopicPartition, uuid_to_text
from penstock.storage.directories.directory_set import DirectorySet
from penstock.storage.directories.log_directory import LogDirectory, LogDirectoryError
from penstock.storage.log import Log

log = logging.getLogger(__name__)

OfflineListener = Callable[[str, list[TopicPartition]], None]
"""Called with the path of a log directory that failed and the partitions that went offline with it."""


class LogRegistry:
    def __init__(self, directories: DirectorySet, metrics: Metrics) -> None:
        self._directories = directories
        self._metrics = metrics
        self.logs: dict[TopicPartition, Log] = {}
        self._homes: dict[TopicPartition, LogDirectory] = {}
        self._offline: dict[TopicPartition, str] = {}
        self._listeners: list[OfflineListener] = []
        metrics.gauge(metric_names.OFFLINE_LOG_DIRECTORY_COUNT, lambda: len(directories.offline))

    def get(self, topic_partition: TopicPartition) -> Log | None:
        found = self.logs.get(topic_partition)
        if found is None and topic_partition in self._offline:
            raise KafkaError(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"The log of {topic_partition} is offline: {self._offline[topic_partition]}",
            )
        return found

    def home(self, topic_partition: TopicPartition) -> LogDirectory:
        return self._homes[topic_partition]

    def is_offline(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._offline

    @property
    def offline_partitions(self) -> list[TopicPartition]:
        return list(self._offline)

    def in_directory(self, directory: LogDirectory) -> list[Log]:
        return [found for found in self.logs.values() if self._homes[found.topic_partition] is directory]

    def fewest_first(self, *, also: Iterable[LogDirectory]) -> list[LogDirectory]:
        """The live directories, the one for the next log first. `also`: one for each log that is being made."""
        counts = dict.fromkeys(self._directories, 0)
        for directory in chain(self._homes.values(), also):
            if directory in counts:
                counts[directory] += 1
        return sorted(counts, key=lambda directory: counts[directory])

    # -- Changes ---------------------------------------------------------------------------------------------------

    def add(self, opened: Log, directory: LogDirectory) -> None:
        topic_partition = opened.topic_partition
        other = self._homes.get(topic_partition)
        if other is not None:
            # Serving either copy could lose what only the other one has.
            raise LogDirectoryError(f"{topic_partition} is both in {other} and in {directory}; remove one of the two")
        self.logs[topic_partition] = opened
        self._homes[topic_partition] = directory
        labels = {"topic": topic_partition.topic, "partition": str(topic_partition.partition)}
        self._metrics.gauge(metric_names.LOG_SIZE, lambda: opened.size_bytes, **labels)
        self._metrics.gauge(metric_names.LOG_START_OFFSET, lambda: opened.log_start_offset, **labels)
        self._metrics.gauge(metric_names.LOG_END_OFFSET, lambda: opened.log_end_offset, **labels)
        self._metrics.gauge(metric_names.LOG_SEGMENTS, lambda: len(opened.segments), **labels)

    def remove(self, topic_partition: TopicPartition) -> Log:
        self._metrics.remove(topic=topic_partition.topic, partition=str(topic_partition.partition))
        del self._homes[topic_partition]
        return self.logs.pop(topic_partition)

    def set_offline(self, topic_partition: TopicPartition, reason: str) -> None:
        self._offline[topic_partition] = reason

    def add_listener(self, listener: OfflineListener) -> None:
        self._listeners.append(listener)

    def fail_directory(self, directory: LogDirectory, reason: str) -> None:
        """Take a directory out of service with every log in it. A second failure of it changes nothing."""
        if directory.is_offline:
            return
        directory.is_offline = True
        text = f"log directory {directory} failed: {reason}"
        failed = self.in_directory(directory)
        log.error("%s; %d logs are offline", text, len(failed))
        partitions = [lost.topic_partition for lost in failed]
        for topic_partition in partitions:
            self.remove(topic_partition).fail(text)
            self._offline[topic_partition] = text
        directory.unlock()
        if not list(self._directories):
            log.critical("every log directory has failed")
        for listener in self._listeners:
            listener(directory.path, partitions)


def check_topic_id(topic_partition: TopicPartition, found: UUID | None, wanted: UUID) -> None:
    if found is not None and found != wanted:
        raise KafkaError(
            ErrorCode.INCONSISTENT_TOPIC_ID,
            f"The log of {topic_partition} belongs to topic id {uuid_to_text(found)}, not to {uuid_to_text(wanted)}",
        )
