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
import weakref
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, ClientKind, consumer_keys
from penstock.client.config.resolving import Resolving
from penstock.client.consumer.checking import check_objects
from penstock.client.consumer.deserializing import Deserializing
from penstock.client.consumer.fetching.list_offsets import OffsetAndTimestamp, list_offsets
from penstock.client.consumer.interceptors import Interceptors
from penstock.client.consumer.parts import ConsumerParts, keeps_offsets
from penstock.client.consumer.polling import Poller
from penstock.client.consumer.positions import (
    EARLIEST,
    EARLIEST_TIMESTAMP,
    LATEST,
    LATEST_TIMESTAMP,
    ResetPolicy,
    parse_reset_policy,
)
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.consumer.subscription import Mode, SubscriptionState
from penstock.client.consumer.window import IterationWindow
from penstock.client.core.client import ClientCore, describe_client
from penstock.client.core.snapshot import NO_CLUSTER, merge
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata, PartitionInfo, TopicInfo
from penstock.client.errors import ClientClosed, ConcurrentUse, InvalidState
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.records.record import ConsumerRecord

if TYPE_CHECKING:
    from typing import Self, Unpack

    import pyarrow

    from penstock.client.config.options import ConsumerOptions
    from penstock.client.consumer.arrow import ArrowTaker

Partitions = TopicPartition | Iterable[TopicPartition]
Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]
CommitCallback = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], object]

_FOR_EVER_S = 10.0 * 365 * 24 * 3600


