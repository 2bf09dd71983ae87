"""Offsets of partitions by kind or time, and the deletion of records: both are asked of the leaders."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar, Final

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, by_topic
from penstock.client.admin.enums import IsolationLevel
from penstock.client.admin.errors import InvalidInput, Outcome
from penstock.client.admin.leaders import ask_leaders
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from penstock.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

_INT64_MAX: Final = 2**63 - 1
_VERSION_OF: Final = {-3: 7, -4: 8, -5: 9, -6: 11}
"""Which version of ListOffsets brought a kind."""


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    """Which offset of a partition is wanted: `OffsetSpec.LATEST`, `OffsetSpec.at(timestamp_ms)`."""

    timestamp: int
    """Milliseconds, or a negative number of the wire for one of the kinds."""

    EARLIEST: ClassVar[OffsetSpec]
    """The first offset that can be read."""
    LATEST: ClassVar[OffsetSpec]
    """The offset of the next record; with READ_COMMITTED, the last stable offset."""
    MAX_TIMESTAMP: ClassVar[OffsetSpec]
    """The record with the greatest timestamp."""
    EARLIEST_LOCAL: ClassVar[OffsetSpec]
    """The first offset on the broker's own disk."""
    LATEST_TIERED: ClassVar[OffsetSpec]
    """The last offset in remote storage."""
    EARLIEST_PENDING_UPLOAD: ClassVar[OffsetSpec]
    """The first offset that is not in remote storage yet."""

    @classmethod
    def at(cls, when: int | datetime) -> OffsetSpec:
        """The first record whose timestamp is this or later: milliseconds, or a datetime that knows its zone."""
        if isinstance(when, datetime):
            if when.tzinfo is None:
                raise InvalidInput(f"the time {when} has no zone: use datetime(..., tzinfo=timezone.utc)")
            return cls(int(when.timestamp() * 1000))
        return cls(checks.number(when, "a timestamp in milliseconds", at_most=_INT64_MAX))


OffsetSpec.EARLIEST = OffsetSpec(-2)
OffsetSpec.LATEST = OffsetSpec(-1)
OffsetSpec.MAX_TIMESTAMP = OffsetSpec(-3)
OffsetSpec.EARLIEST_LOCAL = OffsetSpec(-4)
OffsetSpec.LATEST_TIERED = OffsetSpec(-5)
OffsetSpec.EARLIEST_PENDING_UPLOAD = OffsetSpec(-6)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffset:
    """An offset that was asked for. -1: there is no such record."""

    offset: int
    timestamp: int
    """Of the record; -1 where the offset was not looked for by time."""
    leader_epoch: int | None


async def list_offsets(
    asker: Asker,
    specs: Mapping[TopicPartition, OffsetSpec],
    *,
    isolation_level: IsolationLevel | str = IsolationLevel.READ_UNCOMMITTED,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, ListedOffset]:
    """Offsets of partitions: the first, the next, or by time, as `OffsetSpec` says for each."""
    wanted = {
        checks.partition(tp): checks.instance(spec, OffsetSpec, f"the offset that is wanted of {tp}")
        for tp, spec in checks.mapping(specs, "offsets by partition").items()
    }
    isolation = checks.member(isolation_level, IsolationLevel, "the isolation level")

    def build(partitions: list[TopicPartition]) -> ListOffsetsRequest:
        topics = [
            ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsPartition(partition_index=each, timestamp=wanted[TopicPartition(topic, each)].timestamp)
                    for each in numbers
                ],
            )
            for topic, numbers in by_topic(partitions).items()
        ]
        return ListOffsetsRequest(
            replica_id=-1, isolation_level=isolation, topics=topics, timeout_ms=asker.server_ms(timeout_ms)
        )

    # Kinds that only newer brokers know are asked for apart, so that they cannot spoil the rest.
    groups: dict[int, list[TopicPartition]] = defaultdict(list)
    for tp, spec in wanted.items():
        groups[_VERSION_OF.get(spec.timestamp, 0)].append(tp)
    outcome: Outcome[TopicPartition, ListedOffset] = Outcome()
    for at_least, group in groups.items():
        found = await ask_leaders(
            asker, ApiKey.LIST_OFFSETS, group, build, _listed, timeout_ms=timeout_ms, at_least=at_least
        )
        outcome.join(found)
    return outcome.result()


def _listed(answer: Any) -> Iterator[tuple[TopicPartition, int, str | None, ListedOffset]]:
    for topic in answer.topics:
        for each in topic.partitions:
            epoch = each.leader_epoch if each.leader_epoch >= 0 else None
            found = ListedOffset(offset=each.offset, timestamp=each.timestamp, leader_epoch=epoch)
            yield TopicPartition(topic.name, each.partition_index), each.error_code, None, found


async def delete_records(
    asker: Asker, before: Mapping[TopicPartition, int], *, timeout_ms: float | None = None
) -> dict[TopicPartition, int]:
    """Delete the records before an offset (-1: all) of each partition; gives the first offsets that are left."""
    wanted = {
        checks.partition(tp): checks.number(offset, f"the offset of {tp}", at_least=-1, at_most=_INT64_MAX)
        for tp, offset in checks.mapping(before, "offsets by partition").items()
    }

    def build(partitions: Iterable[TopicPartition]) -> DeleteRecordsRequest:
        topics = [
            DeleteRecordsTopic(
                name=topic,
                partitions=[
                    DeleteRecordsPartition(partition_index=each, offset=wanted[TopicPartition(topic, each)])
                    for each in numbers
                ],
            )
            for topic, numbers in by_topic(partitions).items()
        ]
        return DeleteRecordsRequest(topics=topics, timeout_ms=asker.server_ms(timeout_ms))

    outcome = await ask_leaders(asker, ApiKey.DELETE_RECORDS, wanted, build, _deleted, timeout_ms=timeout_ms)
    return outcome.result()


def _deleted(answer: Any) -> Iterator[tuple[TopicPartition, int, str | None, int]]:
    for topic in answer.topics:
        for each in topic.partitions:
            beyond = "there are no such records: give an offset up to the end, or -1 for it"
            text = beyond if each.error_code == ErrorCode.OFFSET_OUT_OF_RANGE else None
            yield TopicPartition(topic.name, each.partition_index), each.error_code, text, each.low_watermark
