"""What keys and values of all kinds share: a 16-bit number in front, strings, and where a broken one is reported."""

from __future__ import annotations

import struct
from typing import Final, TypeVar

from penstock.coordinator.records.errors import RecordFormatError
from penstock.protocol.codec import decode, encode
from penstock.protocol.errors import DecodeError
from penstock.protocol.primitives import legacy_string as string
from penstock.protocol.schema import Message

__all__ = ["decode_value", "encode_value", "read_string", "read_type", "string"]

M = TypeVar("M", bound=Message)

_INT16: Final = struct.Struct(">h")


def read_type(key: bytes) -> int:
    if len(key) < 2:
        raise RecordFormatError("a record's key is shorter than its type")
    record_type: int = _INT16.unpack_from(key)[0]
    return record_type


def read_string(data: bytes, position: int) -> tuple[str, int]:
    """A string with a 16-bit length, and the position behind it."""
    try:
        (length,) = _INT16.unpack_from(data, position)
        end = position + 2 + length
        if length < 0 or end > len(data):
            raise RecordFormatError(f"a string of {length} bytes ends beyond its record")
        return data[position + 2 : end].decode(), end
    except (struct.error, UnicodeDecodeError) as error:
        raise RecordFormatError(f"a string cannot be read: {error}") from error


def encode_value(layout: Message, version: int, flexible_from: int) -> bytes:
    return _INT16.pack(version) + encode(layout, version, version >= flexible_from)


def decode_value(layout: type[M], value: bytes, version_max: int, flexible_from: int) -> M:
    """A value of any version up to `version_max`."""
    if len(value) < 2:
        raise RecordFormatError("a record's value is shorter than its version")
    (version,) = _INT16.unpack_from(value)
    if not 0 <= version <= version_max:
        raise RecordFormatError(f"version {version} of {layout.__name__} is unknown; the newest known is {version_max}")
    try:
        return decode(layout, version, version >= flexible_from, value[2:])
    except DecodeError as error:
        raise RecordFormatError(f"a value of {layout.__name__} cannot be read: {error}") from error
