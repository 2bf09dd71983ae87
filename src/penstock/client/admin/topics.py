"""Topics: create, delete, list, describe, add partitions.

Changes go to the controller. Descriptions are asked for page by page (DescribeTopicPartitions) where the broker serves
that, else all at once (Metadata), which lacks the eligible leader replicas of KIP-966.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, while_throttled
from penstock.client.admin.config_values import ConfigEntry
from penstock.client.admin.enums import ConfigSource, numbered
from penstock.client.admin.errors import InvalidInput, Outcome
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from penstock.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicResult,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState


@dataclass(frozen=True, slots=True)
class NewTopic:
    """A topic to create. Without numbers the broker's defaults hold (`num.partitions`,
    `default.replication.factor`); with `assignments` (partition to brokers, the preferred leader first) there are none.
    """

    name: str
    num_partitions: int | None = None
    replication_factor: int | None = None
    assignments: Mapping[int, Sequence[int]] | None = None
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPartitions:
    """The number of partitions that a topic is to have in all; where the new ones go, if that matters."""

    total_count: int
    assignments: Sequence[Sequence[int]] | None = None
    """Brokers of each new partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """What a topic became. The numbers and configs are absent (-1, empty) if the user may not see them."""

    name: str
    topic_id: UUID
    num_partitions: int
    replication_factor: int
    configs: Mapping[str, ConfigEntry]


async def create_topics(
    asker: Asker,
    topics: Iterable[NewTopic | str],
    *,
    validate_only: bool = False,
    retry_on_quota_violation: bool = True,
    timeout_ms: float | None = None,
) -> dict[str, CreatedTopic]:
    """Create topics: `NewTopic`s, or names where the broker's defaults will do.

    `validate_only` checks everything and creates nothing. What a quota on changes refuses is asked for again until the
    time is over, unless `retry_on_quota_violation` is off.
    """
    wanted = {each.name: each for each in _new_topics(topics)}

    async def ask(names: list[str], remaining_ms: float) -> tuple[Outcome[str, CreatedTopic], float]:
        request = CreateTopicsRequest(
            topics=[_creatable(wanted[name]) for name in names],
            timeout_ms=asker.server_ms(remaining_ms),
            validate_only=validate_only,
        )
        answer = await asker.controller(
            ApiKey.CREATE_TOPICS,
            request,
            timeout_ms=remaining_ms,
            codes=lambda it: (each.error_code for each in it.topics),
        )
        outcome: Outcome[str, CreatedTopic] = Outcome()
        for each in answer.topics:
            outcome.add(each.name, _created(each), each.error_code, f"topic {each.name}", each.error_message)
        outcome.missing({name: f"topic {name}" for name in names})
        return outcome, answer.throttle_time_ms

    if not retry_on_quota_violation:
        return (await ask(list(wanted), asker.limit_ms(timeout_ms)))[0].result()
    return (await while_throttled(asker, list(wanted), ask, timeout_ms)).result()


def _new_topics(topics: Iterable[NewTopic | str]) -> list[NewTopic]:
    found = [NewTopic(name=each) if isinstance(each, str) else each for each in checks.items(topics, "topics")]
    for each in found:
        checks.name(checks.instance(each, NewTopic, "a topic to create").name, "topics")
    if len({each.name for each in found}) < len(found):
        raise InvalidInput("a topic is to be created twice: " + ", ".join(sorted(each.name for each in found)))
    return found


def _creatable(topic: NewTopic) -> CreatableTopic:
    what = f"of topic {topic.name}"
    if topic.assignments is not None and (topic.num_partitions, topic.replication_factor) != (None, None):
        raise InvalidInput(
            f"the assignments {what} say how many partitions and replicas there are: give no numbers too"
        )
    count, factor = topic.num_partitions, topic.replication_factor
    return CreatableTopic(
        name=topic.name,
        num_partitions=-1 if count is None else checks.number(count, f"num_partitions {what}", at_least=-1),
        replication_factor=-1
        if factor is None
        else checks.number(factor, f"replication_factor {what}", at_least=-1, at_most=32767),
        assignments=[
            CreatableReplicaAssignment(partition_index=partition, broker_ids=list(brokers))
            for partition, brokers in (topic.assignments or {}).items()
        ],
        configs=[
            CreatableTopicConfig(name=checks.name(key, f"configs {what}"), value=None if value is None else str(value))
            for key, value in topic.configs.items()
        ],
    )


