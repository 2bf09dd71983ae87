"""Hanging transactions: open in a partition, and forgotten by (or unknown to) their coordinator.

They hold back the last stable offset for ever. A transaction that is older than any may be (by
`transaction.max.timeout.ms`) is one of these if no transactional id has its producer id, or if that id's transaction
does not have the partition in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.errors import AdminErrors, InvalidInput, failure
from penstock.client.admin.producers import ProducerState, describe_producers
from penstock.client.admin.transactions import TransactionDescription, describe_transactions, list_transactions

DEFAULT_MAX_TIMEOUT_MS: Final = 15 * 60 * 1000
"""The default of `transaction.max.timeout.ms`."""
_BATCH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class HangingTransaction:
    """An open transaction that nobody will end; `AbortTransaction` with these values does."""

    partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None
    start_offset: int
    last_timestamp: int
    duration_ms: int
    """How long ago its producer last wrote to the partition."""


async def find_hanging_transactions(
    asker: Asker,
    *,
    broker: int | None = None,
    topic: str | None = None,
    partition: int | None = None,
    max_transaction_timeout_ms: int = DEFAULT_MAX_TIMEOUT_MS,
    timeout_ms: float | None = None,
) -> tuple[HangingTransaction, ...]:
    """Transactions that nobody will end, of the partitions of a broker, of a topic, or of one partition."""
    if broker is None and topic is None:
        raise InvalidInput("hanging transactions are looked for on a broker, or in a topic: name one of them")
    if partition is not None and topic is None:
        raise InvalidInput(f"partition {partition} of which topic? Name it too")
    checks.number(max_transaction_timeout_ms, "max_transaction_timeout_ms")
    searched = await _partitions(asker, broker, topic, partition, timeout_ms)
    now_ms = asker.now_ms()
    candidates: list[HangingTransaction] = []
    for start in range(0, len(searched), _BATCH):
        known = await describe_producers(asker, searched[start : start + _BATCH], broker=broker, timeout_ms=timeout_ms)
        candidates += open_too_long(known, now_ms, max_transaction_timeout_ms)
    if not candidates:
        return ()
    return tuple(hanging(candidates, await _coordinated(asker, candidates, timeout_ms)))


async def _partitions(
    asker: Asker, broker: int | None, topic: str | None, partition: int | None, timeout_ms: float | None
) -> list[TopicPartition]:
    if topic is not None and partition is not None:
        return [checks.partition((topic, partition))]
    answer = await asker.metadata(None if topic is None else [checks.name(topic, "topics")], timeout_ms=timeout_ms)
    for each in answer.topics:
        if each.error_code and each.name == topic:
            raise failure(f"topic {topic} cannot be looked at", each.error_code)
    return [
        TopicPartition(str(found.name), each.partition_index)
        for found in answer.topics
        for each in found.partitions
        if broker is None or broker in each.replica_nodes
    ]


async def _coordinated(
    asker: Asker, candidates: Iterable[HangingTransaction], timeout_ms: float | None
) -> dict[int, TransactionDescription]:
    """What coordinators know of the producers, by producer id."""
    producer_ids = {each.producer_id for each in candidates}
    listed = await list_transactions(asker, producer_ids=producer_ids, timeout_ms=timeout_ms)
    names = [each.transactional_id for each in listed.values() if each.producer_id in producer_ids]
    if not names:
        return {}
    try:
        described = await describe_transactions(asker, names, timeout_ms=timeout_ms)
    except AdminErrors as errors:
        # One that has expired since it was listed is as good as unknown.
        if any(each.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND for each in errors.failures.values()):
            raise
        described = errors.successes
    except KafkaError as error:
        if error.code is not ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise
        return {}
    return {each.producer_id: each for each in described.values()}


def open_too_long(
    producers: Mapping[TopicPartition, Iterable[ProducerState]], now_ms: int, max_timeout_ms: int
) -> list[HangingTransaction]:
    """Open transactions whose producers last wrote longer ago than a transaction may take."""
    return [
        HangingTransaction(
            partition=tp,
            producer_id=each.producer_id,
            producer_epoch=each.producer_epoch,
            coordinator_epoch=each.coordinator_epoch,
            start_offset=each.transaction_start_offset,
            last_timestamp=each.last_timestamp,
            duration_ms=now_ms - each.last_timestamp,
        )
        for tp, known in producers.items()
        for each in known
        if each.transaction_start_offset is not None and now_ms - each.last_timestamp > max_timeout_ms
    ]


def hanging(
    candidates: Iterable[HangingTransaction], coordinated: Mapping[int, TransactionDescription]
) -> list[HangingTransaction]:
    """Those that no coordinator will end."""
    return [
        each
        for each in candidates
        if each.producer_id not in coordinated or each.partition not in coordinated[each.producer_id].partitions
    ]
