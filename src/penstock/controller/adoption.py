"""Partition directories that a broker finds but the metadata does not know.

They were copied in from another broker, or the metadata was lost; the topic is taken over with the id it had, and
partitions that did not come along are created empty. The leader epoch of a partition lies above every epoch in a log
that came from elsewhere (also one that was put in the place of a known partition's), so that epochs go on growing.
Directories that belong to a deleted topic (the broker died between the
decision and the renaming) are to be deleted; those that contradict the metadata are strays that nobody may serve.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from uuid import UUID

import msgspec

from penstock.base.internal_topics import CLUSTER_METADATA
from penstock.base.types import TopicPartition
from penstock.controller.names import invalid_name_reason
from penstock.metadata.deltas import (
    DeletedTopicsForgotten,
    Delta,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
)
from penstock.metadata.image import ClusterImage, PartitionState, TopicState

PARTITION_INDEX_MAX = 100_000
"""A directory with a larger number is a stray: creating every partition below it would fill the disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPartition:
    """A log on disk. `latest_epoch` is the last leader epoch in it, -1 when it has none."""

    topic: str
    partition: int
    topic_id: UUID | None
    latest_epoch: int = -1


@dataclass(slots=True, kw_only=True)
class Adoption:
    """What became of the directories that were found; those not named were known already."""

    adopted: list[TopicPartition] = field(default_factory=list)
    deleted: list[TopicPartition] = field(default_factory=list)
    stray: list[TopicPartition] = field(default_factory=list)


def plan_adopt_topics(
    image: ClusterImage,
    found: Iterable[FoundPartition],
    *,
    broker_id: int,
    new_topic_id: Callable[[], UUID],
    configs_for: Callable[[str], Mapping[str, str]],
    may_forget_deleted: bool = True,
) -> tuple[list[Delta], Adoption]:
    deltas: list[Delta] = []
    adoption = Adoption()
    found = list(found)
    for topic, partitions in _by_topic(image, found, adoption).items():
        known = image.topics.get(topic)
        topic_id = known.id if known is not None else _adopted_id(partitions) or new_topic_id()
        members = _members(partitions, topic_id, adoption)
        count = 0 if known is None else len(known.partitions)
        if known is not None:
            deltas += _overtaken_partitions(known, members)
        missing = [each for each in members if each.partition >= count]
        if not missing:
            continue
        states = _new_partitions(missing, count, broker_id)
        adoption.adopted += [TopicPartition(topic, each.partition) for each in missing]
        if known is None:
            state = TopicState(name=topic, id=topic_id, partitions=states, configs=dict(configs_for(topic)))
            deltas.append(TopicCreated(topic=state))
        else:
            deltas.append(PartitionsAdded(topic_id=topic_id, first_index=count, partitions=states))
    # A topic whose directory is still here is remembered until a start that does not find it.
    gone = tuple(image.deleted_topics.keys() - {each.topic_id for each in found})
    if gone and may_forget_deleted:
        deltas.append(DeletedTopicsForgotten(topic_ids=gone))
    return deltas, adoption


def _by_topic(
    image: ClusterImage, found: Iterable[FoundPartition], adoption: Adoption
) -> dict[str, list[FoundPartition]]:
    topics: dict[str, list[FoundPartition]] = {}
    for each in sorted(found, key=lambda found: (found.topic, found.partition)):
        place = TopicPartition(each.topic, each.partition)
        if each.topic == CLUSTER_METADATA:
            # A stopped Kafka's own metadata log: left as it is, so that Kafka could be started on it again.
            continue
        if each.topic_id in image.deleted_topics:
            adoption.deleted.append(place)
        elif invalid_name_reason(each.topic) is not None or each.partition > PARTITION_INDEX_MAX:
            adoption.stray.append(place)
        else:
            topics.setdefault(each.topic, []).append(each)
    return topics


def _adopted_id(partitions: list[FoundPartition]) -> UUID | None:
    return next((each.topic_id for each in partitions if each.topic_id is not None), None)


def _members(partitions: list[FoundPartition], topic_id: UUID, adoption: Adoption) -> list[FoundPartition]:
    """Those of that id, or of no id at all (written before topics had ids); the others are strays."""
    members = []
    for each in partitions:
        if each.topic_id in (None, topic_id):
            members.append(each)
        else:
            adoption.stray.append(TopicPartition(each.topic, each.partition))
    return members


def _overtaken_partitions(topic: TopicState, members: list[FoundPartition]) -> Iterator[Delta]:
    """Known partitions whose log has seen later epochs than the metadata: somebody exchanged the directory."""
    for each in members:
        if each.partition < len(topic.partitions) and each.latest_epoch > topic.partitions[each.partition].leader_epoch:
            state = topic.partitions[each.partition]
            raised = msgspec.structs.replace(
                state, leader_epoch=each.latest_epoch + 1, partition_epoch=state.partition_epoch + 1
            )
            yield PartitionChanged(topic_id=topic.id, partition=each.partition, state=raised)


def _new_partitions(missing: list[FoundPartition], count: int, broker_id: int) -> tuple[PartitionState, ...]:
    epochs = {each.partition: each.latest_epoch + 1 for each in missing}
    return tuple(
        PartitionState(
            replicas=(broker_id,), isr=(broker_id,), leader=broker_id, leader_epoch=max(0, epochs.get(index, 0))
        )
        for index in range(count, max(epochs) + 1)
    )
