"""Which topics there are, and what they look like now."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.enums import NOT_ASKED, AclOperation, operations
from penstock.client.admin.errors import Outcome, failure
from penstock.client.admin.topics import names_or_ids
from penstock.client.errors import UnsupportedByBroker
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    TopicRequest,
)
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicListing:
    """One line of `list_topics`."""

    name: str
    topic_id: UUID
    is_internal: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """One partition; brokers are told by their ids."""

    partition: int
    leader: int | None
    leader_epoch: int
    replicas: tuple[int, ...]
    """As assigned: the first is the preferred leader."""
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None = None
    """None where the broker does not tell (KIP-966)."""
    last_known_elr: tuple[int, ...] | None = None

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic and its partitions."""

    name: str
    topic_id: UUID
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    """By number."""
    authorized_operations: frozenset[AclOperation] | None = None
    """None if they were not asked for."""

    @property
    def replication_factor(self) -> int:
        """That of the first partition."""
        return len(self.partitions[0].replicas) if self.partitions else 0


async def list_topics(
    asker: Asker, *, include_internal: bool = False, timeout_ms: float | None = None
) -> dict[str, TopicListing]:
    """All topics that the user may see, by name."""
    answer = await asker.metadata(None, timeout_ms=timeout_ms)
    return {
        each.name: TopicListing(name=each.name, topic_id=each.topic_id, is_internal=each.is_internal)
        for each in sorted(answer.topics, key=lambda topic: str(topic.name))
        if each.name is not None and (include_internal or not each.is_internal)
    }


async def describe_topics(
    asker: Asker,
    topics: Iterable[str | UUID],
    *,
    include_authorized_operations: bool = False,
    page_size: int = 2000,
    timeout_ms: float | None = None,
) -> dict[str | UUID, TopicDescription]:
    """Topics with their partitions, by name or by id, as they were asked for. `page_size` partitions come at a time."""
    wanted = names_or_ids(topics)
    checks.number(page_size, "page_size", at_least=1)
    names = [each for each in wanted if isinstance(each, str)]
    ids = [each for each in wanted if isinstance(each, UUID)]
    outcome: Outcome[str | UUID, TopicDescription] = Outcome()
    if names:
        try:
            await _by_pages(asker, names, page_size, include_authorized_operations, timeout_ms, outcome)
        except UnsupportedByBroker:
            request = [MetadataRequestTopic(name=name) for name in names]
            await _at_once(asker, request, include_authorized_operations, timeout_ms, outcome, at_least=4)
    if ids:
        by_id = [MetadataRequestTopic(topic_id=each, name=None) for each in ids]
        await _at_once(asker, by_id, include_authorized_operations, timeout_ms, outcome, at_least=12)
    outcome.missing({each: f"topic {each}" for each in wanted})
    return outcome.result()


async def _by_pages(
    asker: Asker,
    names: list[str],
    page_size: int,
    with_operations: bool,
    timeout_ms: float | None,
    outcome: Outcome[Any, TopicDescription],
) -> None:
    """A topic may be spread over several pages; the broker answers in the order of names."""
    pages: dict[str, list[Any]] = {}
    last: dict[str, Any] = {}
    cursor: Cursor | None = None
    while True:
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in sorted(names) if cursor is None or name >= cursor.topic_name],
            response_partition_limit=page_size,
            cursor=cursor,
        )
        answer: DescribeTopicPartitionsResponse = await asker.any(
            ApiKey.DESCRIBE_TOPIC_PARTITIONS, request, timeout_ms=timeout_ms
        )
        for each in answer.topics:
            pages.setdefault(str(each.name), []).extend(each.partitions)
            last[str(each.name)] = each
        if answer.next_cursor is None or answer.next_cursor == cursor:
            break
        cursor = answer.next_cursor
    for name, topic in last.items():
        described = _described(topic, pages[name], topic.topic_authorized_operations if with_operations else NOT_ASKED)
        outcome.add(name, described, topic.error_code, f"topic {name}")


async def _at_once(
    asker: Asker,
    topics: list[MetadataRequestTopic],
    with_operations: bool,
    timeout_ms: float | None,
    outcome: Outcome[Any, TopicDescription],
    *,
    at_least: int,
) -> None:
    request = MetadataRequest(
        topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=with_operations
    )
    answer: MetadataResponse = await asker.any(ApiKey.METADATA, request, timeout_ms=timeout_ms, at_least=at_least)
    if answer.error_code:
        raise failure("describing topics", answer.error_code)
    by_id = topics[0].name is None
    for each in answer.topics:
        key = each.topic_id if by_id else each.name
        described = _described(each, each.partitions, each.topic_authorized_operations)
        outcome.add(key, described, each.error_code, f"topic {key}")


def _described(topic: Any, partitions: Iterable[Any], bits: int) -> TopicDescription:
    return TopicDescription(
        name=topic.name or "",
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=tuple(_partition(each) for each in sorted(partitions, key=lambda it: int(it.partition_index))),
        authorized_operations=operations(bits),
    )


def _partition(each: Any) -> PartitionDescription:
    return PartitionDescription(
        partition=each.partition_index,
        leader=each.leader_id if each.leader_id >= 0 else None,
        leader_epoch=each.leader_epoch,
        replicas=tuple(each.replica_nodes),
        isr=tuple(each.isr_nodes),
        offline=tuple(each.offline_replicas),
        eligible_leader_replicas=_optional(getattr(each, "eligible_leader_replicas", None)),
        last_known_elr=_optional(getattr(each, "last_known_elr", None)),
    )


def _optional(brokers: list[int] | None) -> tuple[int, ...] | None:
    return None if brokers is None else tuple(brokers)
