"""Compiles a message class into a reader and a writer for one version, on first use.

The source text of one flat function is generated per (class, version) and executed, as `dataclasses` does: nested
structures are inlined, versions and nullability are decided while generating, neighbouring fixed-size fields go
through one precompiled struct. The package `codegen` produces the text; this module turns it into functions.

Readers trust nothing: a length or a count is compared with the bytes that are left before anything is allocated, and
whatever is wrong with the bytes ends in `DecodeError`. Bytes behind the message are ignored, as Kafka does. Writers
raise `EncodeError` for a value that the version cannot carry (null where it must not be, a number out of range).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from penstock.protocol.codegen.reading import reader_source
from penstock.protocol.codegen.writing import writer_source
from penstock.protocol.primitives import Buffer

MessageT = TypeVar("MessageT")

Reader = Callable[[Buffer, int, int], tuple[Any, int]]
"""(buffer, position, end) -> (message, position behind it)."""

Writer = Callable[[bytearray, Any], None]
"""(output, message): appends the message."""

_readers: dict[tuple[type, int, bool], Reader] = {}
_writers: dict[tuple[type, int, bool], Writer] = {}


def reader(message_class: type, version: int, flexible: bool) -> Reader:
    """The reader of one version; compiled once, so there are never more than classes times versions."""
    key = message_class, version, flexible
    found = _readers.get(key)
    if found is None:
        source, names = reader_source(message_class, version, flexible)
        found = _readers[key] = _execute(source, names, f"<reader of {message_class.__name__} v{version}>")["read"]
    return found


def writer(message_class: type, version: int, flexible: bool) -> Writer:
    """The writer of one version; compiled once."""
    key = message_class, version, flexible
    found = _writers.get(key)
    if found is None:
        source, names = writer_source(message_class, version, flexible)
        found = _writers[key] = _execute(source, names, f"<writer of {message_class.__name__} v{version}>")["write"]
    return found


def encode(message: object, version: int, flexible: bool) -> bytes:
    """One message alone, without header or size."""
    out = bytearray()
    writer(type(message), version, flexible)(out, message)
    return bytes(out)


def decode(message_class: type[MessageT], version: int, flexible: bool, data: Buffer) -> MessageT:
    """One message alone, without header or size."""
    message: MessageT = reader(message_class, version, flexible)(data, 0, len(data))[0]
    return message


def _execute(source: str, names: dict[str, Any], file_name: str) -> dict[str, Any]:
    exec(compile(source, file_name, "exec"), names)
    return names
