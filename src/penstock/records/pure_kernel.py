"""The record kernel in plain Python: the reference for `_kernel.pyx`, and its substitute where no compiler is.

`pure_format` has the format of a record. Both kernels do the same steps in the same order, so they return the same
results and raise the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.records.buffers import Buffer
from penstock.records.errors import Defect, InvalidRecords
from penstock.records.pure_format import (
    check_range,
    check_timestamp,
    decode_headers,
    encode_body,
    read_fields,
    wrap,
    write_varint,
)
from penstock.records.record import DecodedRecord, Record

COMPILED = False
NO_MIN_TIMESTAMP = 2**63 - 1
"""The smallest timestamp of a batch whose records have none."""

_new_tuple = tuple.__new__


def walk_records(
    buffer: Buffer, position: int, end: int, count: int, base_timestamp: int, require_keys: bool
) -> tuple[int, int, int]:
    """Check that `buffer[position:end]` is exactly `count` records with the offset deltas 0, 1, 2...

    Returns the largest timestamp (-1 when no record has one), the smallest one other than -1, and the index of the
    first record without a key (-1: none, or not asked). When keys are required, a record without one does not count
    for the timestamps: Kafka reports only the first thing wrong with each record.
    """
    check_range(buffer, position, end)
    max_timestamp = -1
    min_timestamp = NO_MIN_TIMESTAMP
    first_keyless = -1
    for index in range(count):
        fields = read_fields(buffer, position, end, index)
        if fields[1] != index:
            raise InvalidRecords.of(Defect.OFFSET_DELTA, index)
        position = fields[8]
        if require_keys and fields[3] < 0:
            if first_keyless < 0:
                first_keyless = index
            continue
        timestamp = wrap(base_timestamp + fields[0])
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        if timestamp < min_timestamp and timestamp != -1:
            min_timestamp = timestamp
    if position != end:
        raise InvalidRecords.of(Defect.TRAILING_BYTES, count)
    return max_timestamp, min_timestamp, first_keyless


def decode_records(
    buffer: Buffer,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    log_append_time: int | None,
) -> list[DecodedRecord]:
    """All records with absolute offsets and timestamps; `log_append_time` replaces every timestamp when given."""
    check_range(buffer, position, end)
    records: list[DecodedRecord] = []
    view = memoryview(buffer)
    for index in range(count):
        timestamp, offset_delta, key_at, key_size, value_at, value_size, headers_at, header_count, position = (
            read_fields(buffer, position, end, index)
        )
        timestamp = wrap(base_timestamp + timestamp) if log_append_time is None else log_append_time
        key = bytes(view[key_at : key_at + key_size]) if key_size >= 0 else None
        value = bytes(view[value_at : value_at + value_size]) if value_size >= 0 else None
        headers = decode_headers(view, headers_at, position, header_count) if header_count else ()
        records.append(_new_tuple(DecodedRecord, (wrap(base_offset + offset_delta), timestamp, key, value, headers)))
    if position != end:
        raise InvalidRecords.of(Defect.TRAILING_BYTES, count)
    return records


def find_timestamp(
    buffer: Buffer, position: int, end: int, count: int, base_timestamp: int, target: int
) -> tuple[int, int] | None:
    """Offset delta and timestamp of the first record at or after `target`, or None."""
    check_range(buffer, position, end)
    for index in range(count):
        fields = read_fields(buffer, position, end, index)
        timestamp = wrap(base_timestamp + fields[0])
        if timestamp >= target:
            return fields[1], timestamp
        position = fields[8]
    return None


def list_rejected(
    buffer: Buffer,
    position: int,
    end: int,
    count: int,
    base_timestamp: int,
    require_keys: bool,
    earliest: int,
    latest: int,
    limit: int,
) -> list[tuple[int, int | None]]:
    """The first `limit` records that a topic refuses: index, and the timestamp outside the bounds or None: no key.

    For batches that `walk_records` has found well-formed.
    """
    check_range(buffer, position, end)
    rejected: list[tuple[int, int | None]] = []
    for index in range(count):
        if len(rejected) >= limit:
            break
        fields = read_fields(buffer, position, end, index)
        position = fields[8]
        timestamp = wrap(base_timestamp + fields[0])
        if require_keys and fields[3] < 0:
            rejected.append((index, None))
        elif timestamp != -1 and not earliest <= timestamp <= latest:
            rejected.append((index, timestamp))
    return rejected


def encode_records(records: Iterable[Record], base_timestamp: int, reserve_bytes: int) -> tuple[bytearray, int]:
    """Records with offset deltas 0, 1, 2... after `reserve_bytes` zero bytes (the room for a header).

    Returns the bytes and the largest timestamp (-1 when there is none).
    """
    output = bytearray(reserve_bytes)
    max_timestamp = -1
    for offset_delta, (timestamp, key, value, headers) in enumerate(records):
        check_timestamp(timestamp)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        body = encode_body(wrap(timestamp - base_timestamp), offset_delta, key, value, headers)
        write_varint(output, len(body))
        output += body
    return output, max_timestamp
