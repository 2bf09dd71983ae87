"""InitProducerId: a producer becomes the owner of a transactional id, or its owner asks for a higher epoch.

A transaction that is still open is aborted first, under a raised epoch that fences its producer, and the caller is
told to come back (CONCURRENT_TRANSACTIONS); its next attempt raises the epoch once more and succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.errors import ErrorCode
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.transaction.answers import Answer
from penstock.coordinator.transaction.metadata import Producer, TransactionMetadata, epoch_is_exhausted
from penstock.coordinator.transaction.operations.ending import fence
from penstock.coordinator.transaction.shard import RepeatableInit, TransactionShard
from penstock.coordinator.transaction.states import TransactionState


@dataclass(frozen=True, slots=True, kw_only=True)
class InitProducerId:
    transactional_id: str
    timeout_ms: int
    expected: Producer | None = None
    """Who the caller is, when it only wants a higher epoch (KIP-360)."""


def init_producer_id(shard: TransactionShard, request: InitProducerId) -> Result[Answer]:
    metadata = shard.transactions.get(request.transactional_id)
    if metadata is None:
        return _create(shard, request)
    if metadata.state.is_prepared:
        return Result([], Answer(ErrorCode.CONCURRENT_TRANSACTIONS))
    if request.expected is not None and not _may_be(metadata, request.expected):
        return Result([], Answer(ErrorCode.PRODUCER_FENCED))
    if metadata.state is TransactionState.ONGOING:
        return Result([shard.record(fence(shard, metadata))], Answer(ErrorCode.CONCURRENT_TRANSACTIONS))
    return _bump(shard, request, metadata)


def _may_be(metadata: TransactionMetadata, expected: Producer) -> bool:
    """The id is right, or it was before a rotation whose answer the producer may have missed."""
    return expected.id == metadata.producer_id or (
        expected.id == metadata.previous_producer_id and epoch_is_exhausted(expected.epoch)
    )


def _create(shard: TransactionShard, request: InitProducerId) -> Result[Answer]:
    producer = Producer(shard.producer_ids.take(), 0)
    metadata = TransactionMetadata(
        transactional_id=request.transactional_id,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        timeout_ms=request.timeout_ms,
        last_update_ms=shard.now_ms,
    )
    return Result([shard.record(metadata)], Answer(ErrorCode.NONE, producer))


def _bump(shard: TransactionShard, request: InitProducerId, metadata: TransactionMetadata) -> Result[Answer]:
    expected, current = request.expected, metadata.producer
    if metadata.is_exhausted and (expected is None or expected.epoch == current.epoch):
        producer = Producer(shard.producer_ids.take(), 0)
    elif expected is None or (expected.epoch == current.epoch and not metadata.is_exhausted):
        producer = Producer(current.id, current.epoch + 1)
    elif _is_repeated(shard, metadata, expected):
        producer = current
    else:
        return Result([], Answer(ErrorCode.PRODUCER_FENCED))
    if expected is None:
        shard.repeatable.pop(request.transactional_id, None)
    else:
        shard.repeatable[request.transactional_id] = RepeatableInit(expected.epoch, producer)
    initialized = metadata.initialized(producer, request.timeout_ms, shard.now_ms)
    return Result([shard.record(initialized)], Answer(ErrorCode.NONE, producer))


def _is_repeated(shard: TransactionShard, metadata: TransactionMetadata, expected: Producer) -> bool:
    earlier = shard.repeatable.get(metadata.transactional_id)
    return (
        earlier is not None
        and metadata.state is TransactionState.EMPTY
        and earlier.given == metadata.producer
        and earlier.asked_epoch == expected.epoch
    )
