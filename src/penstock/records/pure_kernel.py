"""The record kernel in plain Python: the reference for `_kernel.pyx`, and its substitute where no compiler is.

A record is: varint size, i8 attributes, varlong timestamp delta, varint offset delta, varint key size and key, varint
value size and value, varint header count, headers. Varints are zigzag; a negative size means null. The walk trusts
nothing: every size is held against what is left of the record, every record against what is left of the batch.

Both kernels do the same steps in the same order, so they return the same results and raise the same errors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from penstock.records.buffers import Buffer
from penstock.records.errors import Defect, InvalidRecords
from penstock.records.record import DecodedRecord, Header, Record

COMPILED = False
NO_MIN_TIMESTAMP = 2**63 - 1
"""The smallest timestamp of a batch whose records have none."""

_SIGN_BIT = 1 << 63
_WRAP = 1 << 64
_SIZE_MAX = 2**31 - 1
_new_tuple = tuple.__new__

_Fields = tuple[int, int, int, int, int, int, int, int, int]


def walk_records(
    buffer: Buffer, position: int, end: int, count: int, base_timestamp: int, require_keys: bool
) -> tuple[int, int, int]:
    """Check that `buffer[position:end]` is exactly `count` records with the offset deltas 0, 1, 2...

    Returns the largest timestamp (-1 when no record has one), the smallest one other than -1, and the index of the
    first record without a key (-1: none, or not asked). When keys are required, a record without one does not count
    for the timestamps: Kafka reports only the first thing wrong with each record.
    """
    _check_range(buffer, position, end)
    max_timestamp = -1
    min_timestamp = NO_MIN_TIMESTAMP
    first_keyless = -1
    for index in range(count):
        fields = _read_fields(buffer, position, end, index)
        if fields[1] != index:
            raise InvalidRecords.of(Defect.OFFSET_DELTA, index)
        position = fields[8]
        if require_keys and fields[3] < 0:
            if first_keyless < 0:
                first_keyless = index
            continue
        timestamp = _wrap(base_timestamp + fields[0])
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
    _check_range(buffer, position, end)
    records: list[DecodedRecord] = []
    view = memoryview(buffer)
    for index in range(count):
        timestamp, offset_delta, key_at, key_size, value_at, value_size, headers_at, header_count, position = (
            _read_fields(buffer, position, end, index)
        )
        timestamp = _wrap(base_timestamp + timestamp) if log_append_time is None else log_append_time
        key = bytes(view[key_at : key_at + key_size]) if key_size >= 0 else None
        value = bytes(view[value_at : value_at + value_size]) if value_size >= 0 else None
        headers = _decode_headers(view, headers_at, position, header_count) if header_count else ()
        records.append(_new_tuple(DecodedRecord, (_wrap(base_offset + offset_delta), timestamp, key, value, headers)))
    if position != end:
        raise InvalidRecords.of(Defect.TRAILING_BYTES, count)
    return records


def find_timestamp(
    buffer: Buffer, position: int, end: int, count: int, base_timestamp: int, target: int
) -> tuple[int, int] | None:
    """Offset delta and timestamp of the first record at or after `target`, or None."""
    _check_range(buffer, position, end)
    for index in range(count):
        fields = _read_fields(buffer, position, end, index)
        timestamp = _wrap(base_timestamp + fields[0])
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
    _check_range(buffer, position, end)
    rejected: list[tuple[int, int | None]] = []
    for index in range(count):
        if len(rejected) >= limit:
            break
        fields = _read_fields(buffer, position, end, index)
        position = fields[8]
        timestamp = _wrap(base_timestamp + fields[0])
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
        if not -_SIGN_BIT <= timestamp < _SIGN_BIT:
            raise OverflowError("a timestamp has more than 64 bits")
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        body = bytearray(1)
        _write_varint(body, _wrap(timestamp - base_timestamp))
        _write_varint(body, offset_delta)
        _write_bytes(body, key)
        _write_bytes(body, value)
        _encode_headers(body, headers)
        if len(body) > _SIZE_MAX:
            raise OverflowError("a record is larger than 2 GiB")
        _write_varint(output, len(body))
        output += body
    return output, max_timestamp


def _check_range(buffer: Buffer, position: int, end: int) -> None:
    if position < 0 or end < position or end > len(buffer):
        raise ValueError(f"no range of a buffer of {len(buffer)} bytes: {position} to {end}")


def _read_fields(buffer: Buffer, position: int, end: int, index: int) -> _Fields:
    """Timestamp delta, offset delta, key position and size, value position and size, headers' position and count,
    and the position after the record."""
    # Most numbers are one byte: reading them here instead of in a function halves the time of the walk.
    if position < end and (raw := buffer[position]) < 0x80:
        size = raw >> 1 ^ -(raw & 1)
        position += 1
    else:
        size, position = _read_varint(buffer, position, end, index)
    if size < 0 or size > end - position:
        raise InvalidRecords.of(Defect.RECORD_SIZE, index)
    end = position + size
    if size == 0:
        raise InvalidRecords.of(Defect.FIELD_SIZE, index)
    position += 1
    if position < end and (raw := buffer[position]) < 0x80:
        timestamp_delta = raw >> 1 ^ -(raw & 1)
        position += 1
    else:
        timestamp_delta, position = _read_varlong(buffer, position, end, index)
    if position < end and (raw := buffer[position]) < 0x80:
        offset_delta = raw >> 1 ^ -(raw & 1)
        position += 1
    else:
        offset_delta, position = _read_varint(buffer, position, end, index)
    if position < end and (raw := buffer[position]) < 0x80:
        key_size = raw >> 1 ^ -(raw & 1)
        key_at = position + 1
    else:
        key_size, key_at = _read_varint(buffer, position, end, index)
    position = _skip(key_at, key_size, end, index)
    if position < end and (raw := buffer[position]) < 0x80:
        value_size = raw >> 1 ^ -(raw & 1)
        value_at = position + 1
    else:
        value_size, value_at = _read_varint(buffer, position, end, index)
    position = _skip(value_at, value_size, end, index)
    if position == end - 1 and buffer[position] == 0:
        return timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, end, 0, end
    header_count, headers_at = _read_varint(buffer, position, end, index)
    if header_count < 0 or header_count > end - headers_at:
        raise InvalidRecords.of(Defect.HEADER_COUNT, index)
    position = headers_at
    for _ in range(header_count):
        header_size, position = _read_varint(buffer, position, end, index)
        if header_size < 0:
            raise InvalidRecords.of(Defect.HEADER_KEY_SIZE, index)
        position = _skip(position, header_size, end, index)
        header_size, position = _read_varint(buffer, position, end, index)
        position = _skip(position, header_size, end, index)
    if position != end:
        raise InvalidRecords.of(Defect.BODY_NOT_CONSUMED, index)
    return timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, headers_at, header_count, end


def _skip(position: int, size: int, end: int, index: int) -> int:
    if size <= 0:
        return position
    if size > end - position:
        raise InvalidRecords.of(Defect.FIELD_SIZE, index)
    return position + size


def _read_varint(buffer: Buffer, position: int, end: int, index: int) -> tuple[int, int]:
    """A zigzag 32-bit number and the position after it. As in Java, bits beyond the 32nd are dropped."""
    if position < end and (byte := buffer[position]) < 0x80:
        return byte >> 1 ^ -(byte & 1), position + 1
    raw, position = _read_unsigned(buffer, position, end, index, 5)
    raw &= 0xFFFFFFFF
    return raw >> 1 ^ -(raw & 1), position


def _read_varlong(buffer: Buffer, position: int, end: int, index: int) -> tuple[int, int]:
    raw, position = _read_unsigned(buffer, position, end, index, 10)
    raw &= 0xFFFFFFFFFFFFFFFF
    return raw >> 1 ^ -(raw & 1), position


def _read_unsigned(buffer: Buffer, position: int, end: int, index: int, size_max: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 7 * size_max, 7):
        if position >= end:
            break
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
    raise InvalidRecords.of(Defect.VARINT, index)


def _decode_headers(view: memoryview, position: int, end: int, count: int) -> tuple[Header, ...]:
    """Headers whose sizes `_read_fields` has checked. Keys that are not UTF-8 read as they do in Java."""
    headers: list[Header] = []
    for _ in range(count):
        size, position = _read_varint(view, position, end, 0)
        key = str(view[position : position + size], "utf-8", "replace")
        size, position = _read_varint(view, position + size, end, 0)
        value = bytes(view[position : position + size]) if size >= 0 else None
        position += max(size, 0)
        headers.append((key, value))
    return tuple(headers)


def _encode_headers(body: bytearray, headers: Sequence[Header]) -> None:
    _write_varint(body, len(headers))
    for key, value in headers:
        _write_bytes(body, str.encode(key))
        _write_bytes(body, value)


def _write_bytes(output: bytearray, data: bytes | None) -> None:
    if data is None:
        output.append(1)
        return
    _write_varint(output, len(data))
    output += data


def _write_varint(output: bytearray, value: int) -> None:
    raw = value << 1 ^ value >> 63
    while raw >= 0x80:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)


def _wrap(value: int) -> int:
    """Java's 64-bit sums wrap around."""
    if -_SIGN_BIT <= value < _SIGN_BIT:
        return value
    return (value + _SIGN_BIT) % _WRAP - _SIGN_BIT
