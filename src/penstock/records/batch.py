"""The header of a record batch (format v2) and the few fields that a broker changes in place.

A batch stays opaque bytes on its way from a producer to the disk and to consumers: 61 bytes of header, then records,
perhaps compressed. The CRC-32C covers everything from the attributes on, so the base offset and the leader epoch, which
come before it, can be set without a new checksum; a change of the timestamps needs one.

    0 base offset i64 | 8 length i32 (bytes after this field) | 12 leader epoch i32 | 16 magic i8 | 17 crc u32
    21 attributes i16 | 23 last offset delta i32 | 27 base timestamp i64 | 35 max timestamp i64
    43 producer id i64 | 51 producer epoch i16 | 53 base sequence i32 | 57 record count i32 | 61 records
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

from crc32c import crc32c

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.buffers import Buffer
from penstock.records.compression import Codec

MAGIC = 2
LOG_OVERHEAD = 12
"""Bytes before the part that `length` counts: the base offset and the length itself."""
HEADER_SIZE = 61

LENGTH_OFFSET = 8
LEADER_EPOCH_OFFSET = 12
MAGIC_OFFSET = 16
CRC_OFFSET = 17
ATTRIBUTES_OFFSET = 21
MAX_TIMESTAMP_OFFSET = 35
PRODUCER_ID_OFFSET = 43

CODEC_MASK = 0x07
TIMESTAMP_TYPE_MASK = 0x08
TRANSACTIONAL_MASK = 0x10
CONTROL_MASK = 0x20
DELETE_HORIZON_MASK = 0x40
KNOWN_ATTRIBUTES_MASK = 0x7F

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1
SEQUENCE_MAX = 2**31 - 1

HEADER = struct.Struct(">qiibIhiqqqhii")
_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_UINT32 = struct.Struct(">I")
_INT16 = struct.Struct(">h")
_CODECS = tuple(Codec)
_new_tuple = tuple.__new__


class TimestampType(StrEnum):
    """Who set the timestamps; the values are those of `message.timestamp.type`."""

    CREATE_TIME = "CreateTime"
    LOG_APPEND_TIME = "LogAppendTime"


class BatchHeader(NamedTuple):
    base_offset: int
    length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int  # type: ignore[assignment]  # Kafka's noun hides tuple.count, which nobody misses here

    @property
    def size_in_bytes(self) -> int:
        return self.length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def codec(self) -> Codec:
        codec_id = self.attributes & CODEC_MASK
        if codec_id >= len(_CODECS):
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"The batch at offset {self.base_offset} has the unknown codec {codec_id}."
            )
        return _CODECS[codec_id]

    @property
    def timestamp_type(self) -> TimestampType:
        if self.attributes & TIMESTAMP_TYPE_MASK:
            return TimestampType.LOG_APPEND_TIME
        return TimestampType.CREATE_TIME

    @property
    def append_time(self) -> int | None:
        """The broker's timestamp, which is that of all records; None when they have their own."""
        return self.max_timestamp if self.attributes & TIMESTAMP_TYPE_MASK else None

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_MASK != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When the tombstones and markers of this batch may go; the base timestamp's field then carries it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return increment_sequence(self.base_sequence, self.last_offset_delta)


def increment_sequence(sequence: int, increment: int) -> int:
    """Sequences are 31-bit and go on with 0 after the largest."""
    total = sequence + increment
    return total - SEQUENCE_MAX - 1 if total > SEQUENCE_MAX else total


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """Read the header at `position`, which must have `HEADER_SIZE` bytes; nothing in it is checked."""
    return _new_tuple(BatchHeader, HEADER.unpack_from(buffer, position))


def iter_batches(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Every whole batch with its position. A partial batch at the end stops the walk, an impossible one raises."""
    position = 0
    end = len(buffer)
    while end - position >= HEADER_SIZE:
        header = read_header(buffer, position)
        size = header.length + LOG_OVERHEAD
        if size < HEADER_SIZE or header.magic != MAGIC:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"No record batch at position {position}: length {header.length}, magic {header.magic}.",
            )
        if size > end - position:
            return
        yield position, header
        position += size


def set_base_offset_and_epoch(
    buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int
) -> None:
    _INT64.pack_into(buffer, position, base_offset)
    _INT32.pack_into(buffer, position + LEADER_EPOCH_OFFSET, leader_epoch)


def compute_crc(buffer: Buffer, position: int, size: int) -> int:
    crc: int = crc32c(memoryview(buffer)[position + ATTRIBUTES_OFFSET : position + size])
    return crc


def crc_is_valid(buffer: Buffer, position: int, size: int) -> bool:
    """Whether the checksum of the batch of `size` bytes at `position` holds; false when it is no whole batch."""
    if size < HEADER_SIZE or len(buffer) - position < size:
        return False
    (stored,) = _UINT32.unpack_from(buffer, position + CRC_OFFSET)
    return bool(stored == compute_crc(buffer, position, size))


def set_max_timestamp(
    buffer: bytearray | memoryview, position: int, size: int, timestamp_type: str, max_timestamp: int
) -> BatchHeader:
    """Set the timestamp type and the largest timestamp in place, with a new checksum; returns the new header."""
    (attributes,) = _INT16.unpack_from(buffer, position + ATTRIBUTES_OFFSET)
    attributes &= KNOWN_ATTRIBUTES_MASK
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    else:
        attributes &= ~TIMESTAMP_TYPE_MASK
    _INT16.pack_into(buffer, position + ATTRIBUTES_OFFSET, attributes)
    _INT64.pack_into(buffer, position + MAX_TIMESTAMP_OFFSET, max_timestamp)
    _UINT32.pack_into(buffer, position + CRC_OFFSET, compute_crc(buffer, position, size))
    return read_header(buffer, position)
