"""The consumer's side of its group: called in every poll, and it does what the machine says is next.

Rebalances make progress only in polls, as the listener must be told in the user's thread; JoinGroup and SyncGroup
go on between polls by themselves, and heartbeats as long as the member is in the group. A poll that finds nothing to do
for the group costs a few comparisons.

What a listener raises is logged, and raised by the poll that completes the rebalance: the group must not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from penstock.base.types import TopicPartition
from penstock.client.config import consumer_keys
from penstock.client.consumer.assignors.base import RebalanceProtocol
from penstock.client.consumer.assignors.catalogue import common_protocol, resolve_assignors
from penstock.client.consumer.closing import in_turn
from penstock.client.consumer.commits import Commits
from penstock.client.consumer.group.coordinator_offsets import MOVED_ON
from penstock.client.consumer.group.events import (
    Completed,
    Effect,
    Identity,
    JoinStarted,
    LeaveWanted,
    Prepared,
    Refused,
    RejoinWanted,
)
from penstock.client.consumer.group.exchange import Exchange
from penstock.client.consumer.group.heartbeats import Heartbeats
from penstock.client.consumer.group.leading import shape_of
from penstock.client.consumer.group.machine import SETTLED, Machine, Step
from penstock.client.consumer.group.settings import GroupSettings
from penstock.client.consumer.group.telling import Teller
from penstock.client.consumer.group.topics import TopicWatch
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ConsumerGroupMetadata
from penstock.client.errors import CommitFailed, MaxPollIntervalExceeded, RebalanceInProgress

log = logging.getLogger(__name__)


class GroupMembership:
    def __init__(
        self, core: ClientCore, subscription: SubscriptionState, commits: Commits, *, consumer: Callable[[], object]
    ) -> None:
        self.on_rebalance: Callable[[], None] = lambda: None
        """Called when a poll that waits has something to do for the group."""
        self._core = core
        self._subscription = subscription
        self._commits = commits
        commits.member = self
        self._settings = GroupSettings.of(core.config)
        strategy = core.config[consumer_keys.PARTITION_ASSIGNMENT_STRATEGY]
        assignors = resolve_assignors(strategy)
        self._is_cooperative = common_protocol(assignors) is RebalanceProtocol.COOPERATIVE
        self._machine = Machine(self._settings.group_id, self._settings.instance_id)
        self._exchange = Exchange(core, self._machine, self._settings, assignors, subscription)
        self._exchange.on_wake = self._wake
        self._heartbeats = Heartbeats(core, self._machine, self._settings, self._perform_later)
        self._exchange.on_joined = self._heartbeats.joined
        self._teller = Teller(core, subscription, self._heartbeats, consumer)
        self._exchanging: asyncio.Task[None] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._waiters: set[asyncio.Future[None]] = set()
        self._topics = TopicWatch(core, subscription, self._settings, self._wait_for_change, self._wake)
        self._topics.on_change = self._maybe_rejoin
        self._rebalances = core.metrics.counter("rebalance-total")
        self._rebalanced_at: float | None = None
        core.metrics.gauge("last-rebalance-seconds-ago", self._since_rebalance_s)

    # For the poll.

    @property
    def is_polling(self) -> bool:
        return self._heartbeats.is_polling

    @is_polling.setter
    def is_polling(self, value: bool) -> None:
        self._heartbeats.is_polling = value

    def polled(self) -> None:
        """The user called poll: he is alive."""
        self._heartbeats.polled()

    async def ensure_active(self, deadline: float) -> bool:
        """Take part in the group as far as it goes until the deadline; True when the member is settled in it."""
        self._heartbeats.polled()
        while True:
            self._raise_failure()
            if not await self._topics.look(deadline):
                return False
            match self._machine.next_step():
                case Step.NOTHING:
                    self._teller.raise_error()
                    return True
                case Step.PREPARE:
                    if not await self._prepare(deadline):
                        return False
                case Step.JOIN if self._is_exchanging:
                    # The last one has failed and keeps its pause.
                    if not await self._wait_for_change(deadline):
                        return False
                case Step.JOIN:
                    self._start_exchange()
                case Step.WAIT:
                    if not await self._wait_for_change(deadline):
                        return False
                case Step.COMPLETE:
                    await self._complete()
                    self._teller.raise_error()

    def subscription_changed(self) -> None:
        """After subscribe(): the next poll joins with the new topics."""
        self._topics.subscription_changed()

    def enforce_rebalance(self, reason: str = "") -> None:
        self._perform_later(self._machine.handle(RejoinWanted(reason=reason or "the user asked for a rebalance")))

    def metadata(self) -> ConsumerGroupMetadata:
        identity = self._machine.identity
        return ConsumerGroupMetadata(
            self._settings.group_id, identity.generation_id, identity.member_id, self._settings.instance_id
        )

    # For commits.

    def commit_identity(self) -> ConsumerGroupMetadata:
        machine = self._machine
        if machine.may_commit:
            return self.metadata()
        group = self._settings.group_id
        if machine.poll_expired:
            raise MaxPollIntervalExceeded(MOVED_ON.format(group=group))
        if machine.is_rebalancing:
            raise RebalanceInProgress(
                f"Group {group}: a rebalance is under way and the offsets were not committed; poll, then commit again."
            )
        if machine.failure is not None:
            raise machine.failure
        raise CommitFailed(MOVED_ON.format(group=group))

    def commit_refused(self, code: int, identity: ConsumerGroupMetadata) -> None:
        current = self._machine.identity
        sent = Identity(member_id=identity.member_id, generation_id=identity.generation_id, protocol=current.protocol)
        self._perform_later(self._machine.handle(Refused(code=code, identity=sent)))

    # The end.

    async def unsubscribe(self) -> None:
        """Give all partitions up and leave."""
        await self._stop_exchange()
        await self._give_up_all()
        await self._leave("the consumer unsubscribed")
        self._teller.raise_error()

    async def close(self, deadline: float, *, leave_group: bool = True) -> None:
        """Tell the listener, then the coordinator; a static member keeps its place."""
        await self._stop_exchange()
        steps: list[Callable[[], Awaitable[object]]] = []
        if self._subscription.uses_group:
            steps += [self._give_up_all, lambda: self._commits.drain(deadline)]
        if leave_group:
            steps.append(lambda: self._leave("the consumer was closed", deadline))
        try:
            await in_turn(*steps)
        finally:
            await self._heartbeats.close()
        self._teller.raise_error()

    async def _give_up_all(self) -> None:
        owned = self._subscription.partitions
        if not owned:
            return
        if self._machine.identity.is_member:
            await self._teller.revoked(owned)
        else:
            await self._teller.lost(owned)

    async def _leave(self, reason: str, deadline: float | None = None) -> None:
        work = self._exchange.perform(self._machine.handle(LeaveWanted(reason=reason)))
        limit_s = None if deadline is None else max(0.1, deadline - self._now())
        try:
            await asyncio.wait_for(work, limit_s)
        except TimeoutError:
            log.info("group %s: there was no time left to say good-bye", self._settings.group_id)

    async def _stop_exchange(self) -> None:
        for task in (self._exchanging, self._committing):
            await _stop(task)
        self._exchanging = self._committing = None
        self._topics.close()

    # What asks for a new assignment.

    def _maybe_rejoin(self) -> None:
        exchange, machine = self._exchange, self._machine
        if machine.state not in SETTLED:
            return
        if exchange.joined_topics != self._subscription.topics:
            self._perform_later(machine.handle(RejoinWanted(reason="the subscription changed")))
        elif machine.is_leader and exchange.group_shape is not None:
            with_racks = bool(self._settings.rack)
            shape = shape_of(self._core.metadata.snapshot, exchange.group_shape, with_racks=with_racks)
            if shape != exchange.group_shape:
                self._perform_later(machine.handle(RejoinWanted(reason="topics or partitions changed")))

    # Before a join.

    async def _prepare(self, deadline: float) -> bool:
        """Commit, then give up what has to be given up, while the group still knows this member."""
        if not await self._commit_first(deadline):
            return False
        # One still under way belongs to an identity that is lost.
        await _stop(self._exchanging)
        owned = self._subscription.partitions
        if not self._machine.identity.is_member:
            if owned:
                await self._teller.lost(owned)
        elif not self._is_cooperative:
            await self._teller.revoked(owned)
        elif gone := [each for each in owned if each.topic not in self._subscription.topics]:
            await self._teller.revoked(gone)
        self._machine.handle(Prepared())
        return True

    async def _commit_first(self, deadline: float) -> bool:
        """A task, since a short poll may end before it does; False when it goes on."""
        if self._committing is None:
            if not self._machine.may_commit:
                return True
            # Nothing new is given to the user of partitions that may go while their offsets are written.
            if not self._is_cooperative:
                self._subscription.mark_pending_revocation(self._subscription.partitions)
            work = self._commits.auto_commit_now(self._settings.rebalance_timeout_ms)
            self._committing = self._core.ports.tasks.spawn(work, name="commit before a rebalance")
            self._committing.add_done_callback(lambda _: self._wake())
        while not self._committing.done():
            if not await self._wait_for_change(deadline):
                return False
        self._committing = None
        return True

    # Joining.

    @property
    def _is_exchanging(self) -> bool:
        return self._exchanging is not None and not self._exchanging.done()

    def _start_exchange(self) -> None:
        # The machine moves on here and now, so that nobody starts a second one.
        effects = self._machine.handle(JoinStarted())
        self._exchanging = self._core.ports.tasks.spawn(self._exchange.perform(effects), name="group join")
        self._exchanging.add_done_callback(lambda _: self._wake())

    async def _wait_for_change(self, deadline: float) -> bool:
        """Until something was heard; False when the time is over."""
        remaining_s = deadline - self._now()
        if remaining_s <= 0:
            return False
        waiter: asyncio.Future[None] = self._core.ports.tasks.future()
        self._waiters.add(waiter)
        timer = self._core.ports.tasks.call_later(remaining_s, lambda: _finish(waiter))
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiters.discard(waiter)
        return True

    def _wake(self) -> None:
        for waiter in self._waiters:
            _finish(waiter)
        self.on_rebalance()

    def _perform_later(self, effects: list[Effect]) -> None:
        """Effects of events that come from outside an exchange."""
        if effects:
            self._core.ports.tasks.spawn(self._exchange.perform(effects), name="group effects")

    def _since_rebalance_s(self) -> float:
        return -1.0 if self._rebalanced_at is None else self._now() - self._rebalanced_at

    def _raise_failure(self) -> None:
        failure = self._machine.take_failure()
        if failure is not None:
            raise failure

    def _now(self) -> float:
        return self._core.ports.clock.monotonic()

    # After a join.

    async def _complete(self) -> None:
        """Take the assignment over and tell the listener."""
        exchange, subscription, machine = self._exchange, self._subscription, self._machine
        assigned = exchange.assignment.partitions
        if not subscription.matches_subscription(assigned):
            log.warning(
                "group %s: the assignment is for other topics than those subscribed to; the member joins again",
                self._settings.group_id,
            )
            self._perform_later(machine.handle(RejoinWanted(reason="the assignment does not fit the subscription")))
            machine.handle(Completed())
            return
        if not machine.is_leader:
            exchange.group_shape = None
        await self._take_over(assigned)
        machine.handle(Completed())
        self._commits.reset_clock()
        self._rebalances.value += 1
        self._rebalanced_at = self._now()
        self._maybe_rejoin()

    async def _take_over(self, assigned: Collection[TopicPartition]) -> None:
        before, now = set(self._subscription.partitions), set(assigned)
        log.info(
            "group %s, generation %d: %d partitions (%d new)",
            self._settings.group_id,
            self._machine.identity.generation_id,
            len(now),
            len(now - before),
        )
        if gone := before - now:
            # Cooperative: the others wait for these. Joining again tells the leader that they are free. They were read
            # all the time since the commit before the join, hence another one.
            self._subscription.mark_pending_revocation(gone)
            await self._commits.auto_commit_now(self._settings.request_timeout_ms)
            await self._teller.revoked(sorted(gone))
            self._perform_later(self._machine.handle(RejoinWanted(reason="partitions were given up for other members")))
        self._subscription.assign_from_group([*assigned])
        assignor = self._exchange.assignor(self._machine.identity.protocol)
        if assignor is not None and hasattr(assignor, "on_assignment"):
            assignor.on_assignment(self._exchange.assignment, self.metadata())
        await self._teller.assigned(sorted(now - before))


async def _stop(task: asyncio.Task[Any] | None) -> None:
    if task is not None and not task.done():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _finish(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
