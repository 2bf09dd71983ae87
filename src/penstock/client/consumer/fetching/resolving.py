"""Positions that are missing or in doubt: asked of the leaders in the background, one request per node at a time.

`poll` looks for partitions in `AWAIT_RESET` (ListOffsets) and `AWAIT_VALIDATION` (OffsetForLeaderEpoch) whose pause is
over and starts the questions; an answer changes the partition's state if it still is what was asked about. Retriable
failures pause the partition; what the user must hear of goes to `errors`.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.fetching.list_offsets import Listed, OffsetAndTimestamp, ask_leader, group_by_leader
from penstock.client.consumer.fetching.settings import FetchSettings
from penstock.client.consumer.positions import FetchPosition, FetchStatus, PartitionState, ResetPolicy
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.errors import LogTruncated, NoOffsetForPartition, error_for, is_retriable
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

log = logging.getLogger(__name__)

_UNDEFINED = -1


class PositionResolver:
    def __init__(
        self,
        core: ClientCore,
        subscription: SubscriptionState,
        settings: FetchSettings,
        errors: deque[KafkaError],
        resolved: Callable[[], None],
    ) -> None:
        self._core = core
        self._clock = core.ports.clock
        self._subscription = subscription
        self._settings = settings
        self._errors = errors
        self._resolved = resolved
        self._asked: set[TopicPartition] = set()

    def kick(self) -> None:
        """Begin to ask about every partition that waits and whose pause is over."""
        resets = self._due(FetchStatus.AWAIT_RESET)
        validations = self._due(FetchStatus.AWAIT_VALIDATION)
        for node, partitions in self._by_leader(resets).items():
            self._asked.update(partitions)
            self._core.ports.tasks.spawn(self._reset(node, partitions), name=f"reset offsets at {node}")
        for node, partitions in self._by_leader(validations).items():
            self._asked.update(partitions)
            self._core.ports.tasks.spawn(self._validate(node, partitions), name=f"validate offsets at {node}")

    @property
    def next_try_s(self) -> float | None:
        """Seconds until a partition's pause is over; None when none waits."""
        waiting = [
            state.retry_at
            for partition, state in self._subscription.items()
            if state.status in (FetchStatus.AWAIT_RESET, FetchStatus.AWAIT_VALIDATION) and partition not in self._asked
        ]
        # A hair more: timers may be early, and a try before its time is none.
        return max(min(waiting) - self._clock.monotonic(), 0.0) + 0.002 if waiting else None

    def reset_missing(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions without a position and without a committed offset begin where the policy says, or cannot."""
        missing = [each for each in partitions if self._subscription.state(each).status is FetchStatus.INITIALIZING]
        if not missing:
            return
        if self._subscription.reset_policy.kind == "none":
            names = ", ".join(map(str, missing))
            raise NoOffsetForPartition(
                f"There is no committed offset for {names}, and auto.offset.reset is none: seek, or set the policy.",
                partitions=dict.fromkeys(missing),
            )
        for partition in missing:
            self._subscription.request_reset(partition)

    def _due(self, status: FetchStatus) -> list[TopicPartition]:
        partitions = self._subscription.in_status(status)
        if not partitions:
            return partitions
        now = self._clock.monotonic()
        state = self._subscription.state
        return [each for each in partitions if each not in self._asked and state(each).retry_at <= now]

    def _by_leader(self, partitions: list[TopicPartition]) -> dict[int, list[TopicPartition]]:
        if not partitions:
            return {}
        grouped, homeless = group_by_leader(self._core.metadata.snapshot, partitions)
        if homeless:
            self._delay(homeless)
            self._core.metadata.request_update(f"{homeless[0]} has no leader")
        return grouped

    def _delay(self, partitions: Iterable[TopicPartition]) -> None:
        now = self._clock.monotonic()
        for partition in partitions:
            if (state := self._subscription.get(partition)) is not None:
                state.delay_retry(now, self._settings.retry_backoff_s)

    def _failed(self, partitions: Iterable[TopicPartition], error: KafkaError) -> None:
        """The request, or the answer for these partitions, failed."""
        self._delay(partitions)
        if is_retriable(error):
            log.info("positions are not known yet: %s", error)
            self._core.metadata.request_update(str(error))
        else:
            self._errors.append(error)

    # Reset.

    async def _reset(self, node: int, partitions: list[TopicPartition]) -> None:
        asked = self._resets(partitions)
        now_ms = self._clock.time_ms()
        wanted = {}
        for partition, (policy, _) in asked.items():
            timestamp = policy.timestamp(now_ms)
            assert timestamp is not None
            wanted[partition] = timestamp
        try:
            listed = await ask_leader(
                self._core, node, wanted, self._settings.isolation_level, self._settings.request_timeout_ms
            )
            await self._take_resets(asked, listed)
        except KafkaError as error:
            self._failed(partitions, error)
        finally:
            self._asked.difference_update(partitions)
            self._resolved()

    def _resets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, tuple[ResetPolicy, int]]:
        found = {}
        for partition in partitions:
            state = self._subscription.get(partition)
            if state is not None and state.reset_policy is not None:
                found[partition] = state.reset_policy, state.generation
        return found

    async def _take_resets(self, asked: Mapping[TopicPartition, tuple[ResetPolicy, int]], listed: Listed) -> None:
        late: list[TopicPartition] = []
        for partition, found in listed.found.items():
            if found is None:
                late.append(partition)
            else:
                self._reset_to(partition, asked[partition][1], found)
        for partition, code in listed.failed.items():
            self._failed([partition], error_for(code, f"{partition}: {error_for(code).message}"))
        for partition in late:
            # No record is as young as the duration says: begin with the next one that comes.
            if (state := self._still(partition, asked[partition][1])) is not None:
                state.request_reset(ResetPolicy("latest"))

    def _still(self, partition: TopicPartition, generation: int) -> PartitionState | None:
        state = self._subscription.get(partition)
        return state if state is not None and state.generation == generation else None

    def _reset_to(self, partition: TopicPartition, generation: int, found: OffsetAndTimestamp) -> None:
        state = self._still(partition, generation)
        if state is None:
            return
        log.info("%s begins at offset %d", partition, found.offset)
        info = self._core.metadata.snapshot.partition(partition)
        leader, epoch = (info.leader, info.leader_epoch) if info is not None else (None, -1)
        # The leader just named the offset with its epoch: there is nothing to validate.
        state.seek(FetchPosition(found.offset, found.leader_epoch, leader, epoch))

    # Validation.

    async def _validate(self, node: int, partitions: list[TopicPartition]) -> None:
        asked = {
            partition: state.position
            for partition in partitions
            if (state := self._subscription.get(partition)) is not None and state.position is not None
        }
        try:
            response = await self._core.send(
                node,
                ApiKey.OFFSET_FOR_LEADER_EPOCH,
                _epoch_request(asked),
                timeout_ms=self._settings.request_timeout_ms,
            )
            self._take_epochs(asked, response)
        except KafkaError as error:
            if error.code is ErrorCode.UNSUPPORTED_VERSION:
                self._trust(partitions)
            else:
                self._failed(partitions, error)
        finally:
            self._asked.difference_update(partitions)
            self._resolved()

    def _trust(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            state = self._subscription.get(partition)
            if state is not None and state.status is FetchStatus.AWAIT_VALIDATION:
                state.skip_validation()

    def _take_epochs(
        self, asked: Mapping[TopicPartition, FetchPosition], response: OffsetForLeaderEpochResponse
    ) -> None:
        for topic in response.topics:
            for each in topic.partitions:
                partition = TopicPartition(topic.topic, each.partition)
                if each.error_code:
                    error = error_for(each.error_code)
                    self._failed([partition], error_for(each.error_code, f"{partition}: {error.message}"))
                elif partition in asked:
                    self._take_epoch(partition, asked[partition], each)

    def _take_epoch(self, partition: TopicPartition, asked: FetchPosition, end: EpochEndOffset) -> None:
        state = self._subscription.get(partition)
        if state is None or state.status is not FetchStatus.AWAIT_VALIDATION or state.position != asked:
            return
        is_unknown = end.end_offset == _UNDEFINED or end.leader_epoch == _UNDEFINED
        if not is_unknown and end.end_offset >= asked.offset:
            state.validated(asked)
        elif self._subscription.reset_policy.kind == "none":
            self._delay([partition])
            self._errors.append(_truncated(partition, asked, None if is_unknown else end))
        elif is_unknown:
            log.warning("%s: the leader knows nothing of epoch %d: reset", partition, asked.offset_epoch)
            self._subscription.request_reset(partition)
        else:
            log.warning("%s was truncated: from offset %d back to %d", partition, asked.offset, end.end_offset)
            state.seek(FetchPosition(end.end_offset, end.leader_epoch, asked.leader, asked.leader_epoch))


def _truncated(partition: TopicPartition, asked: FetchPosition, end: EpochEndOffset | None) -> LogTruncated:
    where = f" It parted at offset {end.end_offset}." if end is not None else ""
    return LogTruncated(
        f"The log of {partition} lost records that were read already: offset {asked.offset} of epoch "
        f"{asked.offset_epoch} is not there any more.{where} Seek to an offset that is there.",
        partitions={partition: asked.offset},
        divergent={partition: end.end_offset} if end is not None else {},
    )


def _epoch_request(asked: Mapping[TopicPartition, FetchPosition]) -> OffsetForLeaderEpochRequest:
    topics: dict[str, list[OffsetForLeaderPartition]] = {}
    for partition, position in asked.items():
        topics.setdefault(partition.topic, []).append(
            OffsetForLeaderPartition(
                partition=partition.partition,
                current_leader_epoch=position.leader_epoch,
                leader_epoch=position.offset_epoch,
            )
        )
    return OffsetForLeaderEpochRequest(
        replica_id=-1, topics=[OffsetForLeaderTopic(topic=name, partitions=each) for name, each in topics.items()]
    )
