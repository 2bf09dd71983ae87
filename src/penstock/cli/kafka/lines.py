"""How the console producer makes records of lines, and how the console consumer makes lines of records. Pure.

Both follow Kafka's LineMessageReader and DefaultMessageFormatter, property by property.
"""

from __future__ import annotations

import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from penstock.base.config.text import closest
from penstock.cli.kafka.parsing import UsageError

READER_KEYS: Final = (
    "parse.key", "parse.headers", "key.separator", "headers.delimiter", "headers.separator", "headers.key.separator",
    "ignore.error", "null.marker",
)  # fmt: skip
FORMATTER_KEYS: Final = (
    "print.timestamp", "print.partition", "print.offset", "print.epoch", "print.delivery", "print.headers", "print.key",
    "print.value", "key.separator", "line.separator", "headers.separator", "null.literal", "key.deserializer",
    "value.deserializer", "headers.deserializer",
)  # fmt: skip
_OF_DESERIALIZERS: Final = ("key.deserializer.", "value.deserializer.", "headers.deserializer.")
"""What follows is for the deserializers, which know their keys themselves."""


def unknown_keys(properties: Iterable[str], known: Sequence[str], whose: str) -> Iterator[str]:
    """A sentence for each key that says nothing here: as in Kafka it is no error, but a misspelt one should be seen."""
    for key in properties:
        if key not in known and not key.startswith(_OF_DESERIALIZERS):
            meant = closest(key, known)
            instead = f"did you mean {meant}?" if meant else f"there are {', '.join(known)}"
            yield f"{key} is no property of the {whose} and has no effect; {instead}"


class LineError(Exception):
    """A line that the reader's properties do not fit."""


@dataclass(frozen=True, slots=True)
class Line:
    """One record to be."""

    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


class LineReader:
    """Lines to records: `headers<delimiter>key<separator>value`, of which only the value must be there."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        self._parse_key = is_true(properties.get("parse.key"))
        self._parse_headers = is_true(properties.get("parse.headers"))
        self._ignore_error = is_true(properties.get("ignore.error"))
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._headers_delimiter = properties.get("headers.delimiter", "\t").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._header_key_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self._null = None if marker is None else marker.encode()
        if self._headers_delimiter == self._headers_separator:
            raise UsageError("headers.delimiter and headers.separator may not be equal")
        if self._headers_separator == self._header_key_separator:
            raise UsageError("headers.separator and headers.key.separator may not be equal")

    def read(self, line: bytes, number: int) -> Line:
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        headers: tuple[tuple[str, bytes | None], ...] = ()
        key: bytes | None = None
        if self._parse_headers:
            part, text = self._cut(text, self._headers_delimiter, "headers delimiter", number)
            if part is not None and not self._is_null(part):
                headers = tuple(self._headers(part, number))
        if self._parse_key:
            part, text = self._cut(text, self._key_separator, "key separator", number)
            key = None if part is None or self._is_null(part) else part
        return Line(key, None if self._is_null(text) else text, headers)

    def _is_null(self, text: bytes) -> bool:
        return self._null is not None and text == self._null

    def _cut(self, text: bytes, separator: bytes, what: str, number: int) -> tuple[bytes | None, bytes]:
        before, found, after = text.partition(separator)
        if found:
            return before, after
        if self._ignore_error:
            return None, text
        raise LineError(f"No {what} found on line number {number}: '{text.decode(errors='replace')}'")

    def _headers(self, text: bytes, number: int) -> Iterator[tuple[str, bytes | None]]:
        for pair in text.split(self._headers_separator):
            name, found, value = pair.partition(self._header_key_separator)
            if not found and not self._ignore_error:
                shown = pair.decode(errors="replace")
                raise LineError(f"No header key separator found in pair '{shown}' on line number {number}")
            yield name.decode(errors="replace"), None if not found or self._is_null(value) else value


class Record(Protocol):
    """What of a record is shown."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def timestamp_type(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> object: ...


def is_true(text: str | None) -> bool:
    return text is not None and text.strip().lower() == "true"


