"""Who is asked for records, when, and for which partitions.

At most one fetch is under way to each node. `send` asks every node that is not being waited for, for all partitions
that can be read there and have room in the buffer; it is called by each poll, and again by each answer, so that more
records are on their way while the user works on the last. A fetch that leaves partitions out, because they are full or
paused, waits less long at the broker: as soon as such a partition has room again, its turn must come.

Failures: a node that does not answer is left alone for `retry.backoff.ms`, a partition whose leader moved waits for new
metadata. What the user must hear of (no right to read, an offset out of range with no policy) is kept in `errors`.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Any, Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Timer
from penstock.base.types import ZERO_UUID, TopicPartition
from penstock.client.consumer.fetching.answers import FetchAnswers
from penstock.client.consumer.fetching.buffer import FetchBuffer
from penstock.client.consumer.fetching.metrics import FetchMetrics
from penstock.client.consumer.fetching.request import FETCH_VERSION_BY_NAME_MAX, fetch_request
from penstock.client.consumer.fetching.response import FetchAnswer, decode_fetch_answer
from penstock.client.consumer.fetching.session import FetchSession, FetchTarget, SessionFetch
from penstock.client.consumer.fetching.settings import FetchSettings
from penstock.client.consumer.positions import FetchStatus, PartitionState
from penstock.client.consumer.signal import Signal
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import error_for
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.fetch import FetchRequest

log = logging.getLogger(__name__)

FULL_WAIT_MS_MAX: Final = 20
"""How long a broker may hold a fetch that leaves out partitions whose records wait here to be taken."""
PAUSED_WAIT_MS_MAX: Final = 100
"""The same for partitions that are paused."""
CLOSE_TIMEOUT_MS: Final = 1_000


class Fetcher:
    def __init__(
        self,
        core: ClientCore,
        subscription: SubscriptionState,
        settings: FetchSettings,
        arrived: Signal,
        metrics: FetchMetrics,
    ) -> None:
        self.buffer = FetchBuffer(subscription)
        self.errors: deque[KafkaError] = deque()
        """What polls must raise, oldest first."""
        self._core = core
        self._clock = core.ports.clock
        self._subscription = subscription
        self._settings = settings
        self._arrived = arrived
        self._metrics = metrics
        self._sessions: dict[int, FetchSession] = {}
        self._in_flight: dict[int, asyncio.Future[Any]] = {}
        self._pauses: dict[int | TopicPartition, Timer] = {}
        """Nodes and partitions that failed a moment ago."""
        self._answers = FetchAnswers(core, subscription, settings, self.buffer, self.errors, self._pause)
        self._is_dirty = True
        self._is_closed = False
        self._seen_version = -1

    # Asking.

    def changed(self) -> None:
        """Something may be fetched now that could not before: the next `send` looks."""
        self._is_dirty = True

    def send(self) -> None:
        """Ask every node that is not being waited for."""
        if self._seen_version != self._subscription.version:
            self._seen_version = self._subscription.version
            self.buffer.drop_unassigned()
            self._is_dirty = True
        if not self._is_dirty or self._is_closed:
            return
        self._is_dirty = False
        if self.buffer.bytes_active >= self._settings.prefetch_bytes_max:
            return
        for node, (targets, wait_ms) in self._plan().items():
            if targets:
                self._send_to(node, targets, wait_ms)

    def _plan(self) -> dict[int, tuple[dict[TopicPartition, FetchTarget], int]]:
        """Per node what to ask for, and how long the broker may wait."""
        now = self._clock.monotonic()
        snapshot = self._core.metadata.snapshot
        plans: dict[int, tuple[dict[TopicPartition, FetchTarget], int]] = {}
        for partition, state in self._subscription.items():
            if state.status is not FetchStatus.FETCHING:
                continue
            node = self._node_of(partition, state, now, snapshot)
            if node is None or node in self._in_flight or node in self._pauses:
                continue
            targets, wait_ms = plans.get(node) or ({}, self._settings.max_wait_ms)
            left_out_ms = self._left_out_wait_ms(partition, state)
            if left_out_ms is not None:
                wait_ms = min(wait_ms, left_out_ms)
            elif state.is_fetchable:
                targets[partition] = self._target(partition, state, snapshot)
            plans[node] = targets, wait_ms
        return plans

    def _left_out_wait_ms(self, partition: TopicPartition, state: PartitionState) -> int | None:
        """How long a fetch may wait that leaves this partition out; None when it is in."""
        if state.paused or partition in self._pauses:
            return PAUSED_WAIT_MS_MAX
        if not self.buffer.has_room(partition, state):
            return FULL_WAIT_MS_MAX
        return None

    def _node_of(
        self, partition: TopicPartition, state: PartitionState, now: float, snapshot: ClusterSnapshot
    ) -> int | None:
        info = snapshot.partition(partition)
        if info is None or info.leader is None or info.leader not in snapshot.nodes:
            self._core.metadata.request_update(f"{partition} has no leader")
            return None
        position = state.position
        assert position is not None
        is_known = position.leader == info.leader and position.leader_epoch == info.leader_epoch
        if not is_known and state.leader_is(info.leader, info.leader_epoch):
            self._arrived.set()
            return None
        replica = state.read_replica(now)
        return info.leader if replica is None or replica not in snapshot.nodes else replica

    def _target(self, partition: TopicPartition, state: PartitionState, snapshot: ClusterSnapshot) -> FetchTarget:
        assert state.position is not None
        return FetchTarget(
            snapshot.topics[partition.topic].topic_id,
            self.buffer.next_offset(partition, state),
            state.position.leader_epoch,
            self._settings.partition_bytes_max,
        )

    def _send_to(self, node: int, targets: dict[TopicPartition, FetchTarget], wait_ms: int) -> None:
        session = self._sessions.get(node)
        if session is None:
            session = self._sessions[node] = FetchSession()
        uses_ids = all(target.topic_id != ZERO_UUID for target in targets.values())
        fetch = session.plan(targets, uses_ids=uses_ids)
        sent_at = self._clock.monotonic()
        future = self._core.send(
            node,
            ApiKey.FETCH,
            self._request(fetch, wait_ms),
            timeout_ms=self._settings.request_timeout_ms + wait_ms,
            at_most=VERSION_MAX if uses_ids else FETCH_VERSION_BY_NAME_MAX,
            decode=decode_fetch_answer,
        )
        self._in_flight[node] = future
        future.add_done_callback(lambda done: self._done(node, session, fetch, sent_at, done))

    def _request(self, fetch: SessionFetch, wait_ms: int) -> FetchRequest:
        settings = self._settings
        return fetch_request(
            fetch,
            max_wait_ms=wait_ms,
            min_bytes=settings.min_bytes,
            max_bytes=settings.max_bytes,
            isolation_level=settings.isolation_level,
            rack_id=settings.rack,
        )

    # Answers.

    def _done(
        self, node: int, session: FetchSession, fetch: SessionFetch, sent_at: float, done: asyncio.Future[Any]
    ) -> None:
        self._in_flight.pop(node, None)
        if done.cancelled() or self._is_closed:
            _ignore(done)
            return
        error = done.exception()
        self._is_dirty = True
        if error is not None:
            self._failed(node, session, error)
        else:
            answer: FetchAnswer = done.result()
            self._metrics.answered(self._clock.monotonic() - sent_at, len(answer.frame), answer.throttle_time_ms)
            self._answered(node, session, fetch, answer)
        self.send()
        self._arrived.set()

    def _failed(self, node: int, session: FetchSession, error: BaseException) -> None:
        session.failed()
        log.info("a fetch from node %d failed: %s", node, error)
        for partition in session.partitions:
            state = self._subscription.get(partition)
            if state is not None and state.preferred_replica == node:
                state.clear_preferred_replica()
        self._core.metadata.request_update(f"a fetch from node {node} failed")
        self._pause(node)
        if isinstance(error, KafkaError) and not getattr(error, "retriable", True):
            self.errors.append(error)

    def _pause(self, what: int | TopicPartition) -> None:
        """Leave a node or a partition alone for a while."""
        if what in self._pauses:
            self._pauses[what].cancel()
        self._pauses[what] = self._core.ports.tasks.call_later(
            self._settings.retry_backoff_s, lambda: self._pause_over(what)
        )

    def _pause_over(self, what: int | TopicPartition) -> None:
        del self._pauses[what]
        self._is_dirty = True
        self.send()

    def _answered(self, node: int, session: FetchSession, fetch: SessionFetch, answer: FetchAnswer) -> None:
        if not session.answered(fetch, answer.error_code, answer.session_id):
            log.debug("node %d: fetch session %d: %s", node, fetch.session_id, error_for(answer.error_code))
            if answer.error_code != ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                self._core.metadata.request_update("a fetch session failed")
                self._pause(node)
            return
        self._answers.take(session, answer)

    # The end.

    async def close(self) -> None:
        """Tell brokers to forget their sessions, without waiting for their answers, and drop everything."""
        self._is_closed = True
        for node, session in self._sessions.items():
            last = session.closing()
            if last is not None and node not in self._in_flight and self._core.channel(node).has_room:
                request = self._request(last, 0)
                self._core.send(node, ApiKey.FETCH, request, timeout_ms=CLOSE_TIMEOUT_MS).add_done_callback(_ignore)
        for timer in self._pauses.values():
            timer.cancel()
        waiting = [future for future in self._in_flight.values() if not future.done()]
        for future in waiting:
            future.cancel()
        self.buffer.clear()


def _ignore(done: asyncio.Future[Any]) -> None:
    """Read the exception, or asyncio would complain that nobody did."""
    _ = done.cancelled() or done.exception()
