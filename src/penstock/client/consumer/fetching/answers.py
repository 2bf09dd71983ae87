"""What an answer to a fetch means for each partition in it.

Records go to the buffer, if they are what the partition waits for: a seek or a new assignment may have come between.
Errors are Kafka's: some say that the leader is elsewhere, some pass by themselves, some are for the user (`errors`).
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Final
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import ZERO_UUID, TopicPartition
from penstock.client.consumer.fetching.aborted import AbortedFilter
from penstock.client.consumer.fetching.buffer import FetchBuffer
from penstock.client.consumer.fetching.partition_fetch import PartitionFetch, next_offset_behind
from penstock.client.consumer.fetching.response import FetchAnswer, FetchedPartition
from penstock.client.consumer.fetching.session import FetchSession
from penstock.client.consumer.fetching.settings import FetchSettings
from penstock.client.consumer.positions import FetchStatus, PartitionState
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.errors import OffsetOutOfRange, error_for

log = logging.getLogger(__name__)

_ASK_METADATA: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)
_TRY_AGAIN: Final = frozenset({ErrorCode.UNKNOWN_LEADER_EPOCH, ErrorCode.UNKNOWN_SERVER_ERROR})


class FetchAnswers:
    def __init__(
        self,
        core: ClientCore,
        subscription: SubscriptionState,
        settings: FetchSettings,
        buffer: FetchBuffer,
        errors: deque[KafkaError],
        pause: Callable[[TopicPartition], None],
    ) -> None:
        self._core = core
        self._clock = core.ports.clock
        self._subscription = subscription
        self._settings = settings
        self._buffer = buffer
        self._errors = errors
        self._pause = pause

    def take(self, session: FetchSession, answer: FetchAnswer) -> None:
        """Every partition of an answer that counts."""
        names = self._names(session, answer)
        for fetched in answer.partitions:
            topic = fetched.topic or names.get(fetched.topic_id)
            if topic is None:
                continue
            partition = TopicPartition(topic, fetched.partition)
            asked = session.partitions.get(partition)
            state = self._subscription.get(partition)
            if asked is None or state is None or state.status is not FetchStatus.FETCHING:
                continue
            if self._buffer.next_offset(partition, state) != asked.offset:
                log.debug("records of %s at %d are for a position that was left", partition, asked.offset)
                continue
            if fetched.error_code == ErrorCode.NONE:
                self._records(answer, fetched, partition, state, asked.offset)
            else:
                self._partition_failed(answer, fetched, partition, state, asked.offset)

    def _names(self, session: FetchSession, answer: FetchAnswer) -> dict[UUID, str]:
        """Names of the topics in the answer. Metadata may know one id no more that was asked for."""
        names: dict[UUID, str] = {}
        known = self._core.metadata.snapshot.names_by_id
        for fetched in answer.partitions:
            topic_id = fetched.topic_id
            if topic_id != ZERO_UUID and topic_id not in names:
                name = known.get(topic_id)
                if name is None:
                    name = next((p.topic for p, t in session.partitions.items() if t.topic_id == topic_id), None)
                if name is not None:
                    names[topic_id] = name
        return names

    def _records(
        self,
        answer: FetchAnswer,
        fetched: FetchedPartition,
        partition: TopicPartition,
        state: PartitionState,
        offset: int,
    ) -> None:
        if fetched.high_watermark >= 0:
            state.high_watermark = fetched.high_watermark
        if fetched.last_stable_offset >= 0:
            state.last_stable_offset = fetched.last_stable_offset
        if fetched.log_start_offset >= 0:
            state.log_start_offset = fetched.log_start_offset
        if fetched.preferred_replica >= 0:
            state.prefer_replica(fetched.preferred_replica, self._clock.monotonic() + self._settings.replica_lease_s)
        if fetched.start == fetched.end:
            return
        behind = next_offset_behind(answer.frame, fetched.start, fetched.end)
        if behind is None:
            size = fetched.end - fetched.start
            self._errors.append(
                error_for(
                    ErrorCode.RECORD_LIST_TOO_LARGE,
                    f"The {size} bytes fetched of {partition} at offset {offset} hold no whole batch: "
                    "raise max.partition.fetch.bytes above the size of the largest batch.",
                )
            )
            self._pause(partition)
            return
        assert state.position is not None
        self._buffer.add(
            PartitionFetch(
                partition,
                answer.frame,
                fetched.start,
                fetched.end,
                offset=offset,
                epoch=state.position.offset_epoch,
                aborted=AbortedFilter(fetched.aborted) if self._settings.read_committed else None,
                check_crcs=self._settings.check_crcs,
            ),
            state,
            max(behind, offset),
        )

    def _partition_failed(
        self,
        answer: FetchAnswer,
        fetched: FetchedPartition,
        partition: TopicPartition,
        state: PartitionState,
        offset: int,
    ) -> None:
        code = fetched.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(partition, state, offset)
        elif code in _ASK_METADATA:
            log.info("%s cannot be fetched from here: %s", partition, error_for(code))
            state.clear_preferred_replica()
            self._pause(partition)
            leader, epoch = fetched.leader
            if leader >= 0:
                self._core.metadata.leader_changed(partition, leader, epoch, answer.endpoints)
            self._core.metadata.request_update(f"{partition}: {ErrorCode(code).name}")
        elif code in _TRY_AGAIN:
            log.info("%s cannot be fetched now: %s", partition, error_for(code))
            self._pause(partition)
        else:
            self._pause(partition)
            self._errors.append(
                error_for(code, f"{partition} cannot be fetched at offset {offset}: {error_for(code).message}")
            )

    def _out_of_range(self, partition: TopicPartition, state: PartitionState, offset: int) -> None:
        if state.clear_preferred_replica() is not None:
            log.info("offset %d of %s is out of range on a follower: asking the leader", offset, partition)
            return
        if self._subscription.reset_policy.kind != "none":
            log.info("offset %d of %s is out of range: %s", offset, partition, self._subscription.reset_policy.kind)
            if not self._has_buffered(partition, state):
                state.request_reset(self._subscription.reset_policy)
            else:
                self._pause(partition)
            return
        self._pause(partition)
        if not self._has_buffered(partition, state):
            self._errors.append(
                OffsetOutOfRange(
                    f"Offset {offset} of {partition} is outside of its log, and auto.offset.reset is none: "
                    "seek to an offset that is there.",
                    partitions={partition: offset},
                )
            )

    def _has_buffered(self, partition: TopicPartition, state: PartitionState) -> bool:
        """Whether records before the offset that failed have not been taken yet: those come first."""
        assert state.position is not None
        return state.position.offset != self._buffer.next_offset(partition, state)
