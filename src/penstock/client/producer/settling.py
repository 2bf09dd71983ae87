"""What becomes of a batch: written, sent again, split, or failed.

`outcomes` says what an answer means; this does it: the sequences learn of it, the batch goes back to its queue or ends,
metadata that proved old are asked for anew. An answer to a batch that expired meanwhile only teaches the sequences
whether it was written. Everything here belongs to the loop.
"""

from __future__ import annotations

import logging
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.core.client import ClientCore
from penstock.client.core.types import Node
from penstock.client.errors import ClientError, KafkaTimeout, error_for, is_retriable
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import Outcome
from penstock.client.producer.idempotence import Idempotence
from penstock.client.producer.metrics import ProducerMetrics
from penstock.client.producer.outcomes import STALE_METADATA, Action, decide, failure, timed_out_text
from penstock.client.producer.requests import TopicBatches, answers_by_partition
from penstock.client.producer.sealing import split_batch
from penstock.client.producer.settings import ProducerSettings
from penstock.network.backoff import backoff_ms
from penstock.protocol.messages.produce import PartitionProduceResponse, ProduceResponse

log = logging.getLogger(__name__)


class Settling:
    def __init__(
        self,
        core: ClientCore,
        settings: ProducerSettings,
        accumulator: Accumulator,
        identity: Idempotence | None,
        metrics: ProducerMetrics,
    ) -> None:
        self.transactions: Any = None
        self._core = core
        self._settings = settings
        self._accumulator = accumulator
        self._identity = identity
        self._metrics = metrics

    def answered(
        self, batches: list[ProducerBatch], topics: list[TopicBatches], response: ProduceResponse | None, now: float
    ) -> None:
        """`response` is None when none is expected (`acks=0`)."""
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
        if batch.outcome is None and not answer.error_code:
            self._complete(batch, answer.base_offset, answer.log_append_time_ms)
            return
        code = ErrorCode.of(answer.error_code)
        if batch.outcome is not None:
            if code is ErrorCode.NONE and self._identity is not None:
                self._identity.completed(batch, answer.base_offset)
            return
        action = decide(
            batch,
            code,
            identity=self._identity,
            log_start_offset=answer.log_start_offset,
            may_retry=self._may_retry(batch, now),
        )
        if action is Action.COMPLETE:
            self._complete(batch, -1, answer.log_append_time_ms)
        elif action is Action.SPLIT:
            self._split(batch)
        elif action is Action.RETRY:
            self._retry(batch, error_for(code, answer.error_message), now)
        elif code.retriable and self._is_aborting:
            self.fail(batch, Outcome(error=self.transactions.abort_error()), certain=False)
        else:
            self.fail(batch, failure(batch, answer, code), certain=batch.attempts <= self._settings.retries)
        if code in STALE_METADATA:
            self._core.metadata.request_update(f"{batch.tp}: {code.name}")

    def not_answered(self, batches: list[ProducerBatch], error: BaseException, now: float) -> None:
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
                self.fail(batch, Outcome(error=self._final(batch, known, now)), certain=False)

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
        if self._identity is not None:
            self._identity.completed(batch, base_offset)
        self._accumulator.finish(batch, Outcome(base_offset, log_append_time))

    def _retry(self, batch: ProducerBatch, error: KafkaError, now: float) -> None:
        log.debug("%s will be sent again: %s", batch, error)
        self._metrics.records_retried.value += batch.count
        batch.last_error = error
        settings = self._settings
        delay_ms = backoff_ms(
            settings.retry_backoff_ms, settings.retry_backoff_max_ms, batch.attempts, self._core.ports.rng
        )
        batch.retry_at = now + delay_ms / 1000
        self._accumulator.give_back([batch])

    def _split(self, batch: ProducerBatch) -> None:
        pieces = split_batch(batch, max(batch.size // 2, 1))
        self._metrics.batches_split.value += 1
        if self._identity is not None:
            self._identity.replace(batch, pieces)
        self._accumulator.split(batch, pieces)

    def fail(self, batch: ProducerBatch, outcome: Outcome, *, certain: bool) -> None:
        if self._identity is not None:
            sequenced = batch.has_sequence
            self._identity.failed(batch, certain=certain)
            if self.transactions is not None and outcome.error is not None:
                self.transactions.batch_failed(batch.tp, outcome.error, sequenced=sequenced)
        self._metrics.records_failed.value += batch.count
        self._accumulator.finish(batch, outcome)

    def expire(self, batch: ProducerBatch, now: float) -> None:
        """Nobody may wait for it any longer."""
        text = timed_out_text(batch, now - batch.created_at, batch.last_error)
        self.fail(batch, Outcome(error=KafkaTimeout(text)), certain=False)
