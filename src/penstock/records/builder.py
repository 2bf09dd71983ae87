"""Batches from records, and records from batches.

Brokers keep batches opaque; this is for those who make them (clients, coordinators, markers) and those who must look
inside (clients, coordinators on load, searches by time).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from enum import IntEnum
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import (
    CODEC_MASK,
    CONTROL_MASK,
    CRC_OFFSET,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    TimestampType,
    compute_crc,
    read_header,
)
from penstock.records.buffers import Buffer
from penstock.records.compression import Codec, DecompressedTooLarge, DecompressionFailed, compress, decompress
from penstock.records.errors import InvalidRecords
from penstock.records.kernel import decode_records, encode_records, find_timestamp
from penstock.records.record import DecodedRecord, Record

__all__ = [
    "ControlType",
    "DecodedRecord",
    "EndTransactionMarker",
    "Record",
    "build_batch",
    "end_transaction_marker",
    "find_record_by_timestamp",
    "open_records",
    "read_end_transaction_marker",
    "read_records",
    "seal_batch",
]

READ_BYTES_MAX = 1 << 30
"""Largest plain size of a batch that readers open unless they ask for another bound. What is in a log was checked
when it was produced, so this only stops a damaged file from filling the memory."""

_CONTROL_KEY = struct.Struct(">hh")
_MARKER_VALUE = struct.Struct(">hi")
_UINT32 = struct.Struct(">I")


class ControlType(IntEnum):
    """The second field of a control record's key."""

    ABORT = 0
    COMMIT = 1


class EndTransactionMarker(NamedTuple):
    type: ControlType
    coordinator_epoch: int


def build_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: Codec = Codec.NONE,
    level: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    transactional: bool = False,
    control: bool = False,
    leader_epoch: int = NO_LEADER_EPOCH,
    timestamp_type: str = TimestampType.CREATE_TIME,
    log_append_time: int | None = None,
) -> bytes:
    """One batch with the records at `base_offset`, +1, +2... A batch may be empty, as compaction leaves them.

    With `LogAppendTime` the largest timestamp is `log_append_time` when it is given.
    """
    base_timestamp = records[0][0] if records else -1
    plain, max_timestamp = encode_records(records, base_timestamp, HEADER_SIZE)
    attributes = int(codec) | TRANSACTIONAL_MASK * transactional | CONTROL_MASK * control
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
        max_timestamp = max_timestamp if log_append_time is None else log_append_time
    header = BatchHeader(
        base_offset=base_offset,
        length=0,
        leader_epoch=leader_epoch,
        magic=MAGIC,
        crc=0,
        attributes=attributes,
        last_offset_delta=max(len(records) - 1, 0),
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        count=len(records),
    )
    if codec is Codec.NONE:
        batch = plain
    else:
        batch = bytearray(HEADER_SIZE)
        batch += compress(codec, memoryview(plain)[HEADER_SIZE:], level)
    seal_batch(batch, header)
    return bytes(batch)


def seal_batch(batch: bytearray, header: BatchHeader) -> BatchHeader:
    """Write `header` over the first `HEADER_SIZE` bytes with the true length and CRC; returns it as written."""
    size = len(batch)
    HEADER.pack_into(batch, 0, *header._replace(length=size - LOG_OVERHEAD))
    _UINT32.pack_into(batch, CRC_OFFSET, compute_crc(batch, 0, size))
    return read_header(batch)


def end_transaction_marker(
    control_type: ControlType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp: int,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """The control batch that ends a transaction on a partition."""
    key = _CONTROL_KEY.pack(0, control_type)
    value = _MARKER_VALUE.pack(0, coordinator_epoch)
    return build_batch(
        [Record(timestamp, key, value)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )


def read_end_transaction_marker(buffer: Buffer, position: int, header: BatchHeader) -> EndTransactionMarker | None:
    """The marker in a control batch; None for control records of other types (leader changes, snapshots)."""
    records = read_records(buffer, position, header)
    if not records:
        return None
    key, value = records[0].key, records[0].value
    if key is None or len(key) < _CONTROL_KEY.size:
        raise InvalidRecords(f"The control batch at offset {header.base_offset} has no control key.")
    _, control_type = _CONTROL_KEY.unpack_from(key)
    if control_type not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if value is None or len(value) < _MARKER_VALUE.size:
        raise InvalidRecords(f"The transaction marker at offset {header.base_offset} has no coordinator epoch.")
    _, coordinator_epoch = _MARKER_VALUE.unpack_from(value)
    return EndTransactionMarker(ControlType(control_type), coordinator_epoch)


def open_records(
    buffer: Buffer, position: int, header: BatchHeader, max_bytes: int = READ_BYTES_MAX
) -> tuple[Buffer, int, int]:
    """The plain records of the batch at `position`: a buffer, and where in it they begin and end."""
    end = position + header.length + LOG_OVERHEAD
    if end > len(buffer) or end < position + HEADER_SIZE:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"The batch at offset {header.base_offset} is cut off.")
    if header.attributes & CODEC_MASK == 0:
        return buffer, position + HEADER_SIZE, end
    try:
        plain = decompress(header.codec, memoryview(buffer)[position + HEADER_SIZE : end], max_bytes=max_bytes)
    except DecompressionFailed as error:
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"The batch at offset {header.base_offset} cannot be decompressed: {error}."
        ) from error
    except DecompressedTooLarge as error:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The batch at offset {header.base_offset} decompresses to more than {max_bytes} bytes.",
        ) from error
    return plain, 0, len(plain)


def read_records(
    buffer: Buffer, position: int, header: BatchHeader, *, max_bytes: int = READ_BYTES_MAX
) -> list[DecodedRecord]:
    """All records of the batch at `position`, decompressed if need be. The batch must be whole in `buffer`."""
    plain, start, end = open_records(buffer, position, header, max_bytes)
    append_time = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_MASK else None
    return decode_records(plain, start, end, header.count, header.base_offset, header.base_timestamp, append_time)


def find_record_by_timestamp(buffer: Buffer, position: int, header: BatchHeader, target: int) -> tuple[int, int] | None:
    """Timestamp and offset of the batch's first record at or after `target`, without decoding the others."""
    if header.attributes & TIMESTAMP_TYPE_MASK:
        if header.max_timestamp < target or header.count == 0:
            return None
        if header.last_offset_delta == header.count - 1:
            return header.max_timestamp, header.base_offset
        first = read_records(buffer, position, header)[0]
        return first.timestamp, first.offset
    plain, start, end = open_records(buffer, position, header)
    found = find_timestamp(plain, start, end, header.count, header.base_timestamp, target)
    if found is None:
        return None
    offset_delta, timestamp = found
    return timestamp, header.base_offset + offset_delta
