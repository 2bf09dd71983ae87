"""Values that the clients show to each other and to their users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.base.types import ZERO_UUID, TopicPartition

__all__ = [
    "ClusterSnapshot",
    "ConsumerGroupMetadata",
    "CoordinatorKind",
    "Node",
    "OffsetAndMetadata",
    "PartitionInfo",
    "RecordMetadata",
    "TopicInfo",
    "TopicPartition",
]


class CoordinatorKind(IntEnum):
    """The number is FindCoordinator's key type."""

    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Node(NamedTuple):
    """A broker and its address."""

    id: int
    host: str
    port: int
    rack: str | None = None

    def __str__(self) -> str:
        return f"{self.host}:{self.port} (id {self.id})"


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionInfo:
    """A partition with its leader and replicas, by broker ids."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int = -1
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicInfo:
    """A topic with its partitions."""

    name: str
    topic_id: UUID = ZERO_UUID
    is_internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    partitions: tuple[PartitionInfo, ...] = ()
    """The index is the partition's number; one that the answer left out has no leader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """What was known of the cluster at one time. Immutable: any thread may read it without a lock."""

    cluster_id: str | None = None
    controller_id: int = -1
    nodes: Mapping[int, Node] = field(default_factory=lambda: MappingProxyType({}))
    topics: Mapping[str, TopicInfo] = field(default_factory=lambda: MappingProxyType({}))
    names_by_id: Mapping[UUID, str] = field(default_factory=lambda: MappingProxyType({}))
    version: int = 0
    """Grows with every change; 0 before the first answer."""

    def partition(self, tp: TopicPartition) -> PartitionInfo | None:
        """What is known of a partition; None if nothing is."""
        info = self.topics.get(tp[0])
        if info is None or not 0 <= tp[1] < len(info.partitions):
            return None
        return info.partitions[tp[1]]

    def leader(self, tp: TopicPartition) -> int | None:
        """The node that leads the partition, if there is one and its address is known."""
        info = self.partition(tp)
        return info.leader if info is not None and info.leader in self.nodes else None

    def available_partitions(self, topic: str) -> tuple[int, ...]:
        """Partitions that have a leader."""
        info = self.topics.get(topic)
        if info is None:
            return ()
        return tuple(each.partition for each in info.partitions if each.leader in self.nodes)

    def partition_count(self, topic: str) -> int:
        """0 for a topic that is not known."""
        info = self.topics.get(topic)
        return len(info.partitions) if info is not None else 0


class OffsetAndMetadata(NamedTuple):
    """An offset to commit or committed: the next record to read, with a note of the user's."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1


class ConsumerGroupMetadata(NamedTuple):
    """A member of a group, as a transactional producer names it with offsets."""

    group_id: str
    generation_id: int = -1
    member_id: str = ""
    group_instance_id: str | None = None


class RecordMetadata(NamedTuple):
    """Where a record was written."""

    topic: str
    partition: int
    offset: int
    """-1 when nobody acknowledged it (`acks=0`)."""
    timestamp: int
    timestamp_type: int
    """0 the time the record was made, 1 the time it was appended."""
    serialized_key_size: int
    """-1 without a key."""
    serialized_value_size: int

    @property
    def topic_partition(self) -> TopicPartition:
        """Both in one."""
        return TopicPartition(self.topic, self.partition)
