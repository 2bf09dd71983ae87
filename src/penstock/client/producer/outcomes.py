"""What the answer for one batch means: written, to be sent again, to be split, or failed. Kafka's rules, no I/O."""

from __future__ import annotations

from enum import Enum
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.errors import ClientError, RecordTooLarge, error_for
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import Outcome
from penstock.client.producer.idempotence import Idempotence, Retry
from penstock.protocol.messages.produce import PartitionProduceResponse


class Action(Enum):
    COMPLETE = "written"
    RETRY = "send it again"
    SPLIT = "send it again in smaller pieces"
    FAIL = "tell the user"


STALE_METADATA: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
"""Errors behind which the cluster may look different from what is known."""


def decide(
    batch: ProducerBatch,
    code: ErrorCode,
    *,
    identity: Idempotence | None,
    log_start_offset: int = -1,
    may_retry: bool = True,
) -> Action:
    """`may_retry`: there are time, attempts and a transaction left for another try."""
    if code in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
        # A duplicate was written before; its offset is not remembered any more.
        return Action.COMPLETE
    if code is ErrorCode.MESSAGE_TOO_LARGE and batch.count > 1:
        return Action.SPLIT
    if identity is not None and batch.has_sequence:
        retry = identity.judge(batch, code, log_start_offset) is Retry.YES
    else:
        retry = code.retriable
    return Action.RETRY if retry and may_retry else Action.FAIL


def failure(batch: ProducerBatch, answer: PartitionProduceResponse, code: ErrorCode) -> Outcome:
    """The errors that the user gets to see; a broker may tell the records at fault apart (KIP-467)."""
    detail = answer.error_message or ""
    error = describe(batch, code, detail)
    if not answer.record_errors:
        return Outcome(error=error)
    singled = {
        each.batch_index: error_for(code, f"{batch.tp}: {each.batch_index_error_message or detail or code.name}")
        for each in answer.record_errors
    }
    innocent = error_for(code, f"{batch.tp}: not written because other records of the same batch are invalid: {detail}")
    return Outcome(error=innocent, record_errors=dict(singled))


def describe(batch: ProducerBatch, code: ErrorCode, detail: str = "") -> ClientError:
    """A sentence about one batch and one code."""
    if code is ErrorCode.MESSAGE_TOO_LARGE:
        return RecordTooLarge(
            f"a record of {batch.size} bytes for {batch.tp} is larger than the topic takes:"
            " raise max.message.bytes of the topic, or make the record smaller"
        )
    plain = error_for(code)
    return error_for(code, f"{batch.count} record(s) for {batch.tp} were refused: {detail or plain.message}")


def timed_out_text(batch: ProducerBatch, waited_s: float, last: KafkaError | None) -> str:
    what = f"{batch.count} record(s) for {batch.tp} could not be delivered within {waited_s * 1000:.0f} ms"
    why = f" ({batch.attempts} attempts; the last one: {last})" if last is not None else " (no leader could be asked)"
    return what + why + ": look at the broker, or raise delivery.timeout.ms"
