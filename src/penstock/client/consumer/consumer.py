"""The consumer on asyncio. `blocking.Consumer` is the same for threads.

    async with penstock.aio.Consumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
        consumer.subscribe(["orders"])
        async for record in consumer:
            ...

Methods that ask nobody are plain functions; the others are coroutines. One task polls at a time; other tasks may pause,
resume, seek and wake it up meanwhile.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.client.config import consumer_keys
from penstock.client.consumer.arguments import (
    Offsets,
    Partitions,
    Topics,
    as_partitions,
    as_topics,
    check_topic,
    seconds_of,
)
from penstock.client.consumer.offset_calls import CommitCallback, OffsetCalls
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.core.rounds import METADATA_VERSION_MIN
from penstock.client.core.snapshot import NO_CLUSTER, merge
from penstock.client.core.types import ConsumerGroupMetadata, PartitionInfo, TopicInfo
from penstock.client.errors import ClientClosed, ConcurrentUse, InvalidState
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.records.record import ConsumerRecord

if TYPE_CHECKING:
    import pyarrow

    from penstock.base.types import TopicPartition
    from penstock.client.consumer.arrow import ArrowTaker

__all__ = ["AsyncConsumer", "CommitCallback", "Offsets", "Partitions", "Topics"]


class AsyncConsumer(OffsetCalls):
    """Reads records of topics, alone or as a member of a group.

    An `async with` block that ends by an exception closes it without committing the records in hand: see `close`.
    """

    _arrow: ArrowTaker | None = None

    # What to read.

    def subscribe(
        self,
        topics: Topics,
        listener: object | None = None,
        *,
        on_assign: Callable[..., Any] | None = None,
        on_revoke: Callable[..., Any] | None = None,
        on_lost: Callable[..., Any] | None = None,
    ) -> None:
        """Read these topics as a member of the group; replaces an earlier subscription.

        A compiled pattern, or text that begins with ``^``, means every topic whose whole name matches, also later ones.
        The listener is told of partitions that come and go: an object with any of `on_assigned(consumer, partitions)`,
        `on_revoked`, `on_lost`, or single functions. It is called inside of `poll`.
        """
        self._check_open()
        if self.config[consumer_keys.GROUP_ID] is None:
            raise InvalidState("To subscribe is to join a group: set group.id, or assign partitions.")
        from penstock.client.consumer.listener import make_listener

        chosen = make_listener(listener, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        wanted = as_topics(topics)
        if isinstance(wanted, re.Pattern):
            self._subscription.subscribe_pattern(wanted, chosen)
        else:
            self._subscription.subscribe(wanted, chosen)
        self._topics_changed()
        if self._parts is not None and self._parts.membership is not None:
            self._parts.membership.subscription_changed()

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, without a group's help. Those that stay keep their positions."""
        self._check_open()
        chosen = as_partitions(partitions)
        for partition in chosen:
            check_topic(partition.topic)
            if partition.partition < 0:
                raise InvalidState(f"There is no partition {partition.partition}: partitions count from 0.")
        if self._subscription.assign(chosen):
            self._window.drop([each for each in self._window.unread() if each not in self._subscription])
        self._topics_changed()

    async def unsubscribe(self) -> None:
        """Read nothing any more, and leave the group."""
        await self.start()
        if self._parts is not None and self._parts.membership is not None and self._subscription.uses_group:
            await self._parts.membership.unsubscribe()
        self._subscription.unsubscribe()
        self._window.drop()
        self._topics_changed()

    def assignment(self) -> frozenset[TopicPartition]:
        """The partitions that are read now."""
        return frozenset(self._subscription.partitions)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; with a pattern those that match it now."""
        return self._subscription.topics if self._subscription.uses_group else frozenset()

    @property
    def _subscribed_to(self) -> frozenset[str] | re.Pattern[str]:
        """What was given to `subscribe`: the names, or the pattern."""
        return self._subscription.pattern or self.subscription()

    # Reading.

    async def poll(self, timeout_ms: float | None = 1_000, max_records: int | None = None) -> ConsumerRecords:
        """Records that are there, or that come within the time-out (None: however long it takes); perhaps none.

        At most `max.poll.records`, or `max_records`. Poll again within `max.poll.interval.ms`, or the group gives the
        partitions to others.
        """
        with self._polling():
            poller = await self._ready()
            self._in_hand.asked_for_more()
            count = self._most_records(max_records)
            if self._window:
                self._in_hand.gave(self._window.unread())
                return self._window.take(count)
            records = await poller.poll(lambda: self._take(count), seconds_of(timeout_ms))
            return await self._seen(records) if records is not None else ConsumerRecords()

    def _most_records(self, asked: int | None) -> int:
        """How many records a poll gives at most."""
        return self._max_poll_records if asked is None else asked

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        # Here, not at the first record: a loop over a closed client must not look like a topic without records.
        self._check_open()
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[ConsumerRecord]:
        while not self._is_closing:
            for record in await self.next_window(one_by_one=True):
                yield record

    async def next_window(
        self, timeout_ms: float | None = None, max_records: int | None = None, *, one_by_one: bool = False
    ) -> Iterator[ConsumerRecord]:
        """What a poll gives, for an iterator: records count as read one by one, as they are taken from it.

        Of what a loop has left there may be more than `max_records`: all of it stays in the window. `one_by_one`: the
        next record is taken when the user is done with the one before it.
        """
        records = await self.poll(timeout_ms, len(self._window) or max_records)
        if one_by_one:
            self._in_hand.gives_one_by_one()
        return self._window.open(records)

    async def consume_arrow(
        self, timeout_ms: float | None = 1_000, max_rows: int = 100_000, *, headers: bool = False
    ) -> pyarrow.RecordBatch:
        """Records that are there, or come within the time-out, as one Arrow record batch; without rows if none came.

        Columns: topic, partition, offset, timestamp, timestamp_type, key, value, and `headers` if asked for. Neither
        deserializers nor interceptors are called. Needs pyarrow (`penstock[arrow]`).
        """
        taker = self._arrow_taker()
        with self._polling():
            poller = await self._ready()
            self._in_hand.asked_for_more()
            self._rewind()
            assert self._parts is not None
            buffer, metrics = self._parts.fetcher.buffer, self._parts.metrics
            buffer.taken_from.clear()
            batch = await poller.poll(lambda: taker.take(buffer, max_rows, headers), seconds_of(timeout_ms))
            self._in_hand.gave(buffer.taken_from)
            if batch is None:
                return taker.empty(headers)
            metrics.records.value += batch.num_rows
            return batch

    def arrow_batches(self, max_rows: int = 100_000, *, headers: bool = False) -> AsyncIterator[pyarrow.RecordBatch]:
        """Arrow record batches for ever; see `consume_arrow`."""
        self._check_open()
        return self._iterate_arrow(max_rows, headers)

    async def _iterate_arrow(self, max_rows: int, headers: bool) -> AsyncIterator[pyarrow.RecordBatch]:
        while not self._is_closing:
            batch = await self.consume_arrow(None, max_rows, headers=headers)
            if batch.num_rows:
                yield batch

    def wakeup(self) -> None:
        """End a call that waits, or the next one, with `WakeUp`."""
        if self._poller is None:
            self._was_woken_early = True
        else:
            self._poller.wake_up()

    # The cluster and the group.

    async def partitions_for(self, topic: str, timeout_ms: float | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic; `UnknownTopicOrPartition` if it does not come to exist within the time-out."""
        check_topic(topic)
        parts = await self._started()
        try:
            info = await parts.core.metadata.topic(topic, self._timeout(timeout_ms))
        finally:
            self._forget([topic])
        return info.partitions

    async def list_topics(self, timeout_ms: float | None = None) -> dict[str, TopicInfo]:
        """All topics that this user may see."""
        parts = await self._started()
        answer = await parts.core.ask_any(
            ApiKey.METADATA,
            MetadataRequest(topics=None, allow_auto_topic_creation=False),
            timeout_ms=self._timeout(timeout_ms),
            at_least=METADATA_VERSION_MIN,
        )
        return dict(merge(NO_CLUSTER, answer).topics)

    def group_metadata(self) -> ConsumerGroupMetadata:
        """For `Producer.send_offsets`."""
        group = self.config[consumer_keys.GROUP_ID]
        if group is None:
            raise InvalidState("There is no group: set group.id.")
        if self._parts is None or self._parts.membership is None:
            return ConsumerGroupMetadata(group)
        return self._parts.membership.metadata()

    def enforce_rebalance(self, reason: str = "the user asked for it") -> None:
        """Join the group again with the next poll."""
        if self._parts is None:
            raise InvalidState("There is no group to rebalance before the first poll.")
        self._parts.need_membership().enforce_rebalance(reason)

    def metrics(self) -> dict[str, float]:
        """Kafka's consumer metrics by name; those of a partition as `topic-partition.records-lag`."""
        of_partitions = {} if self._parts is None else self._parts.metrics.partition_values()
        return self._core.metrics.read() | of_partitions

    # Inside.

    @contextmanager
    def _polling(self) -> Iterator[None]:
        if self._is_closing:
            raise ClientClosed(f"{self._core.client_id} was closed: make a new consumer")
        if self._is_polling:
            raise ConcurrentUse("Another task polls this consumer already: one at a time, or one consumer for each.")
        self._is_polling = True
        try:
            yield
        finally:
            self._is_polling = False

    def _take(self, count: int) -> ConsumerRecords | None:
        assert self._parts is not None
        buffer = self._parts.fetcher.buffer
        buffer.taken_from.clear()
        records = buffer.take(count, self._convert)
        self._in_hand.gave(buffer.taken_from)
        self._parts.metrics.records.value += len(records)
        return records or None

    async def _seen(self, records: ConsumerRecords) -> ConsumerRecords:
        if not self._interceptors:
            return records
        try:
            seen: ConsumerRecords = await self._core.call_user(self._interceptors.on_consume, records)
        except BaseException:
            # Cancelled: the next poll gives them.
            self._window.open(records)
            raise
        return seen

    def _arrow_taker(self) -> ArrowTaker:
        if self._arrow is None:
            from penstock.client.consumer.arrow import ArrowTaker

            self._arrow = ArrowTaker()
        return self._arrow
