"""The group's offsets at its coordinator: one OffsetCommit, and OffsetFetch until it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import ZERO_UUID, TopicPartition
from penstock.client.consumer.group.offsets_wire import (
    VERSION_BY_NAME,
    Fetched,
    commit_codes,
    commit_request,
    fetch_code,
    fetch_request,
    fetched_offsets,
)
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ConsumerGroupMetadata, CoordinatorKind, OffsetAndMetadata
from penstock.client.errors import InvalidState, KafkaTimeout, UnsupportedByBroker, error_for, is_retriable
from penstock.network.errors import UnsupportedVersion
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import ApiKey

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
Found = dict[TopicPartition, OffsetAndMetadata | None]

UNKNOWN_TOPIC: Final = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID})
_COORDINATOR_GONE: Final = frozenset(
    {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}
)
_MEMBER_REFUSED: Final = frozenset(
    {
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.ILLEGAL_GENERATION,
        ErrorCode.REBALANCE_IN_PROGRESS,
        ErrorCode.FENCED_INSTANCE_ID,
    }
)

Refused = Callable[[int, ConsumerGroupMetadata], None]


class CoordinatorOffsets:
    def __init__(self, core: ClientCore, group_id: str | None, order: asyncio.Lock) -> None:
        """`order` is held until a commit is on its way: requests leave in the order of the calls."""
        self._core = core
        self._group_id = group_id
        self._order = order

    @property
    def group(self) -> str:
        if self._group_id is None:
            raise InvalidState("Offsets are kept for a group: set group.id.")
        return self._group_id

    # Committing.

    async def try_commit(
        self, offsets: Offsets, identify: Callable[[], ConsumerGroupMetadata], refused: Refused, timeout_ms: float
    ) -> KafkaError | None:
        """One request; what went wrong is the result. `refused` hears a code that is about the member."""
        group, (ids, at_most) = self.group, self._ids_of(offsets)
        try:
            async with self._order:
                identity = identify()
                node = await self._core.coordinator(CoordinatorKind.GROUP, group, timeout_ms=timeout_ms)
                request = commit_request(identity, offsets, ids)
                under_way = self._core.send(
                    node, ApiKey.OFFSET_COMMIT, request, timeout_ms=max(1.0, timeout_ms), at_most=at_most
                )
        except KafkaTimeout as error:
            return error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE, str(error))
        except KafkaError as error:
            return error
        try:
            answer = await under_way
        except UnsupportedVersion as error:
            return UnsupportedByBroker(str(error))
        except KafkaError as error:
            self._core.coordinator_lost(CoordinatorKind.GROUP, group, node)
            return error
        return self._judge(commit_codes(answer, ids), identity, node, refused)

    def _judge(
        self, codes: Mapping[TopicPartition, int], identity: ConsumerGroupMetadata, node: int, refused: Refused
    ) -> KafkaError | None:
        """The error of the whole request: one that cannot be cured before one that can."""
        failed = {partition: ErrorCode.of(code) for partition, code in codes.items() if code}
        if not failed:
            return None
        partition, code = min(failed.items(), key=lambda item: (item[1].retriable, item[0]))
        self._maybe_refresh(code)
        if code in _COORDINATOR_GONE:
            self._core.coordinator_lost(CoordinatorKind.GROUP, self.group, node)
        if code in _MEMBER_REFUSED:
            refused(code, identity)
            return _refusal(code, self.group)
        return error_for(code, f"{partition}: {error_for(code).message}")

    # Reading back.

    async def committed(self, wanted: list[TopicPartition], timeout_ms: float | None) -> Found:
        """None where nothing was committed."""
        if not wanted:
            return {}
        async for attempt in self._core.retry(timeout_ms=timeout_ms, what=f"reading offsets of group {self.group}"):
            ids, at_most = self._ids_of(wanted)
            answer = await self._core.ask_coordinator(
                CoordinatorKind.GROUP,
                self.group,
                ApiKey.OFFSET_FETCH,
                fetch_request(self.group, wanted, ids),
                timeout_ms=attempt.remaining_ms,
                at_most=at_most,
                codes=lambda answer: (fetch_code(answer),),
            )
            found: Found = dict.fromkeys(wanted)
            error = self._read(fetch_code(answer), fetched_offsets(answer, ids), found)
            if error is None:
                return found
            if not is_retriable(error) or ErrorCode.of(error.code) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                raise error
            attempt.failed(error)
        raise AssertionError("a retry ends by returning or raising")

    def _read(self, code: int, offsets: Iterable[Fetched], found: Found) -> KafkaError | None:
        if code:
            return error_for(code, f"Group {self.group}: {error_for(code).message}")
        for partition, partition_code, offset in offsets:
            if partition_code:
                self._maybe_refresh(partition_code)
                return error_for(partition_code, f"{partition}: {error_for(partition_code).message}")
            found[partition] = offset if offset.offset >= 0 else None
        return None

    # Inside.

    def _maybe_refresh(self, code: int) -> None:
        if code in UNKNOWN_TOPIC:
            self._core.metadata.request_update("a topic of a commit is not known")

    def _ids_of(self, partitions: Iterable[TopicPartition]) -> tuple[dict[str, UUID], int]:
        """Ids of the topics, and the highest version that can be used."""
        topics = self._core.metadata.snapshot.topics
        ids: dict[str, UUID] = {}
        for name in {each.topic for each in partitions}:
            info = topics.get(name)
            if info is None or info.topic_id == ZERO_UUID:
                return {}, VERSION_BY_NAME
            ids[name] = info.topic_id
        return ids, VERSION_MAX


def _refusal(code: ErrorCode, group: str) -> KafkaError:
    texts = {
        ErrorCode.FENCED_INSTANCE_ID: (
            f"Group {group}: another member has the same group.instance.id, so the offsets were not committed; "
            "give every member an instance id of its own."
        ),
        ErrorCode.REBALANCE_IN_PROGRESS: (
            f"Group {group}: a rebalance is under way and the offsets were not committed; poll, then commit again."
        ),
    }
    return error_for(code, texts.get(code, MOVED_ON.format(group=group)))


MOVED_ON: Final = (
    "Group {group}: the group has moved on without this member and gave its partitions to others, so the offsets were "
    "not committed. If that is because records took too long, raise max.poll.interval.ms or lower max.poll.records; "
    "poll to join again."
)