_DESERIALIZERS: Final[Mapping[str, Callable[[bytes], str]]] = {
    "IntegerDeserializer": lambda data: str(struct.unpack(">i", data)[0]),
    "LongDeserializer": lambda data: str(struct.unpack(">q", data)[0]),
    "ShortDeserializer": lambda data: str(struct.unpack(">h", data)[0]),
    "FloatDeserializer": lambda data: str(struct.unpack(">f", data)[0]),
    "DoubleDeserializer": lambda data: str(struct.unpack(">d", data)[0]),
    "BooleanDeserializer": lambda data: "true" if struct.unpack(">?", data)[0] else "false",
    "UUIDDeserializer": lambda data: str(uuid.UUID(data.decode())),
    "VoidDeserializer": lambda data: "null",
}
_AS_IT_IS: Final = ("StringDeserializer", "ByteArrayDeserializer", "BytesDeserializer", "ByteBufferDeserializer")


def text_of(class_name: str | None, what: str) -> Callable[[bytes], bytes]:
    """What shows a value of this class; bytes and text are shown as they are."""
    name = (class_name or "ByteArrayDeserializer").rpartition(".")[2]
    if name in _AS_IT_IS:
        return lambda data: data
    chosen = _DESERIALIZERS.get(name)
    if chosen is None:
        known = ", ".join(sorted((*_DESERIALIZERS, *_AS_IT_IS)))
        raise UsageError(f"{what} {class_name} is a Java class that is not known here; these are: {known}")

    def show(data: bytes) -> bytes:
        try:
            return chosen(data).encode()
        except (struct.error, ValueError):
            raise LineError(f"{len(data)} bytes are no value of {name}: {data[:40]!r}") from None

    return show


class LineFormatter:
    """Records to lines, with the parts that the properties ask for."""

    def __init__(self, properties: Mapping[str, str]) -> None:
        def shown(name: str, default: bool = False) -> bool:
            return is_true(properties[name]) if name in properties else default

        self._timestamp = shown("print.timestamp")
        self._partition = shown("print.partition")
        self._offset = shown("print.offset")
        self._delivery = shown("print.delivery")
        self._epoch = shown("print.epoch")
        self._headers = shown("print.headers")
        self._key = shown("print.key")
        self._value = shown("print.value", default=True)
        self._separator = properties.get("key.separator", "\t").encode()
        self._line_end = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._show_key = text_of(properties.get("key.deserializer"), "key.deserializer")
        self._show_value = text_of(properties.get("value.deserializer"), "value.deserializer")
        self._show_header = text_of(properties.get("headers.deserializer"), "headers.deserializer")

    def line(self, record: Record) -> bytes:
        parts = list(self._about(record))
        if self._headers:
            parts.append(self._header_list(record))
        if self._key:
            parts.append(self._null if record.key is None else self._show_key(record.key))
        if self._value:
            parts.append(self._null if record.value is None else self._show_value(record.value))
        return self._separator.join(parts) + self._line_end

    def _about(self, record: Record) -> Iterator[bytes]:
        if self._timestamp:
            kind = {0: "CreateTime", 1: "LogAppendTime"}.get(int(record.timestamp_type))
            yield (f"{kind}:{record.timestamp}" if kind and record.timestamp >= 0 else "NO_TIMESTAMP").encode()
        if self._partition:
            yield f"Partition:{record.partition}".encode()
        if self._offset:
            yield f"Offset:{record.offset}".encode()
        if self._delivery:
            # How often it was delivered is known to share groups only.
            yield b"Delivery:NOT_PRESENT"
        if self._epoch:
            epoch = getattr(record, "leader_epoch", None)
            yield f"Epoch:{'NOT_PRESENT' if epoch is None or epoch < 0 else epoch}".encode()

    def _header_list(self, record: Record) -> bytes:
        headers: list[tuple[str, bytes | None]] = list(record.headers or ())  # type: ignore[call-overload]
        if not headers:
            return b"NO_HEADERS"
        return self._headers_separator.join(
            name.encode() + b":" + (self._null if value is None else self._show_header(value))
            for name, value in headers
        )
