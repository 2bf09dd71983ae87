"""Every change the cluster's metadata can undergo, as values that can be stored and sent.

A delta carries the new state of what it changes, never an instruction that depends on the moment, so replaying the
same deltas gives the same image everywhere. Its JSON form is tagged with `type`; `FORMAT_VERSION` grows when an older
reader could misread a newer form (a field with a default may be added without that).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

import msgspec

from penstock.metadata.image import (
    BrokerRegistration,
    ClusterImage,
    ImageBuilder,
    PartitionState,
    TopicState,
)

FORMAT_VERSION = 1


class _Delta(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", omit_defaults=True):
    pass


class ClusterIdSet(_Delta, frozen=True, tag="cluster-id-set"):
    cluster_id: str

    def change(self, builder: ImageBuilder) -> None:
        builder.set("cluster_id", self.cluster_id)


class ControllerChanged(_Delta, frozen=True, tag="controller-changed"):
    controller_id: int

    def change(self, builder: ImageBuilder) -> None:
        builder.set("controller_id", self.controller_id)


class BrokerRegistered(_Delta, frozen=True, tag="broker-registered"):
    broker: BrokerRegistration

    def change(self, builder: ImageBuilder) -> None:
        builder.table("brokers")[self.broker.id] = self.broker


class BrokerUnregistered(_Delta, frozen=True, tag="broker-unregistered"):
    broker_id: int

    def change(self, builder: ImageBuilder) -> None:
        builder.table("brokers").pop(self.broker_id, None)


class TopicCreated(_Delta, frozen=True, tag="topic-created"):
    topic: TopicState

    def change(self, builder: ImageBuilder) -> None:
        builder.put_topic(self.topic)


class TopicDeleted(_Delta, frozen=True, tag="topic-deleted"):
    """The id stays known as deleted until no broker can still have a directory of the topic: a broker that finds one
    after a crash deletes it and does not take it for a directory that came from elsewhere."""

    topic_id: UUID

    def change(self, builder: ImageBuilder) -> None:
        topic = builder.topic(self.topic_id)
        del builder.table("topics")[topic.name]
        del builder.table("topic_names")[topic.id]
        builder.table("deleted_topics")[topic.id] = topic.name


class DeletedTopicsKnown(_Delta, frozen=True, tag="deleted-topics-known"):
    """What a snapshot says of topics deleted before it and not yet forgotten."""

    topics: dict[UUID, str]

    def change(self, builder: ImageBuilder) -> None:
        builder.table("deleted_topics").update(self.topics)


class DeletedTopicsForgotten(_Delta, frozen=True, tag="deleted-topics-forgotten"):
    topic_ids: tuple[UUID, ...]

    def change(self, builder: ImageBuilder) -> None:
        deleted = builder.table("deleted_topics")
        for topic_id in self.topic_ids:
            deleted.pop(topic_id, None)


class PartitionsAdded(_Delta, frozen=True, tag="partitions-added"):
    """New partitions behind the existing ones; `first_index` tells a reader the index of the first."""

    topic_id: UUID
    first_index: int
    partitions: tuple[PartitionState, ...]

    def change(self, builder: ImageBuilder) -> None:
        topic = builder.topic(self.topic_id)
        if self.first_index != len(topic.partitions):
            raise ValueError(
                f"topic {topic.name!r} has {len(topic.partitions)} partitions, not the {self.first_index} before these"
            )
        builder.put_topic(msgspec.structs.replace(topic, partitions=topic.partitions + self.partitions))


class PartitionChanged(_Delta, frozen=True, tag="partition-changed"):
    topic_id: UUID
    partition: int
    state: PartitionState

    def change(self, builder: ImageBuilder) -> None:
        topic = builder.topic(self.topic_id)
        partitions = list(topic.partitions)
        partitions[self.partition] = self.state
        builder.put_topic(msgspec.structs.replace(topic, partitions=tuple(partitions)))


class TopicConfigChanged(_Delta, frozen=True, tag="topic-config-changed"):
    """Overrides set, or removed where the value is None."""

    topic_id: UUID
    changes: dict[str, str | None]

    def change(self, builder: ImageBuilder) -> None:
        topic = builder.topic(self.topic_id)
        builder.put_topic(msgspec.structs.replace(topic, configs=_merged(topic.configs, self.changes)))


class BrokerConfigChanged(_Delta, frozen=True, tag="broker-config-changed"):
    """Dynamic settings of one broker (`name` is its id in decimal) or of all (`name` is empty)."""

    name: str
    changes: dict[str, str | None]

    def change(self, builder: ImageBuilder) -> None:
        configs = builder.table("broker_configs")
        merged = _merged(configs.get(self.name, {}), self.changes)
        if merged:
            configs[self.name] = merged
        else:
            configs.pop(self.name, None)


class ProducerIdsAllocated(_Delta, frozen=True, tag="producer-ids-allocated"):
    """Every id below `next_producer_id` has been handed to some broker."""

    next_producer_id: int

    def change(self, builder: ImageBuilder) -> None:
        builder.set("next_producer_id", self.next_producer_id)


class FeatureChanged(_Delta, frozen=True, tag="feature-changed"):
    """The finalized level of a feature. 0 switches it off, which is remembered: a feature without any level is one that
    the cluster has not heard of, and gets its newest one."""

    name: str
    level: int

    def change(self, builder: ImageBuilder) -> None:
        builder.table("features")[self.name] = self.level


Delta = (
    ClusterIdSet
    | ControllerChanged
    | BrokerRegistered
    | BrokerUnregistered
    | TopicCreated
    | TopicDeleted
    | DeletedTopicsKnown
    | DeletedTopicsForgotten
    | PartitionsAdded
    | PartitionChanged
    | TopicConfigChanged
    | BrokerConfigChanged
    | ProducerIdsAllocated
    | FeatureChanged
)


class VersionedDeltas(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The change to one version. A `snapshot` is the whole image at that version, as deltas from an empty one."""

    format: int
    version: int
    deltas: list[Delta]
    snapshot: bool = False


