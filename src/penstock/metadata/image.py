"""The cluster at one version: which brokers, topics, partitions and settings there are.

An image never changes. `ClusterImage.apply` gives the next one and shares every part that stayed the same, so a
reader may hold an image for as long as it likes and always sees one consistent version. The mappings are plain
dictionaries behind read-only types: nobody but this module writes them, and only before the image is handed out.

The parts are msgspec structs, since they also travel inside deltas as JSON.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

import msgspec

NO_LEADER = -1
CLUSTER_DEFAULT_CONFIG = ""
"""The name under which `broker_configs` holds the settings of all brokers; others are a broker id in decimal."""


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where clients reach a broker through one of its listeners."""

    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerRegistration(msgspec.Struct, frozen=True, kw_only=True):
    """A live broker. `epoch` grows with every registration and fences requests of an earlier life;
    `incarnation` tells a repeated registration of the same process from a restart."""

    id: int
    epoch: int
    endpoints: tuple[Endpoint, ...] = ()
    rack: str | None = None
    incarnation: UUID | None = None

    def endpoint(self, listener: str) -> Endpoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


class PartitionState(msgspec.Struct, frozen=True, kw_only=True):
    """`leader_epoch` grows with every election, `partition_epoch` with every change of any field."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int = 0
    partition_epoch: int = 0


class TopicState(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    id: UUID
    partitions: tuple[PartitionState, ...]
    configs: dict[str, str] = {}

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


class ClusterImage(msgspec.Struct, frozen=True, kw_only=True):
    """All metadata at `version`. `deleted_topics` are those whose directories may still be on some disk."""

    version: int = 0
    cluster_id: str | None = None
    controller_id: int = -1
    brokers: Mapping[int, BrokerRegistration] = {}
    topics: Mapping[str, TopicState] = {}
    topic_names: Mapping[UUID, str] = {}
    broker_configs: Mapping[str, Mapping[str, str]] = {}
    features: Mapping[str, int] = {}
    next_producer_id: int = 0
    deleted_topics: Mapping[UUID, str] = {}

    def topic_by_id(self, topic_id: UUID) -> TopicState | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def apply(self, version: int, deltas: Iterable[ImageChange]) -> ClusterImage:
        """The image after `deltas`, which together are the change to `version`."""
        builder = ImageBuilder(self)
        builder.apply(version, deltas)
        return builder.build()


class ImageChange(Protocol):
    """What `ImageBuilder.apply` takes: the deltas of `penstock.metadata.deltas` are all of this kind."""

    def change(self, builder: ImageBuilder) -> None: ...


class ImageBuilder:
    """An image under change: a field is copied when the first delta touches it, so many versions can be replayed
    at the cost of one."""

    def __init__(self, base: ClusterImage) -> None:
        self._base = base
        self._fields: dict[str, Any] = {}
        self.version = base.version

    def apply(self, version: int, deltas: Iterable[ImageChange]) -> None:
        if version <= self.version:
            raise ValueError(f"metadata version {version} does not follow {self.version}")
        for delta in deltas:
            delta.change(self)
        self.version = version

    def set(self, field: str, value: str | int) -> None:
        self._fields[field] = value

    def table(self, field: str) -> dict[Any, Any]:
        """The mapping of that name, ready to be changed."""
        table = self._fields.get(field)
        if table is None:
            table = self._fields[field] = dict(getattr(self._base, field))
        return table

    def topic(self, topic_id: UUID) -> TopicState:
        """The topic as changed so far; KeyError when it is not there."""
        topics: Mapping[str, TopicState] = self._fields.get("topics", self._base.topics)
        names: Mapping[UUID, str] = self._fields.get("topic_names", self._base.topic_names)
        return topics[names[topic_id]]

    def put_topic(self, topic: TopicState) -> None:
        self.table("topics")[topic.name] = topic
        self.table("topic_names")[topic.id] = topic.name

    def build(self) -> ClusterImage:
        image = msgspec.structs.replace(self._base, version=self.version, **self._fields)
        # The tables now belong to the image: a later change must copy them again.
        self._base, self._fields = image, {}
        return image
