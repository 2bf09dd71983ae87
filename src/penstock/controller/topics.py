"""Creating and deleting topics, decided with Kafka's codes and words.

A request is decided topic by topic: one bad topic does not stop the others. What a plan returns is complete, so that
a request that only asks for validation is the same plan with its deltas thrown away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import CLUSTER_METADATA
from penstock.base.types import ZERO_UUID
from penstock.controller.names import (
    has_collision_chars,
    invalid_name_reason,
    unify_collision_chars,
)
from penstock.controller.placement import RandomBelow, place_replicas
from penstock.metadata.deltas import Delta, TopicCreated, TopicDeleted
from penstock.metadata.image import ClusterImage, PartitionState, TopicState

PARTITIONS_PER_REQUEST_MAX = 10_000
USE_DEFAULT = -1

ConfigValidator = Callable[[Mapping[str, str]], None]
"""Raises KafkaError(INVALID_CONFIG) for overrides a topic may not have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """`assignments` are (partition, broker ids); they exclude both counts."""

    name: str
    num_partitions: int = USE_DEFAULT
    replication_factor: int = USE_DEFAULT
    assignments: Sequence[tuple[int, Sequence[int]]] = ()
    configs: Sequence[tuple[str, str | None]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopicResult:
    name: str
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic_id: UUID = ZERO_UUID
    num_partitions: int = -1
    replication_factor: int = -1
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRules:
    """What a plan needs to know that is not in the image."""

    default_num_partitions: int
    default_replication_factor: int
    validate_configs: ConfigValidator
    new_topic_id: Callable[[], UUID]
    random_below: RandomBelow


class TopicReference(NamedTuple):
    """A topic named by exactly one of the two; the other is None or the zero id."""

    name: str | None = None
    topic_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTopicResult:
    name: str | None
    topic_id: UUID = ZERO_UUID
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def plan_create_topics(
    image: ClusterImage, request: Sequence[NewTopic], rules: TopicRules
) -> tuple[list[Delta], list[NewTopicResult]]:
    """Results in the order of the request; a name given more than once gets one result."""
    counts = Counter(topic.name for topic in request)
    colliding = _collision_table(image, request)
    deltas: list[Delta] = []
    results: dict[str, NewTopicResult] = {}
    budget = PARTITIONS_PER_REQUEST_MAX
    for topic in request:
        if topic.name in results:
            continue
        try:
            if counts[topic.name] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            _check_name(image, topic.name, colliding)
            state = _plan_topic(image, topic, rules, budget)
        except KafkaError as error:
            results[topic.name] = NewTopicResult(name=topic.name, error=error.code, message=error.message)
            continue
        budget -= len(state.partitions)
        deltas.append(TopicCreated(topic=state))
        results[topic.name] = _created(state)
        if has_collision_chars(topic.name):
            colliding[unify_collision_chars(topic.name)] = topic.name
    return deltas, list(results.values())


def check_topic_name(name: str) -> None:
    """KafkaError(INVALID_TOPIC_EXCEPTION) for a name that no topic may have."""
    if (reason := invalid_name_reason(name)) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, reason)


def _created(state: TopicState) -> NewTopicResult:
    return NewTopicResult(
        name=state.name,
        topic_id=state.id,
        num_partitions=len(state.partitions),
        replication_factor=state.replication_factor,
        configs=state.configs,
    )


def _collision_table(image: ClusterImage, request: Iterable[NewTopic]) -> dict[str, str]:
    """Existing names by their unified form, or nothing when no new name could collide."""
    if not any(has_collision_chars(topic.name) for topic in request):
        return {}
    return {unify_collision_chars(name): name for name in image.topics if has_collision_chars(name)}


def _check_name(image: ClusterImage, name: str, colliding: Mapping[str, str]) -> None:
    if name == CLUSTER_METADATA:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {CLUSTER_METADATA} is prohibited.")
    if name in image.topics:
        raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    check_topic_name(name)
    if has_collision_chars(name) and (other := colliding.get(unify_collision_chars(name))) is not None:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _plan_topic(image: ClusterImage, topic: NewTopic, rules: TopicRules, budget: int) -> TopicState:
    configs = _plan_configs(topic, rules.validate_configs)
    manual = bool(topic.assignments)
    replicas = _assigned_replicas(image, topic) if manual else _placed_replicas(image, topic, rules, budget)
    if len(replicas) > budget:
        raise _too_many_partitions()
    partitions = tuple(
        PartitionState(replicas=each, isr=isr, leader=isr[0])
        for each in replicas
        for isr in [tuple(broker for broker in each if broker in image.brokers)]
    )
    return TopicState(name=topic.name, id=rules.new_topic_id(), partitions=partitions, configs=configs)


