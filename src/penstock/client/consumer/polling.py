"""One poll: keep up with the group, see to positions, have records fetched, take what is there, or wait.

Work that outlives a poll (looking up committed offsets) goes on between polls as a task, so that a user who polls with
short time-outs still gets ahead. Everything else either is plain or has a deadline of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.parts import ConsumerParts, no_such_partition
from penstock.client.consumer.positions import FetchStatus
from penstock.client.consumer.subscription import Mode
from penstock.client.core.metadata import no_such_topic
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.core.waiting import pause
from penstock.client.errors import (
    InvalidState,
    KafkaTimeout,
    NoBrokersReachable,
    UnknownTopicOrPartition,
    WakeUp,
    is_retriable,
)

log = logging.getLogger(__name__)

T = TypeVar("T")

_REACH_PAUSE_S: Final = 1.0


class Poller:
    def __init__(self, parts: ConsumerParts) -> None:
        self._parts = parts
        self._clock = parts.core.ports.clock
        self._committed: asyncio.Task[None] | None = None
        self._is_woken = False
        self._reaching = parts.core.ports.tasks.spawn(self._reach_cluster(), name="first metadata")

    # Waking up.

    def wake_up(self) -> None:
        """On the loop: the call that waits, or the next one, raises `WakeUp`."""
        self._is_woken = True
        self._parts.signal.set()

    def check_awake(self) -> None:
        if self._is_woken:
            self._is_woken = False
            raise WakeUp("wakeup() was called")

    # Polling.

    async def poll(self, take: Callable[[], T | None], timeout_s: float) -> T | None:
        """What `take` gives, as soon as it gives something; None when the time is over."""
        membership = self._parts.membership
        if membership is None:
            return await self._poll(take, timeout_s)
        membership.is_polling = True
        try:
            return await self._poll(take, timeout_s)
        finally:
            membership.is_polling = False
            membership.polled()

    async def _poll(self, take: Callable[[], T | None], timeout_s: float) -> T | None:
        parts = self._parts
        now = parts.metrics.polled()
        deadline = now + timeout_s
        fetcher = parts.fetcher
        while True:
            self.check_awake()
            self._check_chosen()
            await self._keep_up(now)
            self.raise_errors()
            fetcher.send()
            drained = fetcher.buffer.drained
            try:
                taken = take()
            finally:
                if fetcher.buffer.drained != drained:
                    fetcher.changed()
                    fetcher.send()
            if taken is not None:
                return taken
            now = self._clock.monotonic()
            if now >= deadline:
                return None
            await parts.signal.wait(self._wait_s(deadline - now))
            waited_from, now = now, self._clock.monotonic()
            parts.metrics.waited(now - waited_from)

    def raise_errors(self) -> None:
        if self._parts.errors:
            raise self._parts.errors.popleft()

    async def positions_known(self, partition: TopicPartition, timeout_ms: float) -> None:
        """Wait until the partition has a position."""
        deadline = self._clock.monotonic() + timeout_ms / 1000
        while True:
            state = self._parts.subscription.state(partition)
            if state.position is not None and state.status is not FetchStatus.AWAIT_RESET:
                return
            self.check_awake()
            self._resolve()
            self.raise_errors()
            if state.position is not None:
                return
            remaining_s = deadline - self._clock.monotonic()
            if remaining_s <= 0:
                raise self._no_position(partition, timeout_ms)
            await self._parts.signal.wait(self._wait_s(remaining_s))

    def _no_position(self, partition: TopicPartition, timeout_ms: float) -> KafkaError:
        """The time is over: what stands in the way."""
        core = self._parts.core
        topic = core.metadata.snapshot.topics.get(partition.topic)
        if topic is not None and topic.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            return no_such_topic(partition.topic, timeout_ms)
        if topic is not None and not topic.error and partition.partition >= len(topic.partitions):
            return UnknownTopicOrPartition(no_such_partition(partition, len(topic.partitions)))
        why = core.why_late()
        if not why and core.metadata.snapshot.leader(partition) is None:
            why = "it has no leader at present: are its brokers up?"
        state = self._parts.subscription.state(partition)
        return KafkaTimeout(
            f"the position of {partition} is not known after {timeout_ms:.0f} ms: it {state.status.value}, "
            f"and no broker told{f': {why}' if why else ''}"
        )

    # Inside.

    def _check_chosen(self) -> None:
        if self._parts.subscription.mode is Mode.NONE:
            raise InvalidState("There is nothing to poll: subscribe to topics or assign partitions first.")

    async def _keep_up(self, now: float) -> None:
        """One step of everything, without waiting: what goes on by itself sets the signal when it gets ahead."""
        parts = self._parts
        if parts.subscription.uses_group:
            await parts.need_membership().ensure_active(now)
        if parts.commits is not None:
            await parts.commits.maybe_auto_commit()
        self._resolve()

    def _resolve(self) -> None:
        """Have positions looked for where they are missing."""
        subscription = self._parts.subscription
        fetching = FetchStatus.FETCHING
        if all(state.status is fetching for _, state in subscription.items()):
            return
        missing = subscription.in_status(FetchStatus.INITIALIZING)
        if missing:
            self._begin(missing)
        self._parts.resolver.kick()

    def _begin(self, missing: list[TopicPartition]) -> None:
        """Begin partitions at their committed offsets, or where the policy says."""
        if self._parts.commits is None:
            self._parts.resolver.reset_missing(missing)
            return
        task, self._committed = self._committed, None
        if task is not None and task.done():
            if not task.cancelled():
                task.result()
            missing = self._parts.subscription.in_status(FetchStatus.INITIALIZING)
            task = None
        if task is None and missing:
            task = asyncio.ensure_future(self._load_committed(missing))
            task.add_done_callback(self._loaded)
        self._committed = task

    def _loaded(self, task: asyncio.Task[None]) -> None:
        # The next poll raises what it failed with; should there be none, nobody misses it.
        _ = task.cancelled() or task.exception()
        self._parts.positions_changed()

    async def _load_committed(self, missing: list[TopicPartition]) -> None:
        commits = self._parts.need_commits()
        found = await commits.committed(missing, timeout_ms=self._parts.core.default_timeout_ms)
        here = [each for each in missing if each in self._parts.subscription]
        for partition in here:
            committed: OffsetAndMetadata | None = found.get(partition)
            if committed is not None and committed.offset >= 0:
                log.info("%s goes on at the committed offset %d", partition, committed.offset)
                self._parts.subscription.set_committed(partition, committed)
        self._parts.resolver.reset_missing(here)

    def _wait_s(self, remaining_s: float) -> float:
        next_try_s = self._parts.resolver.next_try_s
        return remaining_s if next_try_s is None else min(remaining_s, next_try_s)

    # The first contact.

    async def _reach_cluster(self) -> None:
        """Until the first metadata came: a wrong address or wrong credentials must not look like an empty topic."""
        core = self._parts.core
        while not core.metadata.snapshot.version:
            try:
                await core.metadata.update(core.default_timeout_ms)
            except KafkaTimeout as error:
                self._parts.errors.append(NoBrokersReachable(str(error)))
            except KafkaError as error:
                if core.is_closed:
                    return
                if not is_retriable(error):
                    self._parts.errors.append(error)
                await pause(core.ports, _REACH_PAUSE_S)
            self._parts.signal.set()

    async def close(self) -> None:
        for task in (self._reaching, self._committed):
            if task is not None and not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
