"""More partitions for topics that exist, decided with Kafka's codes and words.

A request is decided topic by topic: one bad topic does not stop the others. New partitions have as many replicas as the
topic's first one, and records that are there already stay where they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.placement import RandomBelow, place_replicas
from penstock.controller.topics import PARTITIONS_PER_REQUEST_MAX, check_assignment
from penstock.metadata.deltas import Delta, PartitionsAdded
from penstock.metadata.image import ClusterImage, PartitionState, TopicState


@dataclass(frozen=True, slots=True, kw_only=True)
class MorePartitions:
    """`count` is how many there shall be in all; `assignments` are the broker ids of each new one."""

    name: str
    count: int
    assignments: Sequence[Sequence[int]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MorePartitionsResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def plan_create_partitions(
    image: ClusterImage, request: Sequence[MorePartitions], random_below: RandomBelow
) -> tuple[list[Delta], list[MorePartitionsResult]]:
    """Results in the order of the request; a name given more than once gets one result."""
    counts = Counter(topic.name for topic in request)
    deltas: list[Delta] = []
    results: dict[str, MorePartitionsResult] = {}
    budget = PARTITIONS_PER_REQUEST_MAX
    for wanted in request:
        if wanted.name in results:
            continue
        try:
            if counts[wanted.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            added = _plan_topic(image, wanted, random_below, budget)
        except KafkaError as error:
            results[wanted.name] = MorePartitionsResult(name=wanted.name, error=error.code, message=error.message)
            continue
        budget -= len(added.partitions)
        deltas.append(added)
        results[wanted.name] = MorePartitionsResult(name=wanted.name)
    return deltas, list(results.values())


def _plan_topic(image: ClusterImage, wanted: MorePartitions, random_below: RandomBelow, budget: int) -> PartitionsAdded:
    topic = image.topics.get(wanted.name)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    additional = _additional(topic, wanted)
    if additional > budget:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    factor = topic.replication_factor
    if wanted.assignments is None:
        replicas = place_replicas(
            image.brokers.values(), partitions=additional, replication_factor=factor, random_below=random_below
        )
    else:
        for brokers in wanted.assignments:
            check_assignment(image, brokers, factor)
        replicas = [tuple(brokers) for brokers in wanted.assignments]
    partitions = tuple(PartitionState(replicas=each, isr=each, leader=each[0]) for each in replicas)
    return PartitionsAdded(topic_id=topic.id, first_index=len(topic.partitions), partitions=partitions)


def _additional(topic: TopicState, wanted: MorePartitions) -> int:
    """How many are to be added; KafkaError when that is none, or not as many as were assigned."""
    present = len(topic.partitions)
    if wanted.count == present:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if wanted.count < present:
        raise KafkaError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {wanted.count} would not be an increase.",
        )
    additional = wanted.count - present
    if wanted.assignments is not None and len(wanted.assignments) != additional:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"Attempted to add {additional} additional partition(s), but only {len(wanted.assignments)} assignment(s) "
            "were specified.",
        )
    return additional
