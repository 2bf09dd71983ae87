"""DescribeTransactions and ListTransactions: queries on the committed state."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.base.errors import ErrorCode
from penstock.coordinator.transaction.answers import DescribedTransaction, ListedTransaction
from penstock.coordinator.transaction.metadata import TransactionMetadata, by_topic
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.coordinator.transaction.states import TransactionState


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFilter:
    """Empty sets, a negative duration and no pattern let everything pass."""

    states: frozenset[TransactionState] = frozenset()
    any_state: bool = True
    """False: only `states`, also when they are none (the caller named none that exists)."""
    producer_ids: frozenset[int] = frozenset()
    duration_ms: int = -1
    id_matches: Callable[[str], bool] | None = None


def describe_transaction(shard: TransactionShard, transactional_id: str) -> DescribedTransaction:
    metadata = shard.transactions.get_committed(transactional_id)
    if metadata is None:
        return DescribedTransaction(transactional_id, ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)
    return DescribedTransaction(
        transactional_id,
        ErrorCode.NONE,
        metadata.state.label,
        metadata.timeout_ms,
        metadata.start_ms,
        metadata.producer,
        by_topic(metadata.partitions),
    )


def list_transactions(shard: TransactionShard, wanted: TransactionFilter) -> list[ListedTransaction]:
    now_ms = shard.now_ms
    return [
        ListedTransaction(each.transactional_id, each.producer_id, each.state.label)
        for each in shard.transactions.values_committed()
        if _passes(each, wanted, now_ms)
    ]


def _passes(metadata: TransactionMetadata, wanted: TransactionFilter, now_ms: int) -> bool:
    if wanted.producer_ids and metadata.producer_id not in wanted.producer_ids:
        return False
    if not wanted.any_state and metadata.state not in wanted.states:
        return False
    if wanted.duration_ms >= 0 and now_ms - metadata.start_ms <= wanted.duration_ms:
        return False
    return wanted.id_matches is None or wanted.id_matches(metadata.transactional_id)
