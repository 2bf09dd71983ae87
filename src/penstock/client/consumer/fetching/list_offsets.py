"""Offsets by time, beginning or end, asked of the leaders (ListOffsets)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import error_for, is_retriable
from penstock.network.errors import NetworkError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

UNKNOWN_OFFSET: Final = -1


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after a time."""

    offset: int
    timestamp: int
    leader_epoch: int = -1


class Listed(NamedTuple):
    """What one leader said: offsets (None where no record is that late), and codes of what it did not find."""

    found: dict[TopicPartition, OffsetAndTimestamp | None]
    failed: dict[TopicPartition, ErrorCode]


def group_by_leader(
    snapshot: ClusterSnapshot, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
    """Partitions by leader, and those without one."""
    grouped: dict[int, list[TopicPartition]] = {}
    homeless: list[TopicPartition] = []
    for partition in partitions:
        leader = snapshot.leader(partition)
        if leader is None:
            homeless.append(partition)
        else:
            grouped.setdefault(leader, []).append(partition)
    return grouped, homeless


def list_offsets_request(
    snapshot: ClusterSnapshot, wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int
) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsPartition]] = {}
    for partition, timestamp in wanted.items():
        info = snapshot.partition(partition)
        topics.setdefault(partition.topic, []).append(
            ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=info.leader_epoch if info is not None else -1,
                timestamp=timestamp,
            )
        )
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        topics=[ListOffsetsTopic(name=name, partitions=each) for name, each in topics.items()],
        timeout_ms=timeout_ms,
    )


def read_listed(response: ListOffsetsResponse) -> Listed:
    listed = Listed({}, {})
    for topic in response.topics:
        for each in topic.partitions:
            partition = TopicPartition(topic.name, each.partition_index)
            code = error_for(each.error_code).code
            if code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT or (not code and each.offset == UNKNOWN_OFFSET):
                listed.found[partition] = None
            elif code:
                listed.failed[partition] = code
            else:
                listed.found[partition] = OffsetAndTimestamp(each.offset, each.timestamp, each.leader_epoch)
    return listed


async def ask_leader(
    core: ClientCore, node: int, wanted: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: float
) -> Listed:
    """One request, no second try."""
    request = list_offsets_request(core.metadata.snapshot, wanted, isolation_level, int(timeout_ms))
    response = await core.send(node, ApiKey.LIST_OFFSETS, request, timeout_ms=timeout_ms, at_least=1)
    return read_listed(response)


async def list_offsets(
    core: ClientCore, wanted: Mapping[TopicPartition, int], *, isolation_level: int, timeout_ms: float, what: str
) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """Offsets of all partitions, looked for until the time is over. The timestamps -2 and -1 mean beginning and end."""
    found: dict[TopicPartition, OffsetAndTimestamp | None] = {}
    core.metadata.want({partition.topic for partition in wanted})
    async for attempt in core.retry(timeout_ms=timeout_ms, what=what):
        left = {partition: wanted[partition] for partition in wanted if partition not in found}
        grouped, homeless = group_by_leader(core.metadata.snapshot, left)
        cause: BaseException | None = None
        if homeless:
            await _find_leaders(core, homeless, attempt.remaining_ms)
            grouped, homeless = group_by_leader(core.metadata.snapshot, left)
        if homeless:
            cause = error_for(ErrorCode.LEADER_NOT_AVAILABLE, f"{homeless[0]} has no leader")
        asks = [
            ask_leader(core, node, {each: left[each] for each in partitions}, isolation_level, attempt.remaining_ms)
            for node, partitions in grouped.items()
        ]
        for result in await asyncio.gather(*asks, return_exceptions=True):
            cause = _collect(result, found) or cause
        if len(found) == len(wanted):
            return found
        core.metadata.request_update(f"{what}: {cause}")
        attempt.failed(cause or error_for(ErrorCode.UNKNOWN_SERVER_ERROR, "the broker left out a partition"))
    raise AssertionError("unreachable")


async def _find_leaders(core: ClientCore, partitions: Iterable[TopicPartition], timeout_ms: float) -> None:
    """Wait until the topics are known. A partition beyond a topic's last one is an error of its own."""
    for topic in {partition.topic for partition in partitions}:
        info = await core.metadata.topic(topic, timeout_ms)
        for partition in partitions:
            if partition.topic == topic and partition.partition >= len(info.partitions):
                raise error_for(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"Topic {topic} has {len(info.partitions)} partitions: there is no {partition}.",
                )


def _collect(
    result: Listed | BaseException, found: dict[TopicPartition, OffsetAndTimestamp | None]
) -> BaseException | None:
    """Take what was found; why something was not, if it may be there at the next try."""
    if isinstance(result, Listed):
        found.update(result.found)
        for partition, code in result.failed.items():
            error = error_for(code, f"{partition}: {error_for(code).message}")
            if not is_retriable(error):
                raise error
            return error
        return None
    if isinstance(result, NetworkError | KafkaError) and is_retriable(result):
        return result
    raise result