class AsyncConsumer:
    """Reads records of topics, alone or as a member of a group."""

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[ConsumerOptions]) -> None:
        resolving = Resolving()
        self.config = check_objects(ClientConfig(ClientKind.CONSUMER, config, options), resolving)
        self._deserializing = Deserializing(
            self.config[consumer_keys.KEY_DESERIALIZER], self.config[consumer_keys.VALUE_DESERIALIZER], resolving
        )
        resolving.check()
        self._core = ClientCore(self.config)
        self._subscription = SubscriptionState(parse_reset_policy(self.config[consumer_keys.AUTO_OFFSET_RESET]))
        interceptors: tuple[object, ...] = self.config[consumer_keys.INTERCEPTOR_CLASSES]
        self._interceptors = Interceptors(interceptors, {"client.id": self._core.client_id, **(config or {})})
        self._window = IterationWindow()
        self._subscription.unread = self._window.unread
        self._face: Callable[[], object] = weakref.ref(self)
        """What listeners get as the consumer: the blocking face puts a reference to itself here."""
        self._parts: ConsumerParts | None = None
        self._poller: Poller | None = None
        self._arrow: ArrowTaker | None = None
        self._max_poll_records = self.config[consumer_keys.MAX_POLL_RECORDS]
        self._convert = self._deserializing.convert
        self._is_polling = False
        self._is_closing = False
        self._is_closed = False
        self._was_woken_early = False

    # Life.

    async def start(self) -> None:
        """Bind to the running loop. Every coroutine here does it by itself; again is no error."""
        self._check_open()
        if self._parts is None:
            await self._core.start()
            self._parts = ConsumerParts(self._core, self._subscription, self._interceptors, self._face)
            self._poller = Poller(self._parts)
            if self._was_woken_early:
                self._poller.wake_up()
            self._topics_changed()

    async def close(self, timeout_ms: float = 30_000, *, leave_group: bool = True) -> None:
        """Commit (with `enable.auto.commit`), leave the group, close connections. Again is no error.

        `leave_group=False` keeps the member's place until its session times out, for a quick restart.
        """
        if self._is_closing:
            return
        # Until the group was told, listeners may still commit.
        self._is_closing = True
        try:
            await self._close_parts(timeout_ms, leave_group)
        finally:
            self._is_closed = True
            await self._core.close()
            self._interceptors.close()
            self._deserializing.close()

    async def _close_parts(self, timeout_ms: float, leave_group: bool) -> None:
        parts = self._parts
        if parts is None or self._poller is None:
            return
        await self._poller.close()
        deadline = self._core.ports.clock.monotonic() + timeout_ms / 1000
        try:
            if parts.commits is not None:
                await parts.commits.close(deadline)
            if parts.membership is not None:
                await parts.membership.close(deadline, leave_group=leave_group)
        finally:
            await parts.fetcher.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {describe_client(self._core)}, {'closed' if self._core.is_closed else 'open'}>"

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    # What to read.

    def subscribe(
        self,
        topics: str | Iterable[str] | re.Pattern[str],
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
        if isinstance(topics, str):
            topics = re.compile(topics) if topics.startswith("^") else [topics]
        if isinstance(topics, re.Pattern):
            self._subscription.subscribe_pattern(topics, chosen)
        else:
            self._subscription.subscribe(_checked_names(topics), chosen)
        self._topics_changed()
        if self._parts is not None and self._parts.membership is not None:
            self._parts.membership.subscription_changed()

    def assign(self, partitions: Partitions) -> None:
        """Read exactly these partitions, without a group's help. Those that stay keep their positions."""
        self._check_open()
        chosen = _partitions(partitions)
        for partition in chosen:
            _checked_names([partition.topic])
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

    # Reading.

    async def poll(self, timeout_ms: float | None = 1_000, max_records: int | None = None) -> ConsumerRecords:
        """Records that are there, or that come within the time-out (None: however long it takes); perhaps none.

        At most `max.poll.records`, or `max_records`. Poll again within `max.poll.interval.ms`, or the group gives the
        partitions to others.
        """
        with self._polling():
            poller = await self._ready()
            count = self._max_poll_records if max_records is None else max_records
            left = self._window.take(count)
            if left:
                return left
            records = await poller.poll(lambda: self._take(count), _seconds(timeout_ms))
            return await self._seen(records) if records is not None else ConsumerRecords()

    def __aiter__(self) -> AsyncIterator[ConsumerRecord]:
        return self._iterate()

    async def _iterate(self) -> AsyncIterator[ConsumerRecord]:
        while not self._is_closing:
            for record in await self.next_window():
                yield record

    async def next_window(
        self, timeout_ms: float | None = None, max_records: int | None = None
    ) -> Iterator[ConsumerRecord]:
        """What a poll gives, for an iterator: records count as read one by one, as they are taken from it."""
        return self._window.open(await self.poll(timeout_ms, max_records))

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
            self._rewind()
            assert self._parts is not None
            buffer, metrics = self._parts.fetcher.buffer, self._parts.metrics
            batch = await poller.poll(lambda: taker.take(buffer, max_rows, headers), _seconds(timeout_ms))
            if batch is None:
                return taker.empty(headers)
            metrics.records.total += batch.num_rows
            return batch

    async def arrow_batches(
        self, max_rows: int = 100_000, *, headers: bool = False
    ) -> AsyncIterator[pyarrow.RecordBatch]:
        """Arrow record batches for ever; see `consume_arrow`."""
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

    # Positions.

    async def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        """The offset of the next record that will be given."""
        poller = await self._ready()
        partition = _partition(partition)
        await poller.positions_known(partition, self._timeout(timeout_ms))
        position = self._subscription.state(partition).position
        assert position is not None
        return self._window.unread().get(partition, position.offset)

    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        """Go on at this offset. With an `OffsetAndMetadata` that has a leader epoch, a truncated log is noticed."""
        wanted = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if not isinstance(wanted.offset, int):
            raise TypeError(f"an offset is a number or an OffsetAndMetadata, not {offset!r}")
        if wanted.offset < 0:
            raise InvalidState(f"Offset {wanted.offset} cannot be sought: offsets count from 0.")
        partition = _partition(partition)
        self._subscription.seek(partition, wanted.offset, wanted.leader_epoch)
        self._moved([partition])

    def seek_to_beginning(self, partitions: Partitions = ()) -> None:
        """Go on at the first record of these partitions, of all without an argument. Looked up by the next poll."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, partitions: Partitions = ()) -> None:
        """Go on behind the last record; with read_committed behind the last one that is decided."""
        self._seek_to(LATEST, partitions)

    def pause(self, partitions: Partitions) -> None:
        """Give no records of these partitions until `resume`; they stay assigned."""
        chosen = self._assigned(partitions)
        for partition in chosen:
            self._subscription.state(partition).paused = True
        self._rewind(chosen)
        self._changed()

    def resume(self, partitions: Partitions) -> None:
        """Give records of these partitions again."""
        for partition in self._assigned(partitions):
            self._subscription.state(partition).paused = False
        self._changed()

    def paused(self) -> frozenset[TopicPartition]:
        """Partitions that poll() leaves out at present."""
        return self._subscription.paused()

    # Offsets.

    async def commit(self, offsets: Offsets | None = None, timeout_ms: float | None = None) -> None:
        """Commit these offsets, or the positions behind the records given so far; raises unless it succeeded."""
        commits = (await self._started()).need_commits()
        await commits.commit(_offsets(offsets), timeout_ms=self._timeout(timeout_ms))

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """The same without waiting. Callbacks `(offsets, error | None)` run in later polls, in order."""
        self._check_open()
        if self._parts is None:
            if not keeps_offsets(self.config):
                raise InvalidState("Offsets are committed for a group: set group.id.")
            if offsets is None and callback is None:
                return  # nothing was read yet
            raise InvalidState("commit_async() works from the first poll on: poll before, or use commit().")
        self._parts.need_commits().commit_async(_offsets(offsets), callback)

    async def committed(
        self, partitions: Partitions, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group committed last; None where nothing was."""
        commits = (await self._started()).need_commits()
        return await commits.committed(_partitions(partitions), timeout_ms=self._timeout(timeout_ms))

    async def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Per partition the first record at or after the time (milliseconds since the epoch); None if there is none."""
        for partition, timestamp in timestamps.items():
            if timestamp < 0:
                raise InvalidState(f"The time {timestamp} for {partition} is before 1970.")
        return await self._list(dict(timestamps), timeout_ms, "offsets_for_times", read_committed=False)

    async def beginning_offsets(
        self, partitions: Partitions, timeout_ms: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record that is still there."""
        found = await self._list(
            dict.fromkeys(_partitions(partitions), EARLIEST_TIMESTAMP), timeout_ms, "beginning_offsets"
        )
        return {each: known.offset if known is not None else 0 for each, known in found.items()}

    async def end_offsets(self, partitions: Partitions, timeout_ms: float | None = None) -> dict[TopicPartition, int]:
        """The offset behind the last record; with read_committed behind the last one that is decided."""
        found = await self._list(dict.fromkeys(_partitions(partitions), LATEST_TIMESTAMP), timeout_ms, "end_offsets")
        return {each: known.offset if known is not None else 0 for each, known in found.items()}

    def lag(self, partition: TopicPartition) -> int | None:
        """Records between the position and the end as the last fetch told it; None when nothing is known yet."""
        partition = _partition(partition)
        state = self._subscription.state(partition)
        lag = state.lag(self._reads_committed)
        unread = self._window.unread().get(partition)
        return lag if lag is None or unread is None or state.position is None else lag + state.position.offset - unread

    async def current_lag(self, partition: TopicPartition, timeout_ms: float | None = None) -> int | None:
        """`lag`, and where nothing is known yet the end is asked for. None without a position."""
        partition = _partition(partition)
        state = self._subscription.state(partition)
        if state.position is not None and self.lag(partition) is None:
            state.end_offset = (await self.end_offsets(partition, timeout_ms))[partition]
        return self.lag(partition)

    # The cluster and the group.

    async def partitions_for(self, topic: str, timeout_ms: float | None = None) -> tuple[PartitionInfo, ...]:
        """The partitions of a topic; `UnknownTopicOrPartition` if it does not come to exist within the time-out."""
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
        found: dict[str, float] = dict(self._core.metrics.read())
        if self._parts is None:
            return found
        metrics, committed = self._parts.metrics, self._reads_committed
        found.update(metrics.values(self._subscription, read_committed=committed))
        found.update(metrics.partition_values(self._subscription, read_committed=committed))
        if self._parts.membership is not None:
            found.update(self._parts.membership.metrics())
        return found

    # Inside.

    @property
    def _reads_committed(self) -> bool:
        return self.config[consumer_keys.ISOLATION_LEVEL].lower() == "read_committed"

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed(f"{self._core.client_id} was closed: make a new consumer")

    async def _started(self) -> ConsumerParts:
        if self._parts is None or self._is_closed:
            await self.start()
        assert self._parts is not None
        return self._parts

    async def _ready(self) -> Poller:
        if self._poller is None or self._is_closed:
            await self.start()
        assert self._poller is not None
        return self._poller

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
        records = self._parts.fetcher.buffer.take(count, self._convert)
        self._parts.metrics.records.total += len(records)
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

    async def _list(
        self, wanted: dict[TopicPartition, int], timeout_ms: float | None, what: str, *, read_committed: bool = True
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        parts = await self._started()
        if not wanted:
            return {}
        try:
            return await list_offsets(
                parts.core,
                {_partition(partition): timestamp for partition, timestamp in wanted.items()},
                isolation_level=parts.settings.isolation_level if read_committed else 0,
                timeout_ms=self._timeout(timeout_ms),
                what=what,
            )
        finally:
            self._forget({topic for topic, _ in wanted})

    def _forget(self, topics: Iterable[str]) -> None:
        """Topics that were only asked about need not be kept fresh, least of all those that do not exist."""
        if not self._subscription.uses_group:
            self._core.metadata.forget(each for each in topics if each not in self._subscription.topics)

    def _timeout(self, timeout_ms: float | None) -> float:
        return self.config[consumer_keys.DEFAULT_API_TIMEOUT_MS] if timeout_ms is None else timeout_ms

    def _assigned(self, partitions: Partitions) -> list[TopicPartition]:
        """The partitions, each of which must be assigned, before anything is done to one."""
        chosen = _partitions(partitions)
        for partition in chosen:
            self._subscription.state(partition)
        return chosen

    def _seek_to(self, policy: ResetPolicy, partitions: Partitions) -> None:
        chosen = self._assigned(partitions) or list(self._subscription.partitions)
        for partition in chosen:
            self._subscription.request_reset(partition, policy)
        self._moved(chosen)

    def _moved(self, partitions: list[TopicPartition]) -> None:
        """Positions changed: what an iterator has of these partitions is not for the user any more."""
        self._window.drop(partitions)
        self._changed()

    def _rewind(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """What an iterator has and did not give is fetched again, when it is wanted again."""
        chosen = None if partitions is None else set(partitions)
        unread = {each: at for each, at in self._window.unread().items() if chosen is None or each in chosen}
        for partition, offset in unread.items():
            if partition in self._subscription:
                self._subscription.seek(partition, offset)
        self._window.drop(list(unread))

    def _changed(self) -> None:
        if self._parts is not None:
            self._parts.positions_changed()

    def _topics_changed(self) -> None:
        """Have metadata of what is read now."""
        if self._parts is None:
            return
        metadata = self._parts.core.metadata
        metadata.want_all(self._subscription.mode is Mode.PATTERN)
        if self._subscription.mode is not Mode.PATTERN:
            metadata.want_only(self._subscription.topics)
        self._changed()


def _seconds(timeout_ms: float | None) -> float:
    if timeout_ms is None:
        return _FOR_EVER_S
    if not isinstance(timeout_ms, int | float):
        raise TypeError(f"a time-out is a number of milliseconds, or None, not {timeout_ms!r}")
    return max(timeout_ms, 0.0) / 1000


def _checked_names(topics: Iterable[str]) -> list[str]:
    if not isinstance(topics, Iterable):
        raise TypeError(f"topics are given as a list of names, as one name or as a compiled pattern, not as {topics!r}")
    names = list(topics)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidState(f"{name!r} is not the name of a topic.")
    return names


def _partitions(partitions: Partitions | Any) -> list[TopicPartition]:
    """One partition, or several; plain tuples will do."""
    if isinstance(partitions, TopicPartition):
        return [partitions]
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        return [_partition(partitions)]  # which refuses it
    return [_partition(each) for each in partitions]


def _partition(given: Any) -> TopicPartition:
    if isinstance(given, TopicPartition):
        return given
    if isinstance(given, tuple | list) and [type(each) for each in given] == [str, int]:
        return TopicPartition(*given)
    raise TypeError(f"{given!r} is not a partition: give TopicPartition(topic, number), or a tuple of the two")


def _offsets(offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
    if offsets is None:
        return None
    chosen = {}
    for partition, offset in offsets.items():
        known = OffsetAndMetadata(offset) if isinstance(offset, int) else OffsetAndMetadata(*offset)
        if known.offset < 0:
            raise InvalidState(f"Offset {known.offset} of {partition} cannot be committed: offsets count from 0.")
        chosen[_partition(partition)] = known
    return chosen
