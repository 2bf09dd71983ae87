"""One record as bytes, in plain Python: the reference for `_format.pxd`.

A record is: varint size, i8 attributes, varlong timestamp delta, varint offset delta, varint key size and key, varint
value size and value, varint header count, headers. Varints are zigzag; a negative size means null. Reading trusts
nothing: every size is held against what is left of the record, every record against what is left of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.records.buffers import Buffer
from penstock.records.errors import Defect, InvalidRecords
from penstock.records.record import Header

SIZE_MAX = 2**31 - 1
_SIGN_BIT = 1 << 63
_WRAP = 1 << 64

Fields = tuple[int, int, int, int, int, int, int, int, int]


def check_range(buffer: Buffer, position: int, end: int) -> None:
    if position < 0 or end < position or end > len(buffer):
        raise ValueError(f"no range of a buffer of {len(buffer)} bytes: {position} to {end}")


def read_fields(buffer: Buffer, position: int, end: int, index: int) -> Fields:
    """Timestamp delta, offset delta, key position and size, value position and size, headers' position and count,
    and the position after the record."""
    # Most numbers are one byte: reading them here instead of in a function halves the time of the walk.
    if position < end and (raw := buffer[position]) < 0x80:
        size = raw >> 1 ^ -(raw & 1)
        position += 1
    else:
        size, position = read_varint(buffer, position, end, index)
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
        offset_delta, position = read_varint(buffer, position, end, index)
    if position < end and (raw := buffer[position]) < 0x80:
        key_size = raw >> 1 ^ -(raw & 1)
        key_at = position + 1
    else:
        key_size, key_at = read_varint(buffer, position, end, index)
    position = _skip(key_at, key_size, end, index)
    if position < end and (raw := buffer[position]) < 0x80:
        value_size = raw >> 1 ^ -(raw & 1)
        value_at = position + 1
    else:
        value_size, value_at = read_varint(buffer, position, end, index)
    position = _skip(value_at, value_size, end, index)
    if position == end - 1 and buffer[position] == 0:
        return timestamp_delta, offset_delta, key_at, key_size, value_at, value_size, end, 0, end
    header_count, headers_at = read_varint(buffer, position, end, index)
    if header_count < 0 or header_count > end - headers_at:
        raise InvalidRecords.of(Defect.HEADER_COUNT, index)
    position = headers_at
    for _ in range(header_count):
        header_size, position = read_varint(buffer, position, end, index)
        if header_size < 0:
            raise InvalidRecords.of(Defect.HEADER_KEY_SIZE, index)
        position = _skip(position, header_size, end, index)
        header_size, position = read_varint(buffer, position, end, index)
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


def read_varint(buffer: Buffer, position: int, end: int, index: int) -> tuple[int, int]:
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


def decode_headers(view: memoryview, position: int, end: int, count: int) -> tuple[Header, ...]:
    """Headers whose sizes `read_fields` has checked. Keys that are not UTF-8 read as they do in Java."""
    headers: list[Header] = []
    for _ in range(count):
        size, position = read_varint(view, position, end, 0)
        key = str(view[position : position + size], "utf-8", "replace")
        size, position = read_varint(view, position + size, end, 0)
        value = bytes(view[position : position + size]) if size >= 0 else None
        position += max(size, 0)
        headers.append((key, value))
    return tuple(headers)


def encode_body(
    timestamp_delta: int, offset_delta: int, key: Buffer | None, value: Buffer | None, headers: Iterable[Header]
) -> bytearray:
    """A record without the size in front of it."""
    body = bytearray(1)
    write_varint(body, timestamp_delta)
    write_varint(body, offset_delta)
    write_bytes(body, key)
    write_bytes(body, value)
    encode_headers(body, headers)
    if len(body) > SIZE_MAX:
        raise OverflowError("a record is larger than 2 GiB")
    return body


def encode_headers(body: bytearray, headers: Iterable[Header]) -> None:
    items = tuple(headers)
    write_varint(body, len(items))
    for key, value in items:
        write_bytes(body, str.encode(key))
        write_bytes(body, value)


def write_bytes(output: bytearray, data: Buffer | None) -> None:
    if data is None:
        output.append(1)
        return
    data = memoryview(data)
    write_varint(output, data.nbytes)
    output += data


def check_timestamp(timestamp: int) -> None:
    if not -_SIGN_BIT <= timestamp < _SIGN_BIT:
        raise OverflowError("a timestamp has more than 64 bits")


def varint_size(value: int) -> int:
    return max(1, ((value << 1 ^ value >> 63).bit_length() + 6) // 7)


def write_varint(output: bytearray, value: int) -> None:
    raw = value << 1 ^ value >> 63
    while raw >= 0x80:
        output.append(raw & 0x7F | 0x80)
        raw >>= 7
    output.append(raw)


def wrap(value: int) -> int:
    """Java's 64-bit sums wrap around."""
    if -_SIGN_BIT <= value < _SIGN_BIT:
        return value
    return (value + _SIGN_BIT) % _WRAP - _SIGN_BIT
