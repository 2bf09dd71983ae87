"""The small pieces that compiled and hand-written codecs share: varints, lengths and ids.

Everything here is the slow path of something the codecs do inline: a length below 128 is one byte and never gets here.
"""

from __future__ import annotations

from uuid import UUID

from penstock.protocol.errors import DecodeError, EncodeError

Buffer = bytes | bytearray | memoryview

STRING_BYTES_MAX = 0x7FFF
"""Kafka refuses longer strings even where the length is a varint."""

_IDS_MAX = 8192
_ids: dict[bytes, UUID] = {}


def read_varint(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Continue an unsigned varint whose first byte, above 127, was just read; `position` is behind that byte."""
    value = first & 0x7F
    for shift in (7, 14, 21, 28):
        byte = buffer[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 128:
            return value, position
    raise DecodeError("a varint is longer than five bytes")


def read_string_length(buffer: Buffer, position: int, first: int) -> tuple[int, int]:
    """Like `read_varint`, for a compact string (the value is the length plus one)."""
    value, position = read_varint(buffer, position, first)
    if value > STRING_BYTES_MAX + 1:
        raise DecodeError(f"a string of {value - 1} bytes is longer than {STRING_BYTES_MAX}")
    return value, position


def varint(value: int) -> bytes:
    """An unsigned varint."""
    if value < 128:
        return value.to_bytes(1, "big")
    if value > 0xFFFFFFFF:
        raise EncodeError(f"{value} does not fit an unsigned varint")
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def string_length(value: int) -> bytes:
    """The varint in front of a compact string; `value` is its length in bytes plus one."""
    if value > STRING_BYTES_MAX + 1:
        raise EncodeError(f"a string of {value - 1} bytes is longer than {STRING_BYTES_MAX}")
    return varint(value)


def compact_string(value: str) -> bytes:
    encoded = value.encode()
    return string_length(len(encoded) + 1) + encoded


def nullable_compact_string(value: str | None) -> bytes:
    return b"\x00" if value is None else compact_string(value)


def legacy_string(value: str) -> bytes:
    encoded = value.encode()
    if len(encoded) > STRING_BYTES_MAX:
        raise EncodeError(f"a string of {len(encoded)} bytes is longer than {STRING_BYTES_MAX}")
    return len(encoded).to_bytes(2, "big") + encoded


def nullable_legacy_string(value: str | None) -> bytes:
    return b"\xff\xff" if value is None else legacy_string(value)


def id_of(raw: bytes) -> UUID:
    """The id of sixteen bytes; kept, because the same few topic ids come in all the time and a UUID is slow to make."""
    found = _ids.get(raw)
    if found is None:
        if len(_ids) >= _IDS_MAX:
            _ids.clear()
        found = _ids[raw] = UUID(bytes=raw)
    return found


def skip_tags(buffer: Buffer, position: int, end: int) -> int:
    """Step over a section of tagged fields that this side does not know."""
    count = buffer[position]
    position += 1
    if not count:
        return position
    if count > 127:
        count, position = read_varint(buffer, position, count)
    for _ in range(count):
        tag = buffer[position]
        position += 1
        if tag > 127:
            tag, position = read_varint(buffer, position, tag)
        size = buffer[position]
        position += 1
        if size > 127:
            size, position = read_varint(buffer, position, size)
        position += size
        if position > end:
            raise DecodeError(f"tagged field {tag} of {size} bytes ends beyond the message")
    return position
