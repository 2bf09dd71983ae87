"""The I/O side: takes ready batches, groups them by the node that leads their partitions, sends, and settles answers.

There is no task that loops. A *round* is one plain function: it fails what is too old, sees which partitions are ready,
sends as many requests as there is room for, and sets a timer for the next moment at which time alone changes something.
It runs when a caller wakes it, when an answer comes, when metadata change, and when that timer fires.

A partition is ready when its first batch is full, has lingered, is being repeated, or nobody may wait any longer
(flush, close, memory exhausted, a transaction being ended), and when its leader is known, the pause after a failure is
over (or there is a newer leader, KIP-951), and sequences, transaction and order allow it. A request holds at most one
batch per partition, as Kafka demands; partitions take turns.

Everything here belongs to the loop. A batch taken from the accumulator is in `_on_wire` until it is answered or
expires; `settling` does what the answer says.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from penstock.base.errors import KafkaError
from penstock.base.ports import Timer
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import ClientClosed
from penstock.client.producer.accumulator import Accumulator, PartitionQueue
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import Outcome, add_waiter
from penstock.client.producer.idempotence import Idempotence
from penstock.client.producer.identifying import Identifying
from penstock.client.producer.metrics import ProducerMetrics
from penstock.client.producer.reaching import NEVER, Reaching
from penstock.client.producer.requests import IDS_FROM, LOWEST_VERSION, TopicBatches, encode_produce
from penstock.client.producer.sealing import seal_batch
from penstock.client.producer.settings import ProducerSettings
from penstock.client.producer.settling import Settling
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import ApiKey


class Sender:
    def __init__(
        self, core: ClientCore, settings: ProducerSettings, accumulator: Accumulator, identity: Idempotence | None
    ) -> None:
        self.identity = identity
        self.metrics = ProducerMetrics(core.metrics, accumulator.memory, lambda: sum(self._in_flight.values()))
        self._transactions: Any = None
        self._core = core
        self._ports = core.ports
        self._settings = settings
        self._accumulator = accumulator
        self._settling = Settling(core, settings, accumulator, identity, self.metrics)
        self._linger_s = settings.linger_ms / 1000
        self._in_flight: dict[int, int] = {}
        self._on_wire: dict[ProducerBatch, None] = {}
        self._muted: set[PartitionQueue] = set()
        self._reaching = Reaching(core, settings, accumulator)
        self._identifying = None if identity is None else Identifying(core, accumulator, identity, self.fail_all)
        self._timer: Timer | None = None
        self._timer_at = NEVER
        self._expires_at = NEVER
        """The earliest deadline of a batch that the last round saw: nothing expires before it."""
        self._is_closing = False

    @property
    def transactions(self) -> Any:
        return self._transactions

    @transactions.setter
    def transactions(self, manager: Any) -> None:
        self._transactions = self._settling.transactions = manager

    # Rounds.

    def run_round(self) -> None:
        """Look at everything once. Cheap when there is nothing to do."""
        self._accumulator.woken = False
        if self._core.is_closed:
            return
        now = self._ports.clock.monotonic()
        if now >= self._expires_at:
            self._expire(now)
        if self.identity is not None:
            self.identity.maybe_bump()
        if self._transactions is not None:
            self._transactions.prepare()
        elif self._identifying is not None and not self._identifying.is_done():
            self._arm(now, NEVER, self._accumulator.next_deadline(default=NEVER))
            return
        is_more = True
        while is_more:
            ready, next_at, deadline = self._ready(now)
            sent = [self._send_to(node_id, queues, now) for node_id, queues in ready.items()]
            is_more = any(sent)
        self._arm(now, next_at, deadline)

    def _ready(self, now: float) -> tuple[dict[int, list[PartitionQueue]], float, float]:
        """Partitions that may be sent now, by leader; when to look again; when the first of what waits expires."""
        snapshot = self._core.metadata.snapshot
        ready: dict[int, list[PartitionQueue]] = {}
        next_at = deadline = NEVER
        rush = self._rush
        for queue in self._accumulator.queues():
            batches = queue.batches
            head = batches[0] if batches else None
            if head is None:
                continue
            deadline = min(deadline, head.deadline)
            leader = snapshot.leader(queue.tp)
            if leader is None:
                self._core.metadata.want((queue.tp.topic,))
                self._core.metadata.request_update(f"{queue.tp} has no known leader")
                continue
            at = self._time_of(head, queue, snapshot, rush)
            if at > now:
                next_at = min(next_at, at)
            elif self._may_send(head, queue):
                ready.setdefault(leader, []).append(queue)
        return ready, next_at, deadline

    @property
    def _rush(self) -> bool:
        accumulator = self._accumulator
        return bool(accumulator.flushing) or self._is_closing or accumulator.memory.waiting > 0

    def _time_of(self, head: ProducerBatch, queue: PartitionQueue, snapshot: ClusterSnapshot, rush: bool) -> float:
        """From when on the batch may be sent, as far as time decides it."""
        if head.attempts:
            info = snapshot.partition(queue.tp)
            moved = info is not None and info.leader_epoch > head.sent_epoch >= 0
            return 0.0 if moved else head.retry_at
        return 0.0 if rush or self._accumulator.is_full(queue) else head.created_at + self._linger_s

    def _may_send(self, head: ProducerBatch, queue: PartitionQueue) -> bool:
        if queue in self._muted:
            return False
        if self._transactions is not None and not self._transactions.may_drain(queue.tp):
            return False
        return self.identity is None or self.identity.may_send(head)

    def _arm(self, now: float, at: float, deadline: float) -> None:
        """Have a round at `at`, when a batch expires, and when a node may be tried again."""
        for batch in self._on_wire:
            deadline = min(deadline, batch.deadline)
        self._expires_at = deadline
        wanted = min(at, deadline, self._reaching.next_try(now))
        if wanted == NEVER or (self._timer is not None and now < self._timer_at <= wanted):
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer_at = max(wanted, now + 0.0005)
        self._timer = self._ports.tasks.call_later(self._timer_at - now, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self.run_round()

    # Sending.

    def _send_to(self, node_id: int, queues: Sequence[PartitionQueue], now: float) -> bool:
        """One request to one node, if there is room for one; whether there may be more to send."""
        if self._in_flight.get(node_id, 0) >= self._settings.max_in_flight:
            return False
        if not self._reaching.has_room(node_id, now):
            return False
        self._send(node_id, self._drain(queues, now))
        return any(queue.batches for queue in queues)

    def _drain(self, queues: Sequence[PartitionQueue], now: float) -> list[ProducerBatch]:
        batches: list[ProducerBatch] = []
        size = 0
        for queue in queues:
            head = queue.batches[0]
            # A single batch may be larger than the limit: a record that was let in must go out.
            if batches and size + max(head.size, self._settings.batch_size) > self._settings.max_request_size:
                break
            batch = self._accumulator.take(queue)
            size += batch.size
            if self.identity is not None:
                self.identity.number(batch)
            seal_batch(batch, self._settings, transactional=self._transactions is not None)
            info = self._core.metadata.snapshot.partition(batch.tp)
            batch.sent_epoch = info.leader_epoch if info is not None else -1
            batch.attempts += 1
            batch.on_wire = True
            self._on_wire[batch] = None
            if self._settings.keeps_order_by_muting:
                self._muted.add(queue)
            batches.append(batch)
            self._accumulator.rotate(queue)
            self.metrics.batch_sent(len(batch.sealed or b""), batch.size, batch.count, now - batch.created_at)
        return batches

    def _send(self, node_id: int, batches: list[ProducerBatch]) -> None:
        settings = self._settings
        topics = self._by_topic(batches)
        has_ids = all(topic.topic_id.int for topic in topics)
        transactional_id = settings.transactional_id
        newest = VERSION_MAX if has_ids else IDS_FROM - 1
        if self._transactions is not None:
            newest = min(newest, self._transactions.produce_version_max)
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        self.metrics.requests_sent.value += 1
        self._core.metadata.want([topic.name for topic in topics])
        future = self._core.send(
            node_id,
            ApiKey.PRODUCE,
            lambda version: encode_produce(
                version, transactional_id, settings.acks, settings.request_timeout_ms, topics
            ),
            timeout_ms=settings.request_timeout_ms,
            at_least=LOWEST_VERSION,
            at_most=newest,
            expects_answer=settings.acks != 0,
        )
        future.add_done_callback(lambda done: self._answered(node_id, batches, topics, done))

    def _by_topic(self, batches: Sequence[ProducerBatch]) -> list[TopicBatches]:
        known = self._core.metadata.snapshot.topics
        grouped: dict[str, list[ProducerBatch]] = {}
        for batch in batches:
            grouped.setdefault(batch.tp.topic, []).append(batch)
        return [TopicBatches(name, known[name].topic_id, found) for name, found in grouped.items()]

    # Answers.

    def _answered(
        self,
        node_id: int,
        batches: list[ProducerBatch],
        topics: list[TopicBatches],
        future: asyncio.Future[Any],
    ) -> None:
        self._in_flight[node_id] -= 1
        for batch in batches:
            batch.on_wire = False
            self._on_wire.pop(batch, None)
            if self._muted:
                self._muted.discard(self._accumulator.queue_of(batch))
        error = ClientClosed("the producer was closed") if future.cancelled() else future.exception()
        now = self._ports.clock.monotonic()
        if error is None:
            self._settling.answered(batches, topics, future.result(), now)
        else:
            self._settling.not_answered(batches, error, now)
        # Whoever waits for these records wants to run now, not behind a round with nothing to do.
        if self._transactions is not None or self._accumulator.has_batches:
            self.run_round()

    def _expire(self, now: float) -> None:
        """Batches that nobody may wait for any longer, in queues and on the wire."""
        on_wire = [batch for batch in self._on_wire if batch.deadline <= now and batch.outcome is None]
        for batch in [*self._accumulator.expired(now), *on_wire]:
            self._settling.expire(batch, now)
        for batch in on_wire:
            self._on_wire.pop(batch, None)

    def fail_all(self, error: KafkaError) -> None:
        """Every batch that is not finished ends with this error."""
        self.abort_unsent(error)
        for batch in self._accumulator.incomplete:
            self._settling.fail(batch, Outcome(error=error), certain=False)

    # What transactions, flush and close ask for.

    def abort_unsent(self, error: KafkaError) -> None:
        """Fail every batch that is not in flight now."""
        for batch in self._accumulator.remove(lambda _: True):
            self._settling.fail(batch, Outcome(error=error), certain=False)

    def wake_sender(self) -> None:
        self._accumulator.wake()

    async def flush(self) -> None:
        """Until every batch appended so far is finished, well or not."""
        accumulator = self._accumulator
        accumulator.flushing += 1
        try:
            accumulator.wake()
            for batch in accumulator.incomplete:
                await _finished(batch)
        finally:
            accumulator.flushing -= 1

    def close(self) -> None:
        """No more rounds."""
        self._is_closing = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


async def _finished(batch: ProducerBatch) -> None:
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()
    done: Callable[[], None] = lambda: None if future.done() else future.set_result(None)  # noqa: E731 - one line
    if add_waiter(batch, done):
        await future
