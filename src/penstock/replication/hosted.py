"""The partitions that have a replica on this broker, kept as the metadata says.

Every metadata version names the topics it touched; each of them is compared with what is here, and logs are created,
opened or deleted until both agree. A log that cannot be had makes its partition *offline*: it answers
KAFKA_STORAGE_ERROR, the broker goes on. Looking a partition up never waits.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from typing import Protocol
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock
from penstock.base.types import TopicPartition
from penstock.metadata.deltas import (
    BrokerConfigChanged,
    Delta,
    PartitionChanged,
    PartitionsAdded,
    TopicConfigChanged,
    TopicCreated,
    TopicDeleted,
)
from penstock.metadata.image import ClusterImage, PartitionState, TopicState
from penstock.replication.counters import TopicCounters
from penstock.replication.partition import Partition
from penstock.replication.settings import SettingsFor, TopicSettings
from penstock.storage.log import Log

CREATED_TOGETHER_MAX = 32
"""Logs created or deleted at the same time, so that a topic of thousands does not flood the workers."""

log = logging.getLogger(__name__)


class Logs(Protocol):
    """What is needed of the log manager."""

    def get(self, topic_partition: TopicPartition, /) -> Log | None: ...

    async def create(self, topic_partition: TopicPartition, topic_id: UUID, /, *, is_new: bool = True) -> Log:
        """`is_new=False`: it was here before, so it may be on a disk that does not work at present."""

    async def delete(self, topic_partition: TopicPartition, /) -> None: ...

    async def flush(self, log: Log, /) -> None:
        """Durable on return; requests for the same log share their syncs."""

    async def trim(self, log: Log, /) -> None:
        """The start of the log was moved up: durable on return, and the segments before it go."""


class RoleListener(Protocol):
    """Told when a partition's part in the cluster has changed, after it has."""

    def role_changed(self, partition: Partition) -> None: ...

    def watermark_moved(self, partition: Partition) -> None: ...

    def stopped(self, partition: Partition) -> None: ...


