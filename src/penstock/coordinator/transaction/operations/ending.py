"""EndTxn and what else ends a transaction: time, a new owner, and the last marker.

What a client of the second protocol (KIP-890) is told, when no transaction is open:

| state          | abort, repeated | abort, anew | commit, repeated | commit, anew |
|----------------|-----------------|-------------|------------------|--------------|
| Empty          | fenced          | epoch + 1   | fenced           | invalid      |
| CompleteAbort  | none            | epoch + 1   | invalid          | invalid      |
| CompleteCommit | invalid         | epoch + 1   | none             | invalid      |

*Repeated* means that its epoch is the one before ours (or the last one of the id before ours): the answer was lost.
A client of the first protocol has the same epoch before and after, so the same end again is always the same request.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.errors import ErrorCode
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.transaction.answers import Answer
from penstock.coordinator.transaction.metadata import (
    EPOCH_BUMP_VERSION,
    EPOCH_MAX,
    NO_PRODUCER_ID,
    Producer,
    TransactionMetadata,
)
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.coordinator.transaction.states import TransactionState

_COMPLETE = {True: TransactionState.COMPLETE_COMMIT, False: TransactionState.COMPLETE_ABORT}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTransaction:
    transactional_id: str
    producer: Producer
    commit: bool
    client_version: int


def end_transaction(shard: TransactionShard, request: EndTransaction) -> Result[Answer]:
    metadata = shard.transactions.get(request.transactional_id)
    if metadata is None:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if request.client_version >= EPOCH_BUMP_VERSION:
        return _end_and_bump(shard, request, metadata)
    return _end(shard, request, metadata)


def _end(shard: TransactionShard, request: EndTransaction, metadata: TransactionMetadata) -> Result[Answer]:
    """The first protocol: the epoch stays."""
    if metadata.producer_id != request.producer.id:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    if metadata.producer_epoch != request.producer.epoch:
        return _refused(ErrorCode.PRODUCER_FENCED)
    if metadata.state.is_prepared:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    if metadata.state is TransactionState.ONGOING:
        return _prepare(shard, request, metadata)
    if metadata.state is _COMPLETE[request.commit]:
        return Result([], Answer(ErrorCode.NONE, metadata.producer))
    return _refused(ErrorCode.INVALID_TXN_STATE)


def _end_and_bump(shard: TransactionShard, request: EndTransaction, metadata: TransactionMetadata) -> Result[Answer]:
    """The second protocol: the answer carries the raised epoch."""
    # First of all: while the last end is under way the producer may come with the id that it brings.
    if metadata.state.is_prepared:
        return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
    overflowed = (
        metadata.previous_producer_id == request.producer.id
        and request.producer.epoch == EPOCH_MAX - 1
        and metadata.producer_epoch == 0
    )
    if metadata.producer_id != request.producer.id and not overflowed:
        return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    is_current = metadata.producer == request.producer
    is_complete = metadata.state in (TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)
    is_repeated = is_complete and (overflowed or metadata.producer_epoch == request.producer.epoch + 1)
    if not is_current and not is_repeated:
        return _refused(ErrorCode.PRODUCER_FENCED)
    if is_repeated:
        if metadata.state is _COMPLETE[request.commit]:
            return Result([], Answer(ErrorCode.NONE, metadata.producer))
        return _refused(ErrorCode.INVALID_TXN_STATE)
    if request.commit and metadata.state is not TransactionState.ONGOING:
        return _refused(ErrorCode.INVALID_TXN_STATE)
    return _prepare(shard, request, metadata)


def _prepare(shard: TransactionShard, request: EndTransaction, metadata: TransactionMetadata) -> Result[Answer]:
    rotates = request.client_version >= EPOCH_BUMP_VERSION and metadata.is_exhausted
    prepared = metadata.prepared(
        commit=request.commit,
        client_version=request.client_version,
        next_producer_id=shard.producer_ids.take() if rotates else NO_PRODUCER_ID,
        now_ms=shard.now_ms,
    )
    return Result([shard.record(prepared)], Answer(ErrorCode.NONE, prepared.producer_after_completion))


def _refused(code: ErrorCode) -> Result[Answer]:
    return Result([], Answer(code))


def fence(shard: TransactionShard, metadata: TransactionMetadata) -> TransactionMetadata:
    """Abort an open transaction on the coordinator's own account."""
    version = shard.settings().transaction_version
    rotates = version >= EPOCH_BUMP_VERSION and metadata.is_exhausted
    return metadata.fenced(
        version=version if version >= EPOCH_BUMP_VERSION else 0,
        next_producer_id=shard.producer_ids.take() if rotates else NO_PRODUCER_ID,
        now_ms=shard.now_ms,
    )


def complete_transaction(shard: TransactionShard, transactional_id: str, producer: Producer) -> Result[bool]:
    """Every partition has its marker. False: somebody has been here already."""
    metadata = shard.transactions.get(transactional_id)
    if metadata is None or not metadata.state.is_prepared or metadata.producer != producer:
        return Result([], False)
    return Result([shard.record(metadata.completed(shard.now_ms))], True)
