"""Kafka's rules for a batch of a producer that is known already: is it a repeat, is it refused, and in which words.

The common case, the next batch in order, never comes here: `ProducerStateManager.check` answers it by itself.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.records.batch import TRANSACTIONAL_MASK, BatchHeader
from penstock.storage.producers.snapshot import NO_SEQUENCE, SEQUENCE_MODULUS, CachedBatch, ProducerStateEntry


class Place(NamedTuple):
    """Where a batch would go, for the text of a refusal."""

    topic_partition: TopicPartition
    offset: int


class BatchMetadata(NamedTuple):
    """A batch that was appended before: the answer to its duplicate."""

    first_offset: int
    last_offset: int
    timestamp: int
    first_sequence: int
    last_sequence: int


def find_duplicate(entry: ProducerStateEntry, header: BatchHeader) -> BatchMetadata | None:
    """The remembered batch with exactly this sequence range, if there is one."""
    if header.producer_epoch != entry.producer_epoch:
        return None
    first_sequence, last_sequence = header.base_sequence, header.last_sequence
    for batch in entry.batches:
        if batch[0] == last_sequence and _first_sequence(batch) == first_sequence:
            return BatchMetadata(batch[1] - batch[2], batch[1], batch[3], first_sequence, last_sequence)
    return None


def _first_sequence(batch: CachedBatch) -> int:
    return (batch[0] - batch[2]) % SEQUENCE_MODULUS if batch[0] >= 0 else NO_SEQUENCE


def check_epoch(place: Place, entry: ProducerStateEntry, header: BatchHeader) -> None:
    if header.producer_epoch < entry.producer_epoch:
        raise stale_epoch(place, entry, header)


def check_sequence(place: Place, entry: ProducerStateEntry, header: BatchHeader) -> None:
    """A new epoch starts at 0, the same one goes on. Older than what is remembered is out of order as well."""
    if header.producer_epoch != entry.producer_epoch:
        if header.base_sequence != 0:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {header.producer_id} at offset {place.offset} in"
                f" partition {place.topic_partition}: {header.producer_epoch} (request epoch),"
                f" {header.base_sequence} (seq. number), {entry.producer_epoch} (current producer epoch)",
            )
    elif header.base_sequence != entry.next_sequence:
        raise KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"Out of order sequence number for producer {header.producer_id} at offset {place.offset} in partition"
            f" {place.topic_partition}: {header.base_sequence} (incoming seq. number), {entry.last_sequence} (current"
            " end sequence number)",
        )


def check_transactional(place: Place, entry: ProducerStateEntry, header: BatchHeader) -> None:
    if entry.current_txn_first_offset >= 0 and not header.attributes & TRANSACTIONAL_MASK:
        raise not_transactional(place, header)


def check_marker(
    place: Place, entry: ProducerStateEntry, header: BatchHeader, coordinator_epoch: int, transaction_version: int
) -> None:
    check_epoch(place, entry, header)
    # From transaction version 2 on (KIP-890) each marker raises the epoch; the same epoch again is only right as the
    # repeat of a marker that has done its work.
    same_epoch = header.producer_epoch == entry.producer_epoch
    if transaction_version >= 2 and same_epoch and entry.current_txn_first_offset >= 0:
        raise stale_epoch(place, entry, header)
    if coordinator_epoch < entry.coordinator_epoch:
        raise KafkaError(
            ErrorCode.TRANSACTION_COORDINATOR_FENCED,
            f"Invalid coordinator epoch for producerId {header.producer_id} at offset {place.offset} in partition"
            f" {place.topic_partition}: {coordinator_epoch} (zombie), {entry.coordinator_epoch} (current)",
        )


def stale_epoch(place: Place, entry: ProducerStateEntry, header: BatchHeader) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_PRODUCER_EPOCH,
        f"Epoch of producer {header.producer_id} at offset {place.offset} in {place.topic_partition} is"
        f" {header.producer_epoch}, which is smaller than the last seen epoch {entry.producer_epoch}",
    )


def not_transactional(place: Place, header: BatchHeader) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_TXN_STATE,
        f"Expected transactional write from producer {header.producer_id} at offset {place.offset} in partition"
        f" {place.topic_partition}",
    )
