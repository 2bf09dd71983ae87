"""The I/O side: takes ready batches, groups them by the node that leads their partitions, sends, and settles answers.

There is no task that loops. A *round* is one plain function: it fails what is too old, sees which partitions are ready,
sends as many requests as there is room for, and sets a timer for the next moment at which time alone changes something.
It runs when a caller wakes it, when an answer comes, when metadata change, and when that timer fires.

A partition is ready when its first batch is full, has lingered, is being repeated, or nobody may wait any longer
(flush, close, memory exhausted, a transaction being ended), and when its leader is known, the pause after a failure is
over (or there is a newer leader, KIP-951), and sequences, transaction and order allow it. A request holds at most one
batch per partition, as Kafka demands; partitions take turns.

Everything here belongs to the loop. A batch taken from the accumulator is in `_on_wire` until its answer is settled:
then it is finished, or goes back in front of its queue, or is split. An answer to a batch that expired meanwhile only
teaches the sequences whether it was written.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Timer
from penstock.client.core.client import ClientCore
from penstock.client.core.types import ClusterSnapshot, Node
from penstock.client.errors import ClientClosed, ClientError, KafkaTimeout, code_of, error_for, is_retriable
from penstock.client.producer.accumulator import Accumulator, PartitionQueue
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import Outcome, add_waiter
from penstock.client.producer.idempotence import Idempotence
from penstock.client.producer.metrics import ProducerMetrics
from penstock.client.producer.outcomes import STALE_METADATA, Action, decide, failure, timed_out_text
from penstock.client.producer.requests import (
    IDS_FROM,
    LOWEST_VERSION,
    TopicBatches,
    answers_by_partition,
    encode_produce,
)
from penstock.client.producer.sealing import seal_batch, split_batch
from penstock.client.producer.settings import ProducerSettings
from penstock.network.backoff import backoff_ms
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

log = logging.getLogger(__name__)

_INT_MAX = 2**31 - 1


class Sender:
    def __init__(
        self,
        core: ClientCore,
        settings: ProducerSettings,
        accumulator: Accumulator,
        identity: Idempotence | None,
        transactions: Any = None,
    ) -> None:
        self.identity = identity
        self.transactions = transactions
        self.fatal: ClientError | None = None
        """Why nothing can be sent any more."""
        self._core = core
        self._ports = core.ports
        self._settings = settings
        self._accumulator = accumulator
        self._metrics = ProducerMetrics(core.metrics, accumulator.memory, lambda: sum(self._in_flight.values()))
        self._linger_s = settings.linger_ms / 1000
        self._in_flight: dict[int, int] = {}
        self._on_wire: dict[ProducerBatch, None] = {}
        self._muted: set[PartitionQueue] = set()
        self._connecting: dict[int, float] = {}
        """Nodes that are being connected (infinity), or may be tried again at that time."""
        self._timer: Timer | None = None
        self._timer_at = float("inf")
        self._identifying: asyncio.Task[None] | None = None
        self._failures = 0
        self._is_closing = False

    @property
    def metrics(self) -> ProducerMetrics:
        return self._metrics

    # Rounds.

    def run_round(self) -> None:
        """Look at everything once. Cheap when there is nothing to do."""
        self._accumulator.woken = False
        if self._core.is_closed:
            return
        now = self._ports.clock.monotonic()
        self._expire(now)
        if self.transactions is not None:
            self.transactions.prepare()
        elif not self._has_identity():
            self._arm(now, self._accumulator.next_deadline())
            return
        while True:
            ready, next_at = self._ready(now)
            sent = [self._send_to(node_id, queues, now) for node_id, queues in ready.items()]
            if not any(sent):
                break
        self._arm(now, next_at)

    def _ready(self, now: float) -> tuple[dict[int, list[PartitionQueue]], float | None]:
        """Partitions that may be sent now, by leader, and when to look again."""
        snapshot = self._core.metadata.snapshot
        ready: dict[int, list[PartitionQueue]] = {}
        times: list[float] = []
        rush = self._rush
        for queue in self._accumulator.queues():
            batches = queue.batches
            head = batches[0] if batches else None
            if head is None:
                continue
            times.append(head.deadline)
            leader = snapshot.leader(queue.tp)
            if leader is None:
                self._core.metadata.want((queue.tp.topic,))
                self._core.metadata.request_update(f"{queue.tp} has no known leader")
                continue
            at = self._time_of(head, queue, snapshot, rush)
            if at > now:
                times.append(at)
            elif self._may_send(head, queue):
                ready.setdefault(leader, []).append(queue)
        return ready, min(times, default=None)

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
        if self.transactions is not None and not self.transactions.may_drain(queue.tp):
            return False
        return self.identity is None or self.identity.may_send(head)

    def _arm(self, now: float, at: float | None) -> None:
        wanted = min(
            [at if at is not None else float("inf"), *(each for each in self._connecting.values() if each > now)]
        )
        wanted = min([wanted, *(batch.deadline for batch in self._on_wire)])
        if wanted == float("inf"):
            return
        if self._timer is not None and now < self._timer_at <= wanted:
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
        """One request to one node; False when there is no room for one."""
        if self._in_flight.get(node_id, 0) >= self._settings.max_in_flight or not self._is_connected(node_id, now):
            return False
        batches = self._drain(queues, now)
        if batches:
            self._send(node_id, batches, now)
        return bool(batches)

    def _is_connected(self, node_id: int, now: float) -> bool:
        channel = self._core.channel(node_id)
        if channel.has_room:
            return True
        if channel.versions is None and self._connecting.get(node_id, 0.0) <= now:
            self._connecting[node_id] = float("inf")
            channel.ready(timeout_ms=self._settings.request_timeout_ms).add_done_callback(
                lambda future: self._connected(node_id, future)
            )
        elif channel.versions is not None and channel.on_room is None:
            channel.on_room = self._accumulator.wake
        return False

    def _connected(self, node_id: int, future: asyncio.Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is None:
            del self._connecting[node_id]
        else:
            delay_ms = backoff_ms(
                self._settings.retry_backoff_ms, self._settings.retry_backoff_max_ms, 1, self._ports.rng
            )
            self._connecting[node_id] = self._ports.clock.monotonic() + delay_ms / 1000
            if not self._core.is_closed:
                self._core.metadata.request_update(f"node {node_id} cannot be reached")
            for queue in self._accumulator.queues():
                if queue.batches and self._core.metadata.snapshot.leader(queue.tp) == node_id:
                    queue.batches[0].last_error = error if isinstance(error, KafkaError) else None
        self._accumulator.wake()

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
            seal_batch(batch, self._settings, transactional=self.transactions is not None)
            info = self._core.metadata.snapshot.partition(batch.tp)
            batch.sent_epoch = info.leader_epoch if info is not None else -1
            batch.attempts += 1
            batch.on_wire = True
            self._on_wire[batch] = None
            if self._settings.keeps_order_by_muting:
                self._muted.add(queue)
            batches.append(batch)
            self._accumulator.rotate(queue)
            self._metrics.batch_sent(len(batch.sealed or b""), batch.size, batch.count, now - batch.created_at)
        return batches

    def _send(self, node_id: int, batches: list[ProducerBatch], now: float) -> None:
        settings = self._settings
        topics = self._by_topic(batches)
        has_ids = all(topic.topic_id.int for topic in topics)
        transactional_id = settings.transactional_id
        newest = VERSION_MAX if has_ids else IDS_FROM - 1
        if self.transactions is not None:
            newest = min(newest, self.transactions.produce_version_max)
        self._in_flight[node_id] = self._in_flight.get(node_id, 0) + 1
        self._metrics.requests_sent.value += 1
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
            self._settle_all(batches, topics, future.result(), now)
        else:
            self._request_failed(batches, error, now)
        self.run_round()

    def _settle_all(
        self, batches: list[ProducerBatch], topics: list[TopicBatches], response: ProduceResponse | None, now: float
    ) -> None:
        if response is None:
            for batch in batches:
                self._complete(batch, -1, -1)
            return
        answers = answers_by_partition(response, {topic.topic_id: topic.name for topic in topics})
        if response.node_endpoints or any(answer.error_code for answer in answers.values()):
            self._take_hints(answers, response)
        for batch in batches:
            answer = answers.get(batch.tp)
            if answer is None:
                answer = PartitionProduceResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR, error_message="no answer")
            self._settle(batch, answer, now)

    def _take_hints(self, answers: dict[Any, PartitionProduceResponse], response: ProduceResponse) -> None:
        """A broker that is not the leader may say who is (KIP-951)."""
        nodes = [Node(each.node_id, each.host, each.port, each.rack) for each in response.node_endpoints]
        for tp, answer in answers.items():
            leader = answer.current_leader
            if answer.error_code and leader.leader_id >= 0 and leader.leader_epoch >= 0:
                self._core.metadata.leader_changed(tp, leader.leader_id, leader.leader_epoch, nodes)

    def _settle(self, batch: ProducerBatch, answer: PartitionProduceResponse, now: float) -> None:
        code = code_of(answer.error_code)
        if batch.outcome is not None:
            if code is ErrorCode.NONE and self.identity is not None:
                self.identity.completed(batch, answer.base_offset)
            return
        action = decide(
            batch,
            code,
            identity=self.identity,
            log_start_offset=answer.log_start_offset,
            may_retry=self._may_retry(batch, now),
        )
        if action is Action.COMPLETE:
            offset = answer.base_offset if code is ErrorCode.NONE else -1
            self._complete(batch, offset, answer.log_append_time_ms)
        elif action is Action.SPLIT:
            self._split(batch)
        elif action is Action.RETRY:
            self._retry(batch, error_for(code, answer.error_message), now)
        elif code.retriable and self._is_aborting:
            self._fail(batch, Outcome(error=self.transactions.abort_error()), certain=False)
        else:
            self._fail(batch, failure(batch, answer, code), certain=batch.attempts <= self._settings.retries)
        if code in STALE_METADATA:
            self._core.metadata.request_update(f"{batch.tp}: {code.name}")

    def _request_failed(self, batches: list[ProducerBatch], error: BaseException, now: float) -> None:
        """No answer: whether the batches were written is not known."""
        if not self._core.is_closed:
            self._core.metadata.request_update(f"a Produce request failed: {error}")
        known = error if isinstance(error, KafkaError) else ClientError(f"{type(error).__name__}: {error}")
        for batch in batches:
            if batch.outcome is not None:
                continue
            if is_retriable(error) and self._may_retry(batch, now):
                self._retry(batch, known, now)
            else:
                self._fail(batch, Outcome(error=self._final(batch, known, now)), certain=False)

    @property
    def _is_aborting(self) -> bool:
        """What must be sent again of a transaction that is given up anyway is dropped."""
        return self.transactions is not None and bool(self.transactions.is_aborting)

    def _may_retry(self, batch: ProducerBatch, now: float) -> bool:
        if self._is_aborting:
            return False
        return batch.attempts <= self._settings.retries and batch.deadline > now and not self._core.is_closed

    def _final(self, batch: ProducerBatch, error: KafkaError, now: float) -> KafkaError:
        if self._is_aborting:
            aborted: KafkaError = self.transactions.abort_error()
            return aborted
        if batch.deadline <= now:
            return KafkaTimeout(timed_out_text(batch, now - batch.created_at, error))
        return error

    def _complete(self, batch: ProducerBatch, base_offset: int, log_append_time: int) -> None:
        if self.identity is not None:
            self.identity.completed(batch, base_offset)
        self._accumulator.finish(batch, Outcome(base_offset, log_append_time))

    def _retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        log.debug("%s will be sent again: %s", batch, error)
        self._metrics.records_retried.value += batch.count
        batch.last_error = error
        settings = self._settings
        delay_ms = backoff_ms(settings.retry_backoff_ms, settings.retry_backoff_max_ms, batch.attempts, self._ports.rng)
        batch.retry_at = now + delay_ms / 1000
        self._accumulator.give_back([batch])

    def _split(self, batch: ProducerBatch) -> None:
        pieces = split_batch(batch, max(batch.size // 2, 1))
        self._metrics.batches_split.value += 1
        if self.identity is not None:
            self.identity.replace(batch, pieces)
        self._accumulator.split(batch, pieces)

    def _fail(self, batch: ProducerBatch, outcome: Outcome, *, certain: bool) -> None:
        if self.identity is not None:
            sequenced = batch.has_sequence
            self.identity.failed(batch, certain=certain)
            if self.transactions is not None and outcome.error is not None:
                self.transactions.batch_failed(batch.tp, outcome.error, sequenced=sequenced)
        self._metrics.records_failed.value += batch.count
        self._accumulator.finish(batch, outcome)

    def _expire(self, now: float) -> None:
        """Batches that nobody may wait for any longer, in queues and on the wire."""
        late = self._accumulator.expired(now)
        on_wire = [batch for batch in self._on_wire if batch.deadline <= now and batch.outcome is None]
        for batch in late + on_wire:
            text = timed_out_text(batch, now - batch.created_at, batch.last_error)
            self._fail(batch, Outcome(error=KafkaTimeout(text)), certain=False)
        for batch in on_wire:
            self._on_wire.pop(batch, None)
        if self.identity is not None:
            self.identity.maybe_bump()

    # Identity.

    def _has_identity(self) -> bool:
        """Whether batches can be numbered; asks for a producer id if not."""
        if self.identity is None or self.identity.has_identity:
            return True
        if self._identifying is None and self._accumulator.incomplete:
            self._identifying = self._ports.tasks.spawn(self._identify(), name="InitProducerId")
        return False

    async def _identify(self) -> None:
        request = InitProducerIdRequest(transaction_timeout_ms=_INT_MAX)
        try:
            answer: InitProducerIdResponse = await self._core.ask_any(
                ApiKey.INIT_PRODUCER_ID, request, check=lambda response: int(response.error_code)
            )
            assert self.identity is not None
            self.identity.assign(answer.producer_id, answer.producer_epoch)
        except KafkaError as error:
            if self._core.is_closed:
                return
            log.warning("no producer id: %s", error)
            if not is_retriable(error) and not isinstance(error, TimeoutError):
                self.fail_all(error)
        finally:
            self._identifying = None
            self._accumulator.wake()

    def fail_all(self, error: KafkaError) -> None:
        """Every batch that is not finished ends with this error."""
        self.abort_unsent(error)
        for batch in self._accumulator.incomplete:
            self._fail(batch, Outcome(error=error), certain=False)

    # What transactions, flush and close ask for.

    def abort_unsent(self, error: KafkaError) -> None:
        """Fail every batch that is not in flight now."""
        for batch in self._accumulator.remove(lambda _: True):
            self._fail(batch, Outcome(error=error), certain=False)

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
