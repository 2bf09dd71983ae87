"""Committed offsets of groups: list, alter, delete. The group's coordinator is asked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, by_topic
from penstock.client.admin.errors import InvalidInput, Outcome, failure
from penstock.client.core.types import CoordinatorKind, OffsetAndMetadata
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)

_GROUP: Final = CoordinatorKind.GROUP
_BY_NAME: Final = 9
"""Version 10 of both requests names topics by their ids."""
_INT64_MAX: Final = 2**63 - 1

Offsets = dict[TopicPartition, OffsetAndMetadata | None]


async def list_group_offsets(
    asker: Asker,
    groups: Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
    *,
    require_stable: bool = False,
    timeout_ms: float | None = None,
) -> dict[str, Offsets]:
    """Committed offsets of groups: of all partitions, or by a mapping of groups to partitions.

    A partition that was named and has no offset is None. `require_stable` waits for transactions that commit offsets.
    """
    wanted = _wanted(groups)

    async def one(group: str) -> Offsets:
        answer = await asker.coordinator(
            _GROUP,
            group,
            ApiKey.OFFSET_FETCH,
            lambda version: _fetching(group, wanted[group], require_stable, version),
            _fetch_codes,
            timeout_ms=timeout_ms,
            at_most=_BY_NAME,
            at_least=7 if require_stable else 2,
        )
        return _fetched(group, answer, wanted[group])

    return (await asker.each_coordinator(_GROUP, list(wanted), one, timeout_ms=timeout_ms)).result()


def _wanted(groups: object) -> dict[str, list[TopicPartition] | None]:
    if not isinstance(groups, Mapping):
        return dict.fromkeys(checks.names(groups, "groups"))
    return {
        checks.name(group, "groups"): None if each is None else checks.partitions(each)
        for group, each in checks.mapping(groups, "partitions by group").items()
    }


def _fetching(
    group: str, partitions: list[TopicPartition] | None, require_stable: bool, version: int
) -> OffsetFetchRequest:
    topics = None if partitions is None else by_topic(partitions)
    if version < 8:
        flat = None if topics is None else [
            OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in topics.items()
        ]  # fmt: skip
        return OffsetFetchRequest(group_id=group, topics=flat, require_stable=require_stable)
    nested = None if topics is None else [
        OffsetFetchRequestTopics(name=name, partition_indexes=each) for name, each in topics.items()
    ]  # fmt: skip
    asked = OffsetFetchRequestGroup(group_id=group, topics=nested)
    return OffsetFetchRequest(groups=[asked], require_stable=require_stable)


def _part(answer: Any) -> Any:
    """The group's part of the answer: since version 8 there is one for each group."""
    return answer.groups[0] if answer.groups else answer


def _fetch_codes(answer: Any) -> Iterator[int]:
    part = _part(answer)
    yield part.error_code
    for topic in part.topics:
        for each in topic.partitions:
            yield each.error_code


def _fetched(group: str, answer: Any, asked: list[TopicPartition] | None) -> Offsets:
    part = _part(answer)
    if part.error_code:
        raise failure(f"group {group}", part.error_code)
    found: Offsets = dict.fromkeys(asked or ())
    for topic in part.topics:
        for each in topic.partitions:
            tp = TopicPartition(topic.name, each.partition_index)
            if each.error_code:
                raise failure(f"the offset of {tp} of group {group}", each.error_code)
            if each.committed_offset >= 0:
                found[tp] = OffsetAndMetadata(each.committed_offset, each.metadata or "", each.committed_leader_epoch)
    return found


async def alter_group_offsets(
    asker: Asker,
    group: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, None]:
    """Set committed offsets of a group, which must have no members."""
    wanted = {
        checks.partition(tp): _offset(tp, each) for tp, each in checks.mapping(offsets, "offsets by partition").items()
    }
    topics = [
        OffsetCommitRequestTopic(
            name=topic, partitions=[_committing(each, wanted[TopicPartition(topic, each)]) for each in numbers]
        )
        for topic, numbers in by_topic(wanted).items()
    ]
    answer = await asker.coordinator(
        _GROUP,
        checks.name(group, "groups"),
        ApiKey.OFFSET_COMMIT,
        OffsetCommitRequest(group_id=group, topics=topics),
        _codes,
        timeout_ms=timeout_ms,
        at_most=_BY_NAME,
    )
    return _by_partition(group, answer)


def _offset(tp: object, value: object) -> OffsetAndMetadata:
    chosen = OffsetAndMetadata(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not isinstance(chosen, OffsetAndMetadata):
        raise InvalidInput(f"the offset of {tp} is a number or OffsetAndMetadata, not {checks.shown(value)}")
    checks.number(chosen.offset, f"the offset of {tp}", at_most=_INT64_MAX)
    return chosen


def _committing(partition: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


async def delete_group_offsets(
    asker: Asker, group: str, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
) -> dict[TopicPartition, None]:
    """Delete committed offsets of a group. No member may subscribe to the topics."""
    topics = [
        OffsetDeleteRequestTopic(
            name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=each) for each in numbers]
        )
        for topic, numbers in by_topic(checks.partitions(partitions)).items()
    ]
    answer = await asker.coordinator(
        _GROUP,
        checks.name(group, "groups"),
        ApiKey.OFFSET_DELETE,
        OffsetDeleteRequest(group_id=group, topics=topics),
        lambda it: (it.error_code, *_codes(it)),
        timeout_ms=timeout_ms,
    )
    if answer.error_code:
        raise failure(f"group {group}", answer.error_code)
    return _by_partition(group, answer)


def _codes(answer: Any) -> Iterator[int]:
    return (each.error_code for topic in answer.topics for each in topic.partitions)


def _by_partition(group: str, answer: Any) -> dict[TopicPartition, None]:
    outcome: Outcome[TopicPartition, None] = Outcome()
    for topic in answer.topics:
        for each in topic.partitions:
            tp = TopicPartition(topic.name, each.partition_index)
            outcome.add(tp, None, each.error_code, f"the offset of {tp} of group {group}", _hint(each.error_code))
    return outcome.result()


def _hint(code: int) -> str | None:
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        return "the group has members: stop them first"
    if code == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC:
        return "the group's members subscribe to the topic: stop them first"
    return None
