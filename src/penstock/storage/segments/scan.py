"""Walking over the batches of a segment's file without holding it in memory.

Three walks: `find_offset` looks for one batch and reads the least it can, `iter_headers` trusts what it reads (the
replay of producer state), `iter_valid` trusts nothing (recovery) and ends before the first byte that is not part of a
whole valid batch: a torn write, a zero-filled tail, a flipped bit.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from zlib import crc32

from crc32c import crc32c

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import File
from penstock.records.batch import (
    ATTRIBUTES_OFFSET,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_OFFSET,
    BatchHeader,
    read_header,
)

_BOUNDS = struct.Struct(">qi11xi")
"""Base offset, length and last offset delta."""
_LEGACY_CRC = struct.Struct(">I")
_LEGACY_SIZE_MIN = 14

_SEARCH_BYTES = 4096
_CHUNK_BYTES_MIN = 4096
_CHUNK_BYTES_MAX = 1 << 20


ScannedBatch = tuple[int, BatchHeader, memoryview | None]
"""Position, header, and the whole batch: None when it is larger than a chunk, which control batches never are."""


def find_offset(file: File, position: int, end: int, target: int) -> tuple[int, int] | None:
    """Position and size of the first batch from `position` on whose last offset is at or above `target`."""
    unpack_from = _BOUNDS.unpack_from
    while end - position >= HEADER_SIZE:
        chunk = file.read_at(position, min(_SEARCH_BYTES, end - position))
        last_start = len(chunk) - _BOUNDS.size
        at = 0
        while at <= last_start:
            base_offset, length, last_offset_delta = unpack_from(chunk, at)
            size = length + LOG_OVERHEAD
            if base_offset + last_offset_delta >= target:
                return position + at, size
            if size < HEADER_SIZE:
                raise _no_batch(file, position + at)
            at += size
        if not chunk:
            return None
        position += at
    return None


def iter_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Every whole batch from `position` to `end`."""
    chunk, chunk_start, chunk_bytes = b"", position, _CHUNK_BYTES_MIN
    while end - position >= HEADER_SIZE:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            # Small batches are worth reading together, between large ones only the headers are.
            chunk_bytes = min(chunk_bytes * 2, _CHUNK_BYTES_MAX) if at <= len(chunk) else _CHUNK_BYTES_MIN
            chunk, chunk_start, at = file.read_at(position, min(chunk_bytes, end - position)), position, 0
            if len(chunk) < HEADER_SIZE:
                return
        header = read_header(chunk, at)
        size = header.length + LOG_OVERHEAD
        if size < HEADER_SIZE:
            raise _no_batch(file, position)
        if position + size > end:
            return
        yield position, header
        position += size


def iter_valid(file: File, end: int, next_offset: int) -> Iterator[ScannedBatch]:
    """Every batch from the start of the file that is whole, has a good CRC and follows the one before it."""
    position, chunk, chunk_start = 0, memoryview(b""), 0
    while end - position >= HEADER_SIZE:
        at = position - chunk_start
        if at + HEADER_SIZE > len(chunk):
            chunk, chunk_start, at = memoryview(file.read_at(position, _CHUNK_BYTES_MAX)), position, 0
            if len(chunk) < HEADER_SIZE:
                return
        header = read_header(chunk, at)
        size = header.length + LOG_OVERHEAD
        if header.magic != MAGIC or size < HEADER_SIZE or position + size > end:
            _check_not_legacy(file, position, end)
            return
        if header.base_offset < next_offset or header.last_offset_delta < 0 or header.count < 0:
            return
        if at + size > len(chunk) and size <= _CHUNK_BYTES_MAX:
            chunk, chunk_start, at = memoryview(file.read_at(position, _CHUNK_BYTES_MAX)), position, 0
        if size <= _CHUNK_BYTES_MAX:
            content = chunk[at : at + size]
            if len(content) < size or crc32c(content[ATTRIBUTES_OFFSET:]) != header.crc:
                return
            yield position, header, content
        else:
            if not _large_crc_is_valid(file, position, size, header.crc):
                return
            yield position, header, None
        position += size
        next_offset = header.base_offset + header.last_offset_delta + 1


def _large_crc_is_valid(file: File, position: int, size: int, stored: int) -> bool:
    """The length of a damaged header may be anything up to the whole file, so it is not read in one piece."""
    crc = 0
    position, rest = position + ATTRIBUTES_OFFSET, size - ATTRIBUTES_OFFSET
    while rest:
        data = file.read_at(position, min(rest, _CHUNK_BYTES_MAX))
        if not data:
            return False
        crc = crc32c(data, crc)
        position += len(data)
        rest -= len(data)
    return crc == stored


def _check_not_legacy(file: File, position: int, end: int) -> None:
    """Message formats 0 and 1 (before Kafka 0.11) are not read here; refuse the log rather than cut them off."""
    head = file.read_at(position, min(HEADER_SIZE, end - position))
    (length,) = struct.unpack_from(">i", head, 8)
    if head[MAGIC_OFFSET] > 1 or not _LEGACY_SIZE_MIN <= length <= end - position - LOG_OVERHEAD:
        return
    message = file.read_at(position + LOG_OVERHEAD, length)
    # Their CRC-32 comes first and covers all that follows it.
    if _LEGACY_CRC.unpack_from(message)[0] == crc32(message[_LEGACY_CRC.size :]):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            f"{file.path} holds messages of format {head[MAGIC_OFFSET]} at position {position}; only format 2 (Kafka"
            " 0.11 and later) is read. Rewrite the topic with a Kafka that still reads it.",
        )


def _no_batch(file: File, position: int) -> KafkaError:
    return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"{file.path} has no record batch at position {position}.")