def _plan_configs(topic: NewTopic, validate: ConfigValidator) -> dict[str, str]:
    nulls = [name for name, value in topic.configs if value is None]
    if nulls:
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}")
    configs = {name: value for name, value in topic.configs if value is not None}
    if configs:
        validate(configs)
    return configs


def _placed_replicas(image: ClusterImage, topic: NewTopic, rules: TopicRules, budget: int) -> list[tuple[int, ...]]:
    if topic.replication_factor < USE_DEFAULT or topic.replication_factor == 0:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    if topic.num_partitions < USE_DEFAULT or topic.num_partitions == 0:
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, "Number of partitions was set to an invalid non-positive value.")
    partitions = rules.default_num_partitions if topic.num_partitions == USE_DEFAULT else topic.num_partitions
    factor = topic.replication_factor
    if factor == USE_DEFAULT:
        factor = rules.default_replication_factor
    if partitions > budget:
        raise _too_many_partitions()
    try:
        return place_replicas(
            image.brokers.values(),
            partitions=partitions,
            replication_factor=factor,
            random_below=rules.random_below,
        )
    except KafkaError as error:
        message = f"Unable to replicate the partition {factor} time(s): {error.message}"
        raise KafkaError(error.code, message) from error


def _too_many_partitions() -> KafkaError:
    return KafkaError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def _assigned_replicas(image: ClusterImage, topic: NewTopic) -> list[tuple[int, ...]]:
    for value, word in ((topic.replication_factor, "replication factor"), (topic.num_partitions, "numPartitions")):
        if value != USE_DEFAULT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST,
                f"A manual partition assignment was specified, but {word} was not set to -1.",
            )
    assigned: dict[int, tuple[int, ...]] = {}
    factor: int | None = None
    for partition, brokers in topic.assignments:
        if partition in assigned:
            raise _bad_assignment(f"Found multiple manual partition assignments for partition {partition}")
        check_assignment(image, brokers, factor)
        factor = len(brokers)
        assigned[partition] = tuple(brokers)
    if any(index not in assigned for index in range(len(assigned))):
        raise _bad_assignment("partitions should be a consecutive 0-based integer sequence")
    return [assigned[index] for index in range(len(assigned))]


def check_assignment(image: ClusterImage, brokers: Sequence[int], factor: int | None) -> None:
    """KafkaError(INVALID_REPLICA_ASSIGNMENT) for replicas that one partition cannot have."""
    if not brokers:
        raise _bad_assignment("The manual partition assignment includes an empty replica list.")
    previous: int | None = None
    for broker in sorted(brokers):
        if broker not in image.brokers:
            raise _bad_assignment(
                f"The manual partition assignment includes broker {broker}, but no such broker is registered."
            )
        if broker == previous:
            raise _bad_assignment(f"The manual partition assignment includes the broker {broker} more than once.")
        previous = broker
    if factor is not None and len(brokers) != factor:
        raise _bad_assignment(
            f"The manual partition assignment includes a partition with {len(brokers)} replica(s), but this is not "
            f"consistent with previous partitions, which have {factor} replica(s)."
        )


def _bad_assignment(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


def plan_delete_topics(
    image: ClusterImage, request: Sequence[TopicReference]
) -> tuple[list[Delta], list[DeletedTopicResult]]:
    """One result for each reference, in their order; a reference given more than once gets one result, and a topic
    given both by name and by id is not deleted and gets the result of its name."""
    counts = Counter(request)
    by_id = {reference.topic_id for reference in request if reference.name is None}
    named = (image.topics.get(reference.name or "") for reference in request)
    by_name = {topic.id for topic in named if topic is not None}
    deltas: list[Delta] = []
    results: dict[TopicReference, DeletedTopicResult] = {}
    for reference in request:
        if reference in results or (reference.name is None and reference.topic_id in by_name):
            continue
        try:
            topic = _find_topic(image, reference, repeated=counts[reference] > 1)
            if reference.name is not None and topic.id in by_id:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, "The provided topic name maps to an ID that was already supplied."
                )
        except KafkaError as error:
            results[reference] = DeletedTopicResult(
                name=reference.name, topic_id=reference.topic_id, error=error.code, message=error.message
            )
            continue
        deltas.append(TopicDeleted(topic_id=topic.id))
        results[reference] = DeletedTopicResult(name=topic.name, topic_id=topic.id)
    return deltas, list(results.values())


def _find_topic(image: ClusterImage, reference: TopicReference, *, repeated: bool) -> TopicState:
    name, topic_id = reference
    if name is None:
        if topic_id == ZERO_UUID:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified.")
        if repeated:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic id.")
        topic = image.topic_by_id(topic_id)
        if topic is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
        return topic
    if topic_id != ZERO_UUID:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id.")
    if repeated:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
    return image.topics[name]