_decoder = msgspec.json.Decoder(VersionedDeltas)
_encoder = msgspec.json.Encoder()


class _FormatOnly(msgspec.Struct):
    format: int


class UnknownFormatError(ValueError):
    """Metadata written by a newer version."""


def encode_deltas(version: int, deltas: Sequence[Delta], *, snapshot: bool = False) -> bytes:
    """One JSON object without line breaks."""
    return _encoder.encode(
        VersionedDeltas(format=FORMAT_VERSION, version=version, deltas=list(deltas), snapshot=snapshot)
    )


def decode_deltas(data: bytes | memoryview) -> VersionedDeltas:
    """ValueError when it is not one, UnknownFormatError when only a newer version can read it."""
    try:
        decoded = _decoder.decode(data)
    except msgspec.DecodeError as error:
        _check_format(msgspec.json.decode(data, type=_FormatOnly).format)
        raise ValueError(f"not a metadata change: {error}") from error
    _check_format(decoded.format)
    return decoded


def _check_format(found: int) -> None:
    if found != FORMAT_VERSION:
        raise UnknownFormatError(f"metadata format {found} is not known; this version reads format {FORMAT_VERSION}")


def image_as_deltas(image: ClusterImage) -> Iterator[Delta]:
    """The deltas that build `image` from an empty one."""
    if image.cluster_id is not None:
        yield ClusterIdSet(cluster_id=image.cluster_id)
    if image.controller_id >= 0:
        yield ControllerChanged(controller_id=image.controller_id)
    for broker in image.brokers.values():
        yield BrokerRegistered(broker=broker)
    for topic in image.topics.values():
        yield TopicCreated(topic=topic)
    if image.deleted_topics:
        yield DeletedTopicsKnown(topics={**image.deleted_topics})
    for name, configs in image.broker_configs.items():
        yield BrokerConfigChanged(name=name, changes={**configs})
    for name, level in image.features.items():
        yield FeatureChanged(name=name, level=level)
    if image.next_producer_id:
        yield ProducerIdsAllocated(next_producer_id=image.next_producer_id)


def _merged(configs: Mapping[str, str], changes: dict[str, str | None]) -> dict[str, str]:
    merged = {**configs, **changes}
    return {name: value for name, value in merged.items() if value is not None}
