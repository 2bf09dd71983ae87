"""From an operation's records to the batches that are appended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.runtime.shard import CoordinatorRecord, ProducerIdentity
from penstock.records.batch import HEADER_SIZE
from penstock.records.builder import Record, build_batch
from penstock.records.compression import Codec

_RECORD_OVERHEAD_MAX = 21
"""Length, attributes, timestamp and offset deltas, lengths of key and value, number of headers: at most this much."""


def record_size(record: CoordinatorRecord) -> int:
    """An upper bound of what the record takes in a batch."""
    return len(record.key) + len(record.value or b"") + _RECORD_OVERHEAD_MAX


def split_records(
    records: Sequence[CoordinatorRecord], *, is_atomic: bool, bytes_max: int
) -> Iterator[Sequence[CoordinatorRecord]]:
    """The records in groups of which each fits a batch; atomic ones in one group or not at all."""
    size = HEADER_SIZE + sum(map(record_size, records))
    if size <= bytes_max:
        yield records
        return
    if is_atomic:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(records)} record(s) of {size} bytes exceed the largest batch, {bytes_max}.",
        )
    start, size = 0, HEADER_SIZE
    for index, record in enumerate(records):
        size += record_size(record)
        if size > bytes_max and index > start:
            yield records[start:index]
            start, size = index, HEADER_SIZE + record_size(record)
        if size > bytes_max:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE, f"A record of {size} bytes exceeds the largest batch, {bytes_max}."
            )
    yield records[start:]


def build_records(
    records: Sequence[CoordinatorRecord], *, timestamp_ms: int, producer: ProducerIdentity, codec: Codec
) -> bytearray:
    """One batch; transactional when there is a producer. A coordinator's batches carry no sequence."""
    return bytearray(
        build_batch(
            [Record(timestamp_ms, key, value) for key, value in records],
            codec=codec,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transactional=producer.id >= 0,
        )
    )
