"""AddPartitionsToTxn and AddOffsetsToTxn: which partitions a transaction writes to, said before the first record.

`verify_partitions` is the question of a partition's leader whether that was done.
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.transaction.answers import Answer, Verified
from penstock.coordinator.transaction.metadata import Producer, TransactionMetadata
from penstock.coordinator.transaction.shard import TransactionShard


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionsOfTransaction:
    transactional_id: str
    producer: Producer
    partitions: frozenset[TopicPartition]
    client_version: int = 0


def add_partitions(shard: TransactionShard, request: PartitionsOfTransaction) -> Result[Answer]:
    metadata = shard.transactions.get(request.transactional_id)
    code = _refusal(metadata, request.producer)
    if metadata is None or code is not ErrorCode.NONE:
        return Result([], Answer(code))
    if request.partitions <= metadata.partitions:
        # All are in the open transaction already, or none was named: nothing begins by that.
        return Result([], Answer(ErrorCode.NONE))
    grown = metadata.with_partitions(request.partitions, shard.now_ms, request.client_version)
    return Result([shard.record(grown)], Answer(ErrorCode.NONE))


def verify_partitions(shard: TransactionShard, request: PartitionsOfTransaction) -> Verified:
    """On the committed state: a partition that is only about to be added may yet turn out not to be."""
    metadata = shard.transactions.get_committed(request.transactional_id)
    code = _refusal(metadata, request.producer)
    if metadata is None or code is not ErrorCode.NONE:
        return dict.fromkeys(request.partitions, code)
    return {
        each: ErrorCode.NONE if each in metadata.partitions else ErrorCode.TRANSACTION_ABORTABLE
        for each in request.partitions
    }


def _refusal(metadata: TransactionMetadata | None, producer: Producer) -> ErrorCode:
    if metadata is None:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    # First of all: the producer may come with an id that is its own only when the end of the last transaction is done.
    if metadata.state.is_prepared:
        return ErrorCode.CONCURRENT_TRANSACTIONS
    if metadata.producer_id != producer.id:
        return ErrorCode.INVALID_PRODUCER_ID_MAPPING
    if metadata.producer_epoch != producer.epoch:
        return ErrorCode.PRODUCER_FENCED
    return ErrorCode.NONE