class HostedPartitions:
    def __init__(
        self,
        node_id: int,
        logs: Logs,
        *,
        clock: Clock,
        metrics: Metrics,
        settings_for: SettingsFor,
        lag_time_max_ms: int,
        roles: RoleListener,
    ) -> None:
        self._node_id = node_id
        self._logs = logs
        self._clock = clock
        self._metrics = metrics
        self._settings_for = settings_for
        self._lag_time_max_ms = lag_time_max_ms
        self._roles = roles
        self.image = ClusterImage()
        self.by_name: dict[tuple[str, int], Partition] = {}
        self.by_id: dict[tuple[UUID, int], Partition] = {}
        self.offline: dict[tuple[str, int], str] = {}

    # -- Looking up ------------------------------------------------------------------------------------------------

    def missing_error(self, topic: str, index: int) -> KafkaError:
        """Why a partition of that name is not served here."""
        if (reason := self.offline.get((topic, index))) is not None:
            return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{topic}-{index} is offline: {reason}")
        state = self.image.topics.get(topic)
        if state is None or not 0 <= index < len(state.partitions):
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic}-{index}.")
        return KafkaError(
            ErrorCode.NOT_LEADER_OR_FOLLOWER, f"Broker {self._node_id} has no replica of {topic}-{index}."
        )

    def missing_id_error(self, topic_id: UUID, index: int) -> KafkaError:
        name = self.image.topic_names.get(topic_id)
        if name is None:
            return KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {topic_id}.")
        return self.missing_error(name, index)

    def is_eligible(self, broker_id: int, broker_epoch: int) -> bool:
        registration = self.image.brokers.get(broker_id)
        return registration is not None and broker_epoch in (-1, registration.epoch)

    # -- Following the metadata ------------------------------------------------------------------------------------

    async def start(self, image: ClusterImage) -> None:
        """Host everything that the image gives this broker."""
        self.image = image
        for topic in image.topics.values():
            await self._follow(None, topic, is_new=False)

    async def on_metadata(self, old: ClusterImage, new: ClusterImage, deltas: Sequence[Delta]) -> None:
        self.image = new
        if any(isinstance(delta, BrokerConfigChanged) for delta in deltas):
            for topic in new.topics.values():
                self._refresh_settings(topic)
        for name in dict.fromkeys(_touched_topics(old, new, deltas)):
            await self._follow(old.topics.get(name), new.topics.get(name))

    async def _follow(self, old: TopicState | None, new: TopicState | None, *, is_new: bool = True) -> None:
        if old is not None and (new is None or new.id != old.id):
            await self._drop_topic(old)
            old = None
        if new is None:
            return
        if old is not None and old.configs != new.configs:
            self._refresh_settings(new)
        wanted = [index for index, state in enumerate(new.partitions) if self._node_id in state.replicas]
        await self._create_logs(new, wanted, is_new)
        for index in wanted:
            if (partition := self.by_name.get((new.name, index))) is not None:
                self._apply(partition, new.partitions[index])
        unwanted = [index for index, state in enumerate(new.partitions) if self._node_id not in state.replicas]
        await self._drop(new.name, unwanted, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _apply(self, partition: Partition, state: PartitionState) -> None:
        now_ms = self._clock.time_ms()
        changed = partition.apply_state(state, now_ms)
        if changed:
            self._roles.role_changed(partition)
        if partition.maybe_advance_high_watermark(now_ms):
            self._roles.watermark_moved(partition)

    def _refresh_settings(self, topic: TopicState) -> None:
        settings = self._settings_for(topic)
        for index in range(len(topic.partitions)):
            if (partition := self.by_name.get((topic.name, index))) is not None:
                partition.update_settings(settings)
                partition.log.update_config(settings.log)

    async def _create_logs(self, topic: TopicState, indexes: Sequence[int], is_new: bool) -> None:
        missing = [index for index in indexes if (topic.name, index) not in self.by_name]
        if not missing:
            return
        settings = self._settings_for(topic)
        counters = TopicCounters(self._metrics, topic.name)
        steps = [self._create_log(topic, index, settings, counters, is_new) for index in missing]
        await _in_batches(steps)

    async def _create_log(
        self, topic: TopicState, index: int, settings: TopicSettings, counters: TopicCounters, is_new: bool
    ) -> None:
        place = TopicPartition(topic.name, index)
        try:
            opened = self._logs.get(place)
            if opened is None or opened.topic_id != topic.id:
                opened = await self._logs.create(place, topic.id, is_new=is_new)
        except (KafkaError, OSError) as error:
            log.error("%s is offline, its log cannot be created: %s", place, error)
            self.offline[place] = str(error)
            return
        self.offline.pop(place, None)
        partition = Partition(
            place,
            topic.id,
            opened,
            node_id=self._node_id,
            settings=settings,
            counters=counters,
            lag_time_max_ms=self._lag_time_max_ms,
            eligible=self.is_eligible,
        )
        self.by_name[place] = partition
        self.by_id[topic.id, index] = partition

    async def _drop_topic(self, topic: TopicState) -> None:
        await self._drop(topic.name, range(len(topic.partitions)), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._metrics.remove(topic=topic.name)

    async def _drop(self, topic: str, indexes: Iterable[int], reason: ErrorCode) -> None:
        """Refuse everybody first, then delete the logs."""
        dropped = [place for index in indexes if (place := TopicPartition(topic, index)) in self.by_name]
        for place in dropped:
            partition = self.by_name.pop(place)
            del self.by_id[partition.topic_id, place.partition]
            partition.stop(reason)
            self._roles.stopped(partition)
        await _in_batches([self._delete_log(place) for place in dropped])
        for index in indexes:
            self.offline.pop((topic, index), None)

    async def _delete_log(self, place: TopicPartition) -> None:
        try:
            await self._logs.delete(place)
        except (KafkaError, OSError) as error:
            log.error("the log of %s cannot be deleted: %s", place, error)

    def fail(self, place: TopicPartition, reason: str) -> None:
        """Its disk has failed: the partition is offline until the broker starts again."""
        log.error("%s is offline: %s", place, reason)
        self.offline[place] = reason
        if (partition := self.by_name.pop(place, None)) is not None:
            del self.by_id[partition.topic_id, place.partition]
            partition.stop(ErrorCode.KAFKA_STORAGE_ERROR)
            self._roles.stopped(partition)


async def _in_batches(steps: Sequence[Coroutine[None, None, None]]) -> None:
    for start in range(0, len(steps), CREATED_TOGETHER_MAX):
        await asyncio.gather(*steps[start : start + CREATED_TOGETHER_MAX])


def _touched_topics(old: ClusterImage, new: ClusterImage, deltas: Iterable[Delta]) -> Iterator[str]:
    for delta in deltas:
        if isinstance(delta, TopicCreated):
            yield delta.topic.name
        elif isinstance(delta, TopicDeleted | PartitionsAdded | PartitionChanged | TopicConfigChanged):
            # A topic created and deleted by the same version was never here.
            name = new.topic_names.get(delta.topic_id) or old.topic_names.get(delta.topic_id)
            if name is not None:
                yield name
