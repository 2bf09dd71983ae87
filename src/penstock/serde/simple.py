"""The built-in pairs, byte for byte what Java's `org.apache.kafka.common.serialization` writes.

Numbers are big endian of a fixed size; a UUID is its text; JSON is compact UTF-8. None stays None in both directions.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from penstock.serde.errors import SerializationError


@dataclass(frozen=True, slots=True, kw_only=True)
class SimpleSerde:
    """One format: both directions for a value that is not None."""

    name: str
    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]
    java: tuple[str, ...] = ()
    """Java's classes of it, without `Serializer` or `Deserializer` at the end."""

    def serialize(self, topic: str, value: Any, headers: object = (), /) -> bytes | None:
        return None if value is None else self.encode(value)

    def deserialize(self, topic: str, data: bytes | None, headers: object = (), /) -> Any:
        return None if data is None else self.decode(data)


def encode_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise SerializationError(f"bytes are wanted, not {named(value)}: encode it first, or name a serializer for it")


def encode_string(value: Any) -> bytes:
    if not isinstance(value, str):
        raise SerializationError(f"the string serializer takes str, not {named(value)}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise SerializationError(f"the text cannot be written as UTF-8: {error}") from error


def decode_string(data: bytes) -> str:
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError as error:
        raise SerializationError(f"the bytes are not UTF-8 text: {error}") from error


def encode_uuid(value: Any) -> bytes:
    if not isinstance(value, UUID):
        raise SerializationError(f"the uuid serializer takes uuid.UUID, not {named(value)}")
    return str(value).encode()


def decode_uuid(data: bytes) -> UUID:
    try:
        return UUID(decode_string(data))
    except ValueError as error:
        raise SerializationError(f"the text {bytes(data)!r} is no UUID") from error


def encode_bool(value: Any) -> bytes:
    if not isinstance(value, bool):
        raise SerializationError(f"the bool serializer takes True or False, not {named(value)}")
    return b"\x01" if value else b"\x00"


def decode_bool(data: bytes) -> bool:
    if data not in (b"\x00", b"\x01"):
        raise SerializationError(f"a bool is one byte, 0 or 1, but this is {_short(data)}")
    return data == b"\x01"


def encode_json(value: Any) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationError(f"a {type(value).__name__} cannot be written as JSON: {error}") from error


def decode_json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise SerializationError(f"the bytes {_short(data)} are not JSON: {error}") from error


def encode_void(value: Any) -> bytes:
    raise SerializationError(f"the void serializer takes None only, not {named(value)}")


def decode_void(data: bytes) -> Any:
    raise SerializationError(f"the void deserializer wants no bytes, but there are {len(data)}")


def _integer(name: str, layout: str, *java: str) -> SimpleSerde:
    form = struct.Struct(layout)
    limit = 1 << (form.size * 8 - 1)

    def encode(value: Any) -> bytes:
        if not isinstance(value, int) or isinstance(value, bool):
            raise SerializationError(f"the {name} serializer takes int, not {named(value)}")
        if not -limit <= value < limit:
            raise SerializationError(f"{value} does not fit into the {form.size} bytes of a {name}")
        return form.pack(value)

    return SimpleSerde(name=name, encode=encode, decode=_fixed(name, form), java=java)


def _real(name: str, layout: str, *java: str) -> SimpleSerde:
    form = struct.Struct(layout)

    def encode(value: Any) -> bytes:
        if not isinstance(value, float | int) or isinstance(value, bool):
            raise SerializationError(f"the {name} serializer takes float, not {named(value)}")
        try:
            return form.pack(value)
        except (OverflowError, struct.error) as error:
            raise SerializationError(f"{value!r:.60} does not fit into the {form.size} bytes of a {name}") from error

    return SimpleSerde(name=name, encode=encode, decode=_fixed(name, form), java=java)


def _fixed(name: str, form: struct.Struct) -> Callable[[bytes], Any]:
    def decode(data: bytes) -> Any:
        if len(data) != form.size:
            raise SerializationError(f"a {name} is {form.size} bytes, but there are {len(data)}: {_short(data)}")
        return form.unpack(data)[0]

    return decode


def named(value: object) -> str:
    return f"{type(value).__name__} {value!r:.60}"


def _short(data: bytes) -> str:
    shown = bytes(data[:32])
    return f"{shown!r}..." if len(data) > len(shown) else repr(shown)


_SERIES: Final = (
    SimpleSerde(name="bytes", encode=encode_bytes, decode=bytes, java=("ByteArray", "Bytes", "ByteBuffer")),
    SimpleSerde(name="string", encode=encode_string, decode=decode_string, java=("String",)),
    SimpleSerde(name="json", encode=encode_json, decode=decode_json, java=("Json",)),
    SimpleSerde(name="uuid", encode=encode_uuid, decode=decode_uuid, java=("UUID",)),
    SimpleSerde(name="bool", encode=encode_bool, decode=decode_bool, java=("Boolean",)),
    SimpleSerde(name="void", encode=encode_void, decode=decode_void, java=("Void",)),
    _integer("short", ">h", "Short"),
    _integer("int", ">i", "Integer"),
    _integer("long", ">q", "Long"),
    _real("float", ">f", "Float"),
    _real("double", ">d", "Double"),
)

SIMPLE: Final[dict[str, SimpleSerde]] = {serde.name: serde for serde in _SERIES}
"""The built-in pairs by their short names."""
