"""Offsets of the group: committed at once, in the background or by the clock, and read back.

A *sync* commit is tried again until its time is over. An *async* one is sent once; its callback runs in a later poll,
commit or close, in the order of the calls. Requests leave in the order of the calls, so that no older offset is ever
written over a newer one, and a sync commit first waits for the async ones before it. The *automatic* commit is an async
one, made by a poll when `auto.commit.interval.ms` is over, and a sync one before a rebalance and at the end.

With an offset store all of this goes there instead of to the coordinator.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import consumer_keys
from penstock.client.consumer.closing import in_turn
from penstock.client.consumer.group.coordinator_offsets import UNKNOWN_TOPIC, CoordinatorOffsets, Offsets
from penstock.client.consumer.interceptors import Interceptors
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata
from penstock.client.core.waiting import Retry, within
from penstock.client.errors import RebalanceInProgress, is_retriable

log = logging.getLogger(__name__)

CommitCallback = Callable[[Offsets, Exception | None], Any]

_TELLING_MS: Final = 100.0


class Member(Protocol):
    """What commits need of the membership."""

    def commit_identity(self) -> ConsumerGroupMetadata:
        """Raises CommitFailed or RebalanceInProgress while the group would take no commit of this member."""

    def commit_refused(self, code: int, identity: ConsumerGroupMetadata) -> None: ...


class Store(Protocol):
    async def load(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata]: ...

    async def save(self, group: str, offsets: Offsets) -> None: ...


@dataclass(slots=True, kw_only=True)
class _Pending:
    offsets: Offsets
    callback: CommitCallback | None
    task: asyncio.Task[Exception | None]


class Commits:
    def __init__(
        self, core: ClientCore, subscription: SubscriptionState, interceptors: Interceptors, store: Store | None = None
    ) -> None:
        config = core.config
        self.member: Member | None = None
        """Set by the membership."""
        self.store = store if store is not None else _store_of(core)
        self._core = core
        self._subscription = subscription
        self._interceptors = interceptors
        self._group_id = config[consumer_keys.GROUP_ID]
        self._order = asyncio.Lock()
        self._coordinator = CoordinatorOffsets(core, self._group_id, self._order)
        self._pending: deque[_Pending] = deque()
        self._is_automatic = config[consumer_keys.ENABLE_AUTO_COMMIT]
        self._interval_s = config[consumer_keys.AUTO_COMMIT_INTERVAL_MS] / 1000
        self._retry_s = config[consumer_keys.RETRY_BACKOFF_MS] / 1000
        self._next_at = core.ports.clock.monotonic() + self._interval_s

    # Committing.

    async def commit(self, offsets: Offsets | None = None, *, timeout_ms: float | None = None) -> None:
        """Until the offsets are committed: those given, or the positions of all partitions."""
        timeout_ms = self._core.default_timeout_ms if timeout_ms is None else timeout_ms
        deadline = self._now() + timeout_ms / 1000
        chosen = dict(self._subscription.all_consumed() if offsets is None else offsets)
        await self.drain(deadline)
        if not chosen:
            return
        await self._commit(chosen, max(0.0, deadline - self._now()) * 1000)
        if self._interceptors:
            await self._core.call_user(self._interceptors.on_commit, chosen)

    def commit_async(self, offsets: Offsets | None = None, callback: CommitCallback | None = None) -> None:
        """Send now, hear of it later. Nothing is tried again: a later commit may be on its way already."""
        chosen = dict(self._subscription.all_consumed() if offsets is None else offsets)
        while self._pending and self._is_of_no_interest(self._pending[0]):
            self._pending.popleft()
        task = self._core.ports.tasks.spawn(self._commit_once(chosen), name="async commit")
        self._pending.append(_Pending(offsets=chosen, callback=callback, task=task))

    def _is_of_no_interest(self, pending: _Pending) -> bool:
        return pending.task.done() and pending.callback is None and not self._interceptors

    async def run_callbacks(self) -> None:
        """Of async commits that are done, in order. What a callback raises goes to the user."""
        while self._pending and self._pending[0].task.done():
            done = self._pending.popleft()
            if done.task.cancelled():
                continue
            error = done.task.result()
            if error is None and self._interceptors:
                await self._core.call_user(self._interceptors.on_commit, done.offsets)
            if done.callback is not None:
                await self._core.call_user(done.callback, done.offsets, error)

    async def drain(self, deadline: float) -> None:
        """Wait for async commits under way, then run their callbacks."""
        waiting = [each.task for each in self._pending if not each.task.done()]
        if waiting:
            await asyncio.wait(waiting, timeout=max(0.0, deadline - self._now()))
        await self.run_callbacks()

    # By the clock.

    async def maybe_auto_commit(self) -> None:
        """In every poll."""
        if self._pending:
            await self.run_callbacks()
        now = self._now()
        if not self._is_automatic or now < self._next_at:
            return
        self._next_at = now + self._interval_s
        offsets = self._subscription.all_consumed()
        if offsets and self._may_commit():
            self.commit_async(offsets, self._auto_committed)

    def _auto_committed(self, offsets: Offsets, error: Exception | None) -> None:
        if error is None:
            return
        if is_retriable(error):
            self._next_at = min(self._next_at, self._now() + self._retry_s)
        log.log(
            logging.DEBUG if is_retriable(error) else logging.WARNING,
            "group %s: offsets were not committed automatically: %s",
            self._group_id,
            error,
        )

    async def auto_commit_now(self, timeout_ms: float) -> None:
        """Before partitions are given up. Failures are logged: the group cannot wait for one member's commit."""
        try:
            await self._auto_commit(timeout_ms)
        except Exception as error:  # a store may raise anything
            log.warning(
                "group %s: offsets were not committed before they were given up: %s",
                self._group_id,
                error,
                exc_info=None if isinstance(error, KafkaError) else error,
            )

    async def _auto_commit(self, timeout_ms: float) -> None:
        if not self._is_automatic:
            return
        self._next_at = self._now() + self._interval_s
        offsets = self._subscription.all_consumed()
        if not offsets or not self._may_commit():
            return
        await self._commit(offsets, timeout_ms, waits_for_topics=False)
        if self._interceptors:
            self._interceptors.on_commit(offsets)

    def reset_clock(self) -> None:
        self._next_at = self._now() + self._interval_s

    async def close(self, deadline: float) -> None:
        """The last automatic commit, and the end of the async ones. Raises what a store or a callback raised."""
        try:
            await in_turn(lambda: self._last_commit(deadline), lambda: self.drain(deadline))
        finally:
            for each in self._pending:
                each.task.cancel()

    async def _last_commit(self, deadline: float) -> None:
        timeout_ms = max(0.0, deadline - self._now()) * 1000
        if self.store is not None:
            await self._auto_commit(timeout_ms)
        # Whoever never reached the cluster has read nothing: no use to look for a coordinator until the deadline.
        elif self._core.metadata.snapshot.version:
            await self.auto_commit_now(timeout_ms)

    # Reading back.

    async def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The group's offset of each partition; None where nothing was committed."""
        wanted = list(partitions)
        if self.store is not None:
            stored = await self.store.load(self._group_id or "", wanted)
            return {partition: stored.get(partition) for partition in wanted}
        return await self._coordinator.committed(wanted, timeout_ms)

    # Inside.

    def _now(self) -> float:
        return self._core.ports.clock.monotonic()

    def _may_commit(self) -> bool:
        try:
            self._identity()
        except KafkaError:
            return False
        return True

    def _identity(self) -> ConsumerGroupMetadata:
        if self._subscription.uses_group and self.member is not None:
            return self.member.commit_identity()
        return ConsumerGroupMetadata(self._group_id or "")

    def _refused(self, code: int, identity: ConsumerGroupMetadata) -> None:
        if self._subscription.uses_group and self.member is not None:
            self.member.commit_refused(code, identity)

    async def _try_commit(self, offsets: Offsets, timeout_ms: float) -> KafkaError | None:
        return await self._coordinator.try_commit(offsets, self._identity, self._refused, timeout_ms)

    async def _commit_once(self, offsets: Offsets) -> Exception | None:
        if not offsets:
            return None
        try:
            if self.store is not None:
                async with self._order:
                    await self.store.save(self._group_id or "", offsets)
                return None
            return await self._try_commit(offsets, self._core.request_timeout_ms)
        except Exception as error:  # noqa: BLE001 - whatever the store raises goes to the callback
            return error

    async def _commit(self, offsets: Offsets, timeout_ms: float, *, waits_for_topics: bool = True) -> None:
        """`waits_for_topics`: a topic that the coordinator does not know may still become known to it."""
        if self.store is not None:
            async with self._order:
                await self.store.save(self._group_id or "", offsets)
            return
        what = f"committing offsets of group {self._coordinator.group}"
        async for attempt in self._core.retry(timeout_ms=timeout_ms, what=what):
            try:
                error = await within(
                    self._core.ports, attempt.remaining_ms, self._try_commit(offsets, self._limit_ms(attempt))
                )
            except TimeoutError:
                raise attempt.timed_out() from attempt.cause
            if error is None:
                return
            is_final = isinstance(error, RebalanceInProgress) or not is_retriable(error)
            # Each partition is committed by itself, so those of a deleted topic hold up no other.
            if is_final or (error.code in UNKNOWN_TOPIC and not waits_for_topics):
                raise error
            attempt.failed(error)

    def _limit_ms(self, attempt: Retry) -> float:
        """Of one request: it gives up a little before the call does, which can tell the cause then."""
        left_ms = attempt.remaining_ms
        return min(left_ms - min(_TELLING_MS, left_ms / 10), self._core.request_timeout_ms)


def _store_of(core: ClientCore) -> Store | None:
    store = core.config[consumer_keys.OFFSET_STORE]
    if store is None:
        return None
    # Imported here: most consumers have none.
    from penstock.client.consumer.offset_stores import KafkaOffsetStore, StoreCaller

    if isinstance(store, KafkaOffsetStore):
        return None
    caller: Store = StoreCaller(core, store)
    return caller
