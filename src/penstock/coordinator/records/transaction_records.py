"""`__transaction_state`: one record per transactional id, with all that is known of its producer and transaction.

Version 1 (flexible, with the producer ids and epochs around a change) is written from `transaction.version` 1 on,
version 0 before that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.coordinator.records.errors import UnknownRecordTypeError
from penstock.coordinator.records.layouts import TransactionLayout, TransactionPartitionsLayout
from penstock.coordinator.records.values import decode_value, encode_value, read_string, read_type, string
from penstock.coordinator.runtime.shard import CoordinatorRecord

TRANSACTION_KEY_TYPE: Final = 0
_FLEXIBLE_FROM: Final = 1
_VERSION_MAX: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionLogValue:
    producer_id: int
    producer_epoch: int
    previous_producer_id: int = -1
    next_producer_id: int = -1
    next_producer_epoch: int = -1
    transaction_timeout_ms: int = 0
    transaction_status: int = 0
    """Kafka's number of the state (Empty is 0)."""
    transaction_partitions: tuple[tuple[str, tuple[int, ...]], ...] | None = None
    """(topic, partitions); None in the state Empty."""
    transaction_last_update_timestamp_ms: int = -1
    transaction_start_timestamp_ms: int = -1
    client_transaction_version: int = 0


def transaction_record(
    transactional_id: str, value: TransactionLogValue | None, *, version: int = _VERSION_MAX
) -> CoordinatorRecord:
    """The state of a transactional id; None is its deletion."""
    key = b"\x00\x00" + string(transactional_id)
    return CoordinatorRecord(key, None if value is None else _encode(value, version))


def decode_transaction_key(key: bytes) -> str:
    record_type = read_type(key)
    if record_type != TRANSACTION_KEY_TYPE:
        raise UnknownRecordTypeError(record_type)
    return read_string(key, 2)[0]


def _encode(value: TransactionLogValue, version: int) -> bytes:
    partitions = value.transaction_partitions
    layout = TransactionLayout(
        producer_id=value.producer_id,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        producer_epoch=value.producer_epoch,
        next_producer_epoch=value.next_producer_epoch,
        transaction_timeout_ms=value.transaction_timeout_ms,
        transaction_status=value.transaction_status,
        transaction_partitions=None
        if partitions is None
        else [TransactionPartitionsLayout(topic=topic, partition_ids=list(ids)) for topic, ids in partitions],
        transaction_last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms=value.transaction_start_timestamp_ms,
        client_transaction_version=value.client_transaction_version,
    )
    return encode_value(layout, version, _FLEXIBLE_FROM)


def decode_transaction_value(value: bytes) -> TransactionLogValue:
    layout = decode_value(TransactionLayout, value, _VERSION_MAX, _FLEXIBLE_FROM)
    partitions = layout.transaction_partitions
    return TransactionLogValue(
        producer_id=layout.producer_id,
        previous_producer_id=layout.previous_producer_id,
        next_producer_id=layout.next_producer_id,
        producer_epoch=layout.producer_epoch,
        next_producer_epoch=layout.next_producer_epoch,
        transaction_timeout_ms=layout.transaction_timeout_ms,
        transaction_status=layout.transaction_status,
        transaction_partitions=None
        if partitions is None
        else tuple((each.topic, tuple(each.partition_ids)) for each in partitions),
        transaction_last_update_timestamp_ms=layout.transaction_last_update_timestamp_ms,
        transaction_start_timestamp_ms=layout.transaction_start_timestamp_ms,
        client_transaction_version=layout.client_transaction_version,
    )