def _created(result: CreatableTopicResult) -> CreatedTopic:
    configs = {
        each.name: ConfigEntry(
            name=each.name,
            value=each.value,
            source=numbered(ConfigSource, each.config_source),
            is_read_only=each.read_only,
            is_sensitive=each.is_sensitive,
        )
        for each in result.configs or ()
    }
    return CreatedTopic(
        name=result.name,
        topic_id=result.topic_id,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=configs,
    )


async def delete_topics(
    asker: Asker,
    topics: Iterable[str | UUID],
    *,
    retry_on_quota_violation: bool = True,
    timeout_ms: float | None = None,
) -> dict[str | UUID, None]:
    """Delete topics, by name or by id."""
    wanted = {str(each): each for each in names_or_ids(topics)}
    by_id = any(isinstance(each, UUID) for each in wanted.values())

    async def ask(keys: list[str], remaining_ms: float) -> tuple[Outcome[str, None], float]:
        answer = await asker.controller(
            ApiKey.DELETE_TOPICS,
            lambda version: _deletion([wanted[key] for key in keys], version, asker.server_ms(remaining_ms)),
            timeout_ms=remaining_ms,
            at_least=6 if by_id else 0,
            codes=lambda it: (each.error_code for each in it.responses),
        )
        outcome: Outcome[str, None] = Outcome()
        for each in answer.responses:
            key = str(each.topic_id) if str(each.topic_id) in wanted else str(each.name)
            outcome.add(key, None, each.error_code, f"topic {key}", each.error_message)
        outcome.missing({key: f"topic {key}" for key in keys})
        return outcome, answer.throttle_time_ms

    if not retry_on_quota_violation:
        outcome = (await ask(list(wanted), asker.limit_ms(timeout_ms)))[0]
    else:
        outcome = await while_throttled(asker, list(wanted), ask, timeout_ms)
    return {wanted[key]: None for key in outcome.result()}


def _deletion(topics: list[str | UUID], version: int, timeout_ms: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[str(each) for each in topics], timeout_ms=timeout_ms)
    states = [
        DeleteTopicState(topic_id=each) if isinstance(each, UUID) else DeleteTopicState(name=each) for each in topics
    ]
    return DeleteTopicsRequest(topics=states, timeout_ms=timeout_ms)


def names_or_ids(topics: object) -> list[str | UUID]:
    found = checks.items([topics] if isinstance(topics, UUID) else topics, "topics")
    for each in found:
        if isinstance(each, UUID) and each == ZERO_UUID:
            raise InvalidInput("the id of no topic is zero")
        if not isinstance(each, UUID):
            checks.name(each, "topics")
    return found


async def create_partitions(
    asker: Asker,
    topics: Mapping[str, NewPartitions | int],
    *,
    validate_only: bool = False,
    retry_on_quota_violation: bool = True,
    timeout_ms: float | None = None,
) -> dict[str, None]:
    """Give topics more partitions: how many each is to have in all. There is no way back."""
    wanted = {
        checks.name(name, "topics"): _grown(name, each) for name, each in checks.mapping(topics, "topics").items()
    }

    async def ask(names: list[str], remaining_ms: float) -> tuple[Outcome[str, None], float]:
        request = CreatePartitionsRequest(
            topics=[wanted[name] for name in names],
            timeout_ms=asker.server_ms(remaining_ms),
            validate_only=validate_only,
        )
        answer: Any = await asker.controller(
            ApiKey.CREATE_PARTITIONS,
            request,
            timeout_ms=remaining_ms,
            codes=lambda it: (each.error_code for each in it.results),
        )
        outcome: Outcome[str, None] = Outcome()
        for each in answer.results:
            outcome.add(each.name, None, each.error_code, f"topic {each.name}", each.error_message)
        outcome.missing({name: f"topic {name}" for name in names})
        return outcome, answer.throttle_time_ms

    if not retry_on_quota_violation:
        return (await ask(list(wanted), asker.limit_ms(timeout_ms)))[0].result()
    return (await while_throttled(asker, list(wanted), ask, timeout_ms)).result()


def _grown(name: str, partitions: NewPartitions | int) -> CreatePartitionsTopic:
    chosen = NewPartitions(total_count=partitions) if isinstance(partitions, int) else partitions
    checks.instance(chosen, NewPartitions, f"the number of partitions of topic {name}")
    assignments = chosen.assignments
    return CreatePartitionsTopic(
        name=name,
        count=checks.number(chosen.total_count, f"the number of partitions of topic {name}", at_least=1),
        assignments=None
        if assignments is None
        else [CreatePartitionsAssignment(broker_ids=list(each)) for each in assignments],
    )
