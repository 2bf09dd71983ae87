"""The consumer for threads: each method has its work done by an `AsyncConsumer` on a thread of its own.

    with penstock.Consumer(bootstrap_servers="localhost:9092", group_id="g") as consumer:
        consumer.subscribe(["orders"])
        for record in consumer:
            ...

Belongs to one thread at a time: a second one that calls meanwhile gets `ConcurrentUse`, except for `wakeup`. Listeners,
interceptors and callbacks run in the thread that polls.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from itertools import islice
from operator import length_hint
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.base.types import TopicPartition
from penstock.client.consumer.consumer import AsyncConsumer, CommitCallback, Offsets, Partitions, Topics
from penstock.client.consumer.fetching.list_offsets import OffsetAndTimestamp
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.core.client import describe_client
from penstock.client.core.face import BlockingFace, documented_by
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata, PartitionInfo, TopicInfo
from penstock.client.errors import ConcurrentUse
from penstock.records.record import ConsumerRecord

if TYPE_CHECKING:
    from typing import Unpack

    import pyarrow

    from penstock.client.config.options import ConsumerOptions

T = TypeVar("T")


class Consumer(BlockingFace):
    """Reads records of topics, alone or as a member of a group.

    A `with` block that ends by an exception closes it without committing the records in hand: see `close`.
    """

    _core: AsyncConsumer

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[ConsumerOptions]) -> None:
        core = AsyncConsumer(config, **options)
        # Weakly: the loop holds the core, and a consumer that its user has dropped must be noticed.
        core._face = weakref.ref(self)
        core._has_face = True
        self._owner: int | None = None
        self._owner_depth = 0
        self._owner_lock = threading.Lock()
        super().__init__(core, name=core.client_id)

    def _describe(self) -> str:
        return describe_client(self._core._core)

    def _disconnect(self) -> Callable[[], Coroutine[Any, Any, object]]:
        self._core._tell_dropped()
        return self._core._core.close

    # What to read.

    @documented_by(AsyncConsumer.subscribe)
    def subscribe(
        self,
        topics: Topics,
        listener: object | None = None,
        *,
        on_assign: Callable[..., Any] | None = None,
        on_revoke: Callable[..., Any] | None = None,
        on_lost: Callable[..., Any] | None = None,
    ) -> None:
        self._call(
            lambda: self._core.subscribe(topics, listener, on_assign=on_assign, on_revoke=on_revoke, on_lost=on_lost)
        )

    @documented_by(AsyncConsumer.assign)
    def assign(self, partitions: Partitions) -> None:
        self._call(lambda: self._core.assign(partitions))

    @documented_by(AsyncConsumer.unsubscribe)
    def unsubscribe(self) -> None:
        self._run(self._core.unsubscribe())

    @documented_by(AsyncConsumer.assignment)
    def assignment(self) -> frozenset[TopicPartition]:
        return self._call(self._core.assignment)

    @documented_by(AsyncConsumer.subscription)
    def subscription(self) -> frozenset[str]:
        return self._call(self._core.subscription)

    # Reading.

    @documented_by(AsyncConsumer.poll)
    def poll(self, timeout_ms: float | None = 1_000, max_records: int | None = None) -> ConsumerRecords:
        # Taken out of the window here: an interrupt on the way leaves them unread, and the next poll gives them.
        count = self._core._most_records(max_records)
        window = self._run(self._core.next_window(timeout_ms, count))
        return ConsumerRecords(window if length_hint(window) <= count else islice(window, count))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        # Here, not at the first record: a loop over a closed client must not look like a topic without records.
        self._thread.check_usable()
        return self._iterate()

    def _iterate(self) -> Iterator[ConsumerRecord]:
        while not self._is_closed:
            yield from self._run(self._core.next_window(one_by_one=True))

    @documented_by(AsyncConsumer.consume_arrow)
    def consume_arrow(
        self, timeout_ms: float | None = 1_000, max_rows: int = 100_000, *, headers: bool = False
    ) -> pyarrow.RecordBatch:
        return self._run(self._core.consume_arrow(timeout_ms, max_rows, headers=headers))

    @documented_by(AsyncConsumer.arrow_batches)
    def arrow_batches(self, max_rows: int = 100_000, *, headers: bool = False) -> Iterator[pyarrow.RecordBatch]:
        self._thread.check_usable()
        return self._iterate_arrow(max_rows, headers)

    def _iterate_arrow(self, max_rows: int, headers: bool) -> Iterator[pyarrow.RecordBatch]:
        while not self._is_closed:
            batch = self.consume_arrow(None, max_rows, headers=headers)
            if batch.num_rows:
                yield batch

    @documented_by(AsyncConsumer.wakeup)
    def wakeup(self) -> None:
        self._thread.check_usable()
        self._thread.call_soon(self._core.wakeup)

    # Positions.

    @documented_by(AsyncConsumer.position)
    def position(self, partition: TopicPartition, timeout_ms: float | None = None) -> int:
        return self._run(self._core.position(partition, timeout_ms))

    @documented_by(AsyncConsumer.seek)
    def seek(self, partition: TopicPartition, offset: int | OffsetAndMetadata) -> None:
        self._call(lambda: self._core.seek(partition, offset))

    @documented_by(AsyncConsumer.seek_to_beginning)
    def seek_to_beginning(self, partitions: Partitions = ()) -> None:
        self._call(lambda: self._core.seek_to_beginning(partitions))

    @documented_by(AsyncConsumer.seek_to_end)
    def seek_to_end(self, partitions: Partitions = ()) -> None:
        self._call(lambda: self._core.seek_to_end(partitions))

    @documented_by(AsyncConsumer.pause)
    def pause(self, partitions: Partitions) -> None:
        self._call(lambda: self._core.pause(partitions))

    @documented_by(AsyncConsumer.resume)
    def resume(self, partitions: Partitions) -> None:
        self._call(lambda: self._core.resume(partitions))

    @documented_by(AsyncConsumer.paused)
    def paused(self) -> frozenset[TopicPartition]:
        return self._call(self._core.paused)

    # Offsets.

    @documented_by(AsyncConsumer.commit)
    def commit(self, offsets: Offsets | None = None, timeout_ms: float | None = None) -> None:
        self._run(self._core.commit(offsets, timeout_ms))

    @documented_by(AsyncConsumer.commit_async)
    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        self._call(lambda: self._core.commit_async(offsets, callback))

    @documented_by(AsyncConsumer.committed)
    def committed(
        self, partitions: Partitions, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return self._run(self._core.committed(partitions, timeout_ms))

    @documented_by(AsyncConsumer.offsets_for_times)
    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._run(self._core.offsets_for_times(timestamps, timeout_ms))

    @documented_by(AsyncConsumer.beginning_offsets)
    def beginning_offsets(self, partitions: Partitions, timeout_ms: float | None = None) -> dict[TopicPartition, int]:
        return self._run(self._core.beginning_offsets(partitions, timeout_ms))

    @documented_by(AsyncConsumer.end_offsets)
    def end_offsets(self, partitions: Partitions, timeout_ms: float | None = None) -> dict[TopicPartition, int]:
        return self._run(self._core.end_offsets(partitions, timeout_ms))

    @documented_by(AsyncConsumer.lag)
    def lag(self, partition: TopicPartition) -> int | None:
        return self._call(lambda: self._core.lag(partition))

    @documented_by(AsyncConsumer.current_lag)
    def current_lag(self, partition: TopicPartition, timeout_ms: float | None = None) -> int | None:
        return self._run(self._core.current_lag(partition, timeout_ms))

    # The cluster and the group.

    @documented_by(AsyncConsumer.partitions_for)
    def partitions_for(self, topic: str, timeout_ms: float | None = None) -> tuple[PartitionInfo, ...]:
        return self._run(self._core.partitions_for(topic, timeout_ms))

    @documented_by(AsyncConsumer.list_topics)
    def list_topics(self, timeout_ms: float | None = None) -> dict[str, TopicInfo]:
        return self._run(self._core.list_topics(timeout_ms))

    @documented_by(AsyncConsumer.group_metadata)
    def group_metadata(self) -> ConsumerGroupMetadata:
        return self._call(self._core.group_metadata)

    @documented_by(AsyncConsumer.enforce_rebalance)
    def enforce_rebalance(self, reason: str = "the user asked for it") -> None:
        self._call(lambda: self._core.enforce_rebalance(reason))

    @documented_by(AsyncConsumer.metrics)
    def metrics(self) -> dict[str, float]:
        return self._run(_calling(self._core.metrics), shared=True)

    # Life.

    @documented_by(AsyncConsumer.close)
    def close(self, timeout_ms: float = 30_000, *, leave_group: bool = True) -> None:
        if not self._is_closed and not self._thread.is_foreign:
            self._acquire()
            self._release()
        self._close_with(self._core.close(timeout_ms, leave_group=leave_group))

    def __exit__(self, *raised: object) -> None:
        if any(raised):
            self._core._hold_back()
        self.close()

    # Inside.

    def _call(self, function: Callable[[], T]) -> T:
        """Call a plain method of the core where its state lives."""
        return self._run(_calling(function))

    def _run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None, *, shared: bool = False) -> T:
        if shared:
            return self._thread.run(work, timeout_s)
        try:
            self._acquire()
        except BaseException:
            work.close()
            raise
        try:
            return self._thread.run(work, timeout_s)
        finally:
            self._release()

    def _acquire(self) -> None:
        """A listener that calls the consumer again is in the same thread, and welcome; another thread is not."""
        me = threading.get_ident()
        with self._owner_lock:
            if self._owner not in (None, me):
                raise ConcurrentUse(
                    "Another thread is using this consumer: a consumer belongs to one thread at a time "
                    "(only wakeup() may be called from others). Make one consumer for each thread."
                )
            self._owner = me
            self._owner_depth += 1

    def _release(self) -> None:
        with self._owner_lock:
            self._owner_depth -= 1
            if not self._owner_depth:
                self._owner = None


async def _calling(function: Callable[[], T]) -> T:
    return function()
