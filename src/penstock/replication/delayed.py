"""Requests that wait: fetches for enough bytes, produces for the high watermark.

A waiting request hangs on the partitions it waits for, so an append on a partition nobody waits for costs one look at
an empty table. A fetch counts the bytes that arrive instead of reading again; once it has enough (or one of its
partitions fails, or its time is up) it is taken off and read in the next turn of the loop. So many appends of one turn
are answered together, and a producer does not wait while its records are handed to a hundred consumers.

Numbers are bounded: a fetch beyond the bound is answered at once with what there is, a produce is told to try again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from itertools import count

from penstock.base import metric_names as names
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Metrics
from penstock.base.ports import Tasks, Timer
from penstock.replication.fetching import CONSUMER, FetchIsolation, FetchPartition, FetchResult
from penstock.replication.partition import Partition

_EXPIRED_KEPT_MAX = 64


class DelayedFetch:
    """A parked fetch: what to read again, and how many bytes are known to be there by partition."""

    __slots__ = (
        "available",
        "future",
        "isolation",
        "max_bytes",
        "min_bytes",
        "replica_id",
        "requests",
        "sizes",
        "timer",
    )

    def __init__(
        self,
        requests: Sequence[FetchPartition],
        *,
        min_bytes: int,
        max_bytes: int,
        isolation: FetchIsolation,
        replica_id: int,
    ) -> None:
        self.requests = requests
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.isolation = isolation
        self.replica_id = replica_id
        self.available = 0
        self.sizes: dict[Partition, int] = {}
        self.future: asyncio.Future[list[FetchResult]] | None = None
        self.timer: Timer | None = None


class FetchPurgatory:
    def __init__(
        self, tasks: Tasks, read: Callable[[DelayedFetch], list[FetchResult]], *, metrics: Metrics, parked_max: int
    ) -> None:
        self._tasks = tasks
        self._read = read
        self._parked_max = parked_max
        self._parked: dict[DelayedFetch, None] = {}
        self._ready: list[DelayedFetch] = []
        self._consumer_expires = metrics.counter(names.DELAYED_FETCH_EXPIRES, fetcherType="consumer")
        self._follower_expires = metrics.counter(names.DELAYED_FETCH_EXPIRES, fetcherType="follower")
        metrics.gauge(names.PURGATORY_SIZE, lambda: len(self._parked), delayedOperation="Fetch")
        metrics.gauge(names.NUM_DELAYED_OPERATIONS, lambda: len(self._parked), delayedOperation="Fetch")

    def __len__(self) -> int:
        return len(self._parked)

    @property
    def is_full(self) -> bool:
        return len(self._parked) >= self._parked_max

    def park(
        self, fetch: DelayedFetch, found: Sequence[FetchResult], max_wait_ms: int
    ) -> asyncio.Future[list[FetchResult]]:
        """Wait on behalf of `found`, the results of a read that were too few; their records are released."""
        future: asyncio.Future[list[FetchResult]] = self._tasks.future()
        fetch.future = future
        self._parked[fetch] = None
        for result in found:
            partition = result.partition
            if partition is None:
                continue
            size = 0
            if result.records is not None:
                size = result.records.length
                result.records.release()
                result.records = None
            fetch.sizes[partition] = size
            fetch.available += size
            partition.fetch_waiters[fetch] = result.request
        fetch.timer = self._tasks.call_later(max_wait_ms / 1000, lambda: self._expire(fetch))
        future.add_done_callback(lambda done: self._dropped(fetch) if done.cancelled() else None)
        return future

    def appended(self, partition: Partition, size: int) -> None:
        """`size` bytes were appended, and where there is no other replica they are committed with that."""
        for fetch, request in list(partition.fetch_waiters.items()):
            seen = fetch.isolation == FetchIsolation.LOG_END or (
                partition.is_alone and fetch.isolation == FetchIsolation.HIGH_WATERMARK
            )
            available = fetch.sizes[partition] + size if seen else partition.readable_bytes(request, fetch.isolation)
            self._note(fetch, partition, min(available, request.max_bytes))

    def advanced(self, partition: Partition) -> None:
        """More became visible than what an append brought: the high watermark or the last stable offset moved."""
        for fetch, request in list(partition.fetch_waiters.items()):
            if fetch.isolation != FetchIsolation.LOG_END:
                self._note(fetch, partition, partition.readable_bytes(request, fetch.isolation))

    def failed(self, partition: Partition) -> None:
        """The partition can no longer be read as before: every fetch on it gets its answer now."""
        for fetch in list(partition.fetch_waiters):
            self._make_ready(fetch)

    def close(self) -> None:
        """Answer everybody with what is there."""
        for fetch in list(self._parked):
            self._make_ready(fetch)

    def _note(self, fetch: DelayedFetch, partition: Partition, available: int) -> None:
        fetch.available += available - fetch.sizes[partition]
        fetch.sizes[partition] = available
        if fetch.available >= fetch.min_bytes:
            self._make_ready(fetch)

    def _expire(self, fetch: DelayedFetch) -> None:
        counter = self._consumer_expires if fetch.replica_id == CONSUMER else self._follower_expires
        counter.value += 1
        self._take_off(fetch)
        self._answer(fetch)

    def _make_ready(self, fetch: DelayedFetch) -> None:
        self._take_off(fetch)
        if not self._ready:
            self._tasks.call_soon(self._answer_ready)
        self._ready.append(fetch)

    def _answer_ready(self) -> None:
        ready, self._ready = self._ready, []
        for fetch in ready:
            self._answer(fetch)

    def _answer(self, fetch: DelayedFetch) -> None:
        future = fetch.future
        if future is None or future.done():
            return
        try:
            results = self._read(fetch)
        except Exception as error:  # noqa: BLE001 - it belongs to the request that waits, not to the others
            future.set_exception(error)
        else:
            future.set_result(results)

    def _dropped(self, fetch: DelayedFetch) -> None:
        """The connection went away."""
        if fetch in self._parked:
            self._take_off(fetch)

    def _take_off(self, fetch: DelayedFetch) -> None:
        self._parked.pop(fetch, None)
        for partition in fetch.sizes:
            partition.fetch_waiters.pop(fetch, None)
        if fetch.timer is not None:
            fetch.timer.cancel()


class DelayedProduce:
    """Waits until the high watermark is at `offset`."""

    __slots__ = ("future", "offset", "order", "timer")

    def __init__(self, offset: int, order: int, future: asyncio.Future[None]) -> None:
        self.offset = offset
        self.order = order
        self.future = future
        self.timer: Timer | None = None

    def __lt__(self, other: DelayedProduce) -> bool:
        return (self.offset, self.order) < (other.offset, other.order)

    def finish(self, error: KafkaError | None) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.future.done():
            return
        if error is None:
            self.future.set_result(None)
        else:
            self.future.set_exception(error)


class ProducePurgatory:
    """Each partition's waiters are a heap by offset, since a high watermark passes many of them at once."""

    def __init__(self, tasks: Tasks, *, metrics: Metrics, parked_max: int) -> None:
        self._tasks = tasks
        self._parked_max = parked_max
        self._parked = 0
        self._order = count()
        self._expires = metrics.counter(names.DELAYED_PRODUCE_EXPIRES)
        metrics.gauge(names.PURGATORY_SIZE, lambda: self._parked, delayedOperation="Produce")
        metrics.gauge(names.NUM_DELAYED_OPERATIONS, lambda: self._parked, delayedOperation="Produce")

    def __len__(self) -> int:
        return self._parked

    def wait(self, partition: Partition, offset: int, timeout_ms: int) -> asyncio.Future[None]:
        """Done when the high watermark has reached `offset`; KafkaError when it will not, or not in time."""
        future: asyncio.Future[None] = self._tasks.future()
        waiter = DelayedProduce(offset, next(self._order), future)
        error = self._refusal(partition)
        if error is not None or partition.log.high_watermark >= offset:
            waiter.finish(error or _shortage(partition))
            return future
        self._parked += 1
        future.add_done_callback(self._left)
        _purge(partition)
        heappush(partition.produce_waiters, waiter)
        waiter.timer = self._tasks.call_later(max(0, timeout_ms) / 1000, lambda: self._expire(partition, waiter))
        return future

    def advanced(self, partition: Partition) -> None:
        waiters = partition.produce_waiters
        high_watermark = partition.log.high_watermark
        error = _shortage(partition)
        while waiters and waiters[0].offset <= high_watermark:
            heappop(waiters).finish(error)

    def failed(self, partition: Partition, error: KafkaError) -> None:
        """The partition is not led here any more: nobody can say whether these records stay."""
        waiters, partition.produce_waiters = partition.produce_waiters, []
        for waiter in waiters:
            waiter.finish(error)

    def _refusal(self, partition: Partition) -> KafkaError | None:
        try:
            partition.check_leader()
        except KafkaError as error:
            return error
        if self._parked >= self._parked_max:
            return KafkaError(ErrorCode.REQUEST_TIMED_OUT, "Too many requests wait for the high watermark.")
        return None

    def _expire(self, partition: Partition, waiter: DelayedProduce) -> None:
        self._expires.value += 1
        waiter.finish(
            KafkaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"The high watermark of {partition.topic_partition} did not reach {waiter.offset} in time.",
            )
        )

    def _left(self, _: asyncio.Future[None]) -> None:
        self._parked -= 1


def _shortage(partition: Partition) -> KafkaError | None:
    try:
        partition.check_enough_replicas()
    except KafkaError as error:
        return error
    return None


def _purge(partition: Partition) -> None:
    """Waiters that gave up stay in the heap until they are many, or until the watermark passes them."""
    waiters = partition.produce_waiters
    if len(waiters) < _EXPIRED_KEPT_MAX or len(waiters) & (len(waiters) - 1):
        return
    # Looked at when the length is a power of two, so that the cost per waiter stays constant.
    partition.produce_waiters = [waiter for waiter in waiters if not waiter.future.done()]
    heapify(partition.produce_waiters)
