"""One consumer, many workers: polls, hands records out in order of their lanes, commits behind what is finished.

Everything but the handler runs on the consumer's event loop. Endings of records arrive as callbacks, which hand out the
next ones at once; the run itself only polls (which keeps the membership alive, however slow the handlers are), pauses
the partitions while too many records are unfinished, and commits from time to time. When partitions are revoked, and at
the end, the records up to the last one that a worker has are finished, the rest is dropped, and the frontier committed:
so the next reader begins behind everything that was done here. Only when that takes too long, or a handler fails, may
some records be handled twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal

from penstock.base.errors import KafkaError
from penstock.base.ports import Timer
from penstock.base.types import TopicPartition
from penstock.client.consumer.arguments import Topics, as_topics
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.parallel.checking import (
    as_order,
    check_commits_by_hand,
    check_counts,
    check_handler,
    checked_on_failure,
    is_async,
)
from penstock.client.consumer.parallel.frontier import Frontier
from penstock.client.consumer.parallel.policy import FailurePolicy, HandlerFailed, OnFailure
from penstock.client.consumer.parallel.scheduling import Order, Scheduler, Work
from penstock.client.consumer.parallel.workers import TaskWorkers, ThreadWorkers, Workers
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import InvalidState, WakeUp
from penstock.records.record import ConsumerRecord

log = logging.getLogger(__name__)

_POLL_MS = 100.0


class AsyncParallelConsumer:
    """Calls `handler(record)` for every record, with up to `workers` of them at once.

    `handler` is a coroutine function (called in tasks) or a plain one (called in threads; `executor` says otherwise).
    `order` is "key", "partition" or "unordered". `topics` subscribes; without it the consumer's own subscription or
    assignment is used. The consumer must have `enable.auto.commit` off: offsets are committed here, every
    `commit_interval_ms`, never past a record that is not finished. At most `pending_max` records are unfinished.
    """

    def __init__(
        self,
        consumer: AsyncConsumer,
        handler: Callable[[ConsumerRecord], Any],
        *,
        topics: Topics | None = None,
        workers: int = 8,
        order: Literal["key", "partition", "unordered"] | Order = "key",
        executor: Literal["threads", "tasks"] | None = None,
        retries: int = 0,
        retry_backoff_ms: float = 100.0,
        on_failure: OnFailure = "stop",
        pending_max: int = 2_000,
        commit_interval_ms: float = 1_000.0,
        drain_timeout_ms: float = 30_000.0,
    ) -> None:
        check_commits_by_hand(consumer)
        check_handler(handler, executor)
        check_counts(workers=workers, pending_max=pending_max, retries=retries)
        self._consumer: AsyncConsumer = consumer
        self._handler = handler
        self._topics = None if topics is None else as_topics(topics)
        self._count = workers
        self._threads = (executor or ("tasks" if is_async(handler) else "threads")) == "threads"
        self._policy = FailurePolicy(
            retries=retries, retry_backoff_ms=retry_backoff_ms, on_failure=checked_on_failure(on_failure)
        )
        self._pending_max = pending_max
        self._commit_interval_s = commit_interval_ms / 1000
        self._drain_timeout_s = drain_timeout_ms / 1000
        self._scheduler = Scheduler(as_order(order))
        self._frontiers: dict[TopicPartition, Frontier] = {}
        self._retrying: dict[Work, Timer] = {}
        self._paused: set[TopicPartition] = set()
        self._with_workers = 0
        self._handled = 0
        self._workers: Workers | None = None
        self._failure: HandlerFailed | None = None
        self._stopping = False
        self._draining = False
        self._ended = asyncio.Event()
        self._ended.set()
        self._task: asyncio.Task[None] | None = None

    # For the user.

    async def run(self) -> None:
        """Until `stop()`; raises `HandlerFailed` when a record could not be handled, or what the consumer raises."""
        if self._workers is not None:
            raise InvalidState("this ParallelConsumer runs already, or did: make a new one")
        loop = asyncio.get_running_loop()
        self._workers = self._make_workers()
        topics = self._topics if self._topics is not None else self._consumer._subscribed_to
        if topics:
            self._consumer.subscribe(topics, listener=_Listener(self))
        next_commit = loop.time() + self._commit_interval_s
        try:
            while not self._stopping:
                await self._poll_once()
                if loop.time() >= next_commit:
                    await self._commit(self._frontiers)
                    next_commit = loop.time() + self._commit_interval_s
        finally:
            await self._finish()
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """End the run: records with workers are finished, what is finished is committed. In the loop's thread."""
        self._stopping = True

    async def __aenter__(self) -> AsyncParallelConsumer:
        self._task = asyncio.get_running_loop().create_task(self.run(), name="parallel consumer")
        return self

    async def __aexit__(self, *exc: object) -> None:
        self.stop()
        if self._task is not None:
            await self._task

    @property
    def pending(self) -> int:
        """Records taken from the consumer and not finished."""
        return self._scheduler.waiting + self._with_workers + len(self._retrying)

    @property
    def handled(self) -> int:
        """Records finished so far."""
        return self._handled

    # The run.

    def _make_workers(self) -> Workers:
        policy, handler = self._policy, self._handler
        if self._threads:
            return ThreadWorkers(lambda work: policy.call(handler, work), self._count, self._done)
        return TaskWorkers(lambda work: policy.call_async(handler, work), self._count, self._done)

    async def _poll_once(self) -> None:
        self._regulate()
        try:
            records = await self._consumer.poll(timeout_ms=_POLL_MS)
        except WakeUp:
            self._stopping = True
            return
        for record in records:
            partition = TopicPartition(record.topic, record.partition)
            frontier = self._frontiers.get(partition)
            if frontier is None:
                frontier = self._frontiers[partition] = Frontier()
            self._scheduler.add(record, frontier)
        self._hand_out()

    def _regulate(self) -> None:
        """Pause while too much is pending; poll goes on, for the sake of the membership."""
        if self.pending >= self._pending_max:
            fresh = set(self._consumer.assignment()) - set(self._consumer.paused())
            if fresh:
                self._consumer.pause(fresh)
                self._paused |= fresh
        elif self._paused and self.pending <= self._pending_max // 2:
            self._consumer.resume(self._paused & set(self._consumer.assignment()))
            self._paused.clear()

    def _hand_out(self) -> None:
        assert self._workers is not None
        may_begin = self._draining or not self._stopping
        while may_begin and self._with_workers < self._workers.capacity:
            work = self._scheduler.next()
            if work is None:
                return
            self._give(work)

    def _give(self, work: Work) -> None:
        assert self._workers is not None
        self._with_workers += 1
        self._ended.clear()
        self._workers.submit(work)

    def _done(self, work: Work, error: Exception | None) -> None:
        self._with_workers -= 1
        if error is None or (not self._policy.may_retry(work) and self._policy.skips(work, error)):
            self._handled += 1
            self._scheduler.finished(work)
        elif self._policy.may_retry(work) and not self._stopping and self._is_ours(work):
            timer = asyncio.get_running_loop().call_later(self._policy.pause_s(work), self._retry, work)
            self._retrying[work] = timer
        else:
            self._failed(work, error)
        self._ended.set()
        self._hand_out()
        if self._paused:
            self._regulate()

    def _is_ours(self, work: Work) -> bool:
        return self._frontiers.get(work.partition) is work.frontier

    def _retry(self, work: Work) -> None:
        del self._retrying[work]
        self._give(work)

    def _failed(self, work: Work, error: Exception) -> None:
        self._scheduler.give_up(work)
        if self._failure is None and self._is_ours(work) and not self._policy.may_retry(work):
            self._failure = HandlerFailed(work.record, work.attempt)
            self._failure.__cause__ = error
            self._stopping = True
            self._drop(self._frontiers)

    # Ends.

    async def revoked(self, partitions: Collection[TopicPartition]) -> None:
        """These go to another member: finish what is begun, commit, forget."""
        ours = {tp: self._frontiers[tp] for tp in partitions if tp in self._frontiers}
        self._scheduler.trim(ours)
        await self._drain(ours.values())
        await self._commit(ours)
        self.lost(partitions)

    def lost(self, partitions: Collection[TopicPartition]) -> None:
        """Another member has these already: what workers still do for them no longer counts."""
        self._drop(partitions)
        for partition in partitions:
            self._frontiers.pop(partition, None)
        self._paused -= set(partitions)

    def _drop(self, partitions: Collection[TopicPartition]) -> None:
        self._scheduler.drop(set(partitions))
        self._stop_retrying(set(partitions))

    def _stop_retrying(self, partitions: Collection[TopicPartition]) -> None:
        for work in [work for work in self._retrying if work.partition in partitions]:
            self._retrying.pop(work).cancel()
            self._scheduler.give_up(work)

    async def _drain(self, frontiers: Iterable[Frontier]) -> None:
        """Wait until nothing of these partitions is left that should be finished."""
        frontiers = list(frontiers)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._drain_timeout_s
        while left := sum(each.running + each.waiting for each in frontiers):
            self._ended.clear()
            try:
                await asyncio.wait_for(self._ended.wait(), deadline - loop.time())
            except TimeoutError:
                log.warning("%d records are not finished in time; they may be handled again", left)
                return

    async def _finish(self) -> None:
        self._stopping = self._draining = True
        if self._failure is None:
            self._scheduler.trim(self._frontiers)
            self._stop_retrying(self._frontiers)
            self._hand_out()
        try:
            await self._drain(self._frontiers.values())
            await self._commit(self._frontiers)
        finally:
            assert self._workers is not None
            self._workers.close()
            self._drop(self._frontiers)
            if self._paused:
                self._consumer.resume(self._paused & set(self._consumer.assignment()))

    async def _commit(self, frontiers: dict[TopicPartition, Frontier]) -> None:
        news = {tp: each.offset for tp, each in frontiers.items() if each.has_news}
        if not news:
            return
        try:
            await self._consumer.commit({tp: OffsetAndMetadata(offset) for tp, offset in news.items()})
        except KafkaError as error:
            # Nothing is lost: the frontier is committed next time, or the records are read again by another member.
            log.warning("offsets could not be committed now: %s", error.message)
            return
        for tp, offset in news.items():
            frontiers[tp].committed = offset


class _Listener:
    """Of the group's rebalances."""

    def __init__(self, parallel: AsyncParallelConsumer) -> None:
        self._parallel = parallel

    async def on_assigned(self, consumer: Any, partitions: Collection[TopicPartition]) -> None:
        pass

    async def on_revoked(self, consumer: Any, partitions: Collection[TopicPartition]) -> None:
        await self._parallel.revoked(partitions)

    async def on_lost(self, consumer: Any, partitions: Collection[TopicPartition]) -> None:
        self._parallel.lost(partitions)
