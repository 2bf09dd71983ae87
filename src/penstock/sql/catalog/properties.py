"""The WITH clause: names checked, values read, everything a source or a new topic may be told."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

from penstock.sql.errors import NotSupportedError, SemanticError
from penstock.sql.schema import WindowedKey, WindowType
from penstock.sql.statements import Properties

Part = Literal["KEY", "VALUE"]

_COMMON = frozenset({
    "KAFKA_TOPIC", "FORMAT", "KEY_FORMAT", "VALUE_FORMAT", "KEY_DELIMITER", "VALUE_DELIMITER", "PARTITIONS", "REPLICAS",
    "RETENTION_MS", "TIMESTAMP", "TIMESTAMP_FORMAT", "WRAP_SINGLE_VALUE",
})  # fmt: skip
_SOURCE_ONLY = frozenset({"WINDOW_TYPE", "WINDOW_SIZE"})
_SCHEMA_REGISTRY = frozenset({
    "KEY_SCHEMA_ID", "VALUE_SCHEMA_ID", "KEY_SCHEMA_FULL_NAME", "VALUE_SCHEMA_FULL_NAME", "VALUE_AVRO_SCHEMA_FULL_NAME",
    "KEY_PROTOBUF_NULLABLE_REPRESENTATION", "VALUE_PROTOBUF_NULLABLE_REPRESENTATION",
})  # fmt: skip

_UNITS_MS = {
    "MILLISECOND": 1,
    "SECOND": 1_000,
    "MINUTE": 60_000,
    "HOUR": 3_600_000,
    "DAY": 86_400_000,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProperties:
    """What was written; None where nothing was."""

    topic: str | None = None
    key_format: str | None = None
    value_format: str | None = None
    key_delimiter: str | None = None
    value_delimiter: str | None = None
    partitions: int | None = None
    replicas: int | None = None
    retention_ms: int | None = None
    timestamp: str | None = None
    timestamp_format: str | None = None
    wrap_single_value: bool | None = None
    windowed: WindowedKey | None = None

    def format_of(self, part: Part) -> str | None:
        return self.key_format if part == "KEY" else self.value_format

    def delimiter_of(self, part: Part) -> str | None:
        return self.key_delimiter if part == "KEY" else self.value_delimiter


def read_properties(properties: Properties, *, of_query: bool = False) -> SourceProperties:
    """Reads a WITH clause; `of_query` for CREATE ... AS SELECT, which derives its window."""
    _check_names(properties, _COMMON if of_query else _COMMON | _SOURCE_ONLY)
    _check_formats(properties)
    both = _text(properties, "FORMAT")
    return SourceProperties(
        topic=_topic(properties),
        key_format=_upper(both or _text(properties, "KEY_FORMAT")),
        value_format=_upper(both or _text(properties, "VALUE_FORMAT")),
        key_delimiter=_text(properties, "KEY_DELIMITER"),
        value_delimiter=_text(properties, "VALUE_DELIMITER"),
        partitions=_count(properties, "PARTITIONS"),
        replicas=_count(properties, "REPLICAS"),
        retention_ms=_number(properties, "RETENTION_MS"),
        timestamp=_column(properties, "TIMESTAMP"),
        timestamp_format=_text(properties, "TIMESTAMP_FORMAT"),
        wrap_single_value=_flag(properties, "WRAP_SINGLE_VALUE"),
        windowed=_windowed(properties),
    )


def _check_names(properties: Properties, known: frozenset[str]) -> None:
    for name in properties:
        if name in _SCHEMA_REGISTRY:
            raise NotSupportedError(
                f"The WITH property {name} needs a schema registry, which this server does not use.",
                hint="Declare the columns in the statement and remove the property.",
            )
    unknown = [name for name in properties if name not in known]
    if unknown:
        raise SemanticError(
            f"Invalid config variable(s) in the WITH clause: {','.join(unknown)}.",
            hint=f"Known are {', '.join(sorted(known))}.",
        )


def _check_formats(properties: Properties) -> None:
    for name in ("KEY_FORMAT", "VALUE_FORMAT"):
        if name in properties and "FORMAT" in properties:
            raise SemanticError(
                f"Cannot supply both '{name}' and 'FORMAT' properties, as 'FORMAT' sets both key and value formats. "
                "Either use just 'FORMAT', or use 'KEY_FORMAT' and 'VALUE_FORMAT'."
            )


def _text(properties: Properties, name: str) -> str | None:
    value = properties.get(name)
    return None if value is None else str(value)


def _upper(text: str | None) -> str | None:
    return None if text is None else text.upper()


def _topic(properties: Properties) -> str | None:
    topic = _text(properties, "KAFKA_TOPIC")
    if topic == "":
        raise SemanticError("Must have non-empty topic name.", hint="Give KAFKA_TOPIC a name, or leave it out.")
    return topic


def _column(properties: Properties, name: str) -> str | None:
    """A column's name inside a string folds as it would outside."""
    text = _text(properties, name)
    if text is None:
        return None
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in '`"'
    return text[1:-1] if quoted else text.upper()


def _number(properties: Properties, name: str) -> int | None:
    value = properties.get(name)
    if value is None:
        return None
    try:
        return int(str(value))
    except ValueError:
        raise SemanticError(f"Invalid value {value!r} for configuration {name}: it must be a whole number.") from None


def _count(properties: Properties, name: str) -> int | None:
    """-1 asks for the broker's default, as in Kafka."""
    number = _number(properties, name)
    if number is not None and number < 1 and number != -1:
        raise SemanticError(f"Invalid value {number} for configuration {name}: it must be at least 1.")
    return None if number == -1 else number


def _flag(properties: Properties, name: str) -> bool | None:
    value = properties.get(name)
    if value is None:
        return None
    text = str(value).lower()
    if text not in ("true", "false"):
        raise SemanticError(f"Invalid value {value!r} for configuration {name}: it must be true or false.")
    return text == "true"


def _windowed(properties: Properties) -> WindowedKey | None:
    kind, size = _upper(_text(properties, "WINDOW_TYPE")), _text(properties, "WINDOW_SIZE")
    if kind is None:
        return None
    if kind not in get_args(WindowType):
        raise SemanticError(
            f"Error in WITH clause property 'WINDOW_TYPE': Unknown window type: '{kind}' "
            "Valid values are: SESSION, HOPPING, TUMBLING."
        )
    if kind == "SESSION":
        if size is not None:
            raise SemanticError("'WINDOW_SIZE' should not be set for SESSION windows.")
        return WindowedKey(type="SESSION")
    if size is None:
        raise SemanticError(
            f"{kind} windows require 'WINDOW_SIZE' to be provided in the WITH clause. "
            "For example: 'WINDOW_SIZE'='10 SECONDS'"
        )
    return WindowedKey(type="TUMBLING" if kind == "TUMBLING" else "HOPPING", size_ms=_duration_ms(size))


def _duration_ms(text: str) -> int:
    match = re.fullmatch(r"\s*(\d+)\s+([A-Za-z]+?)[sS]?\s*", text)
    unit = _UNITS_MS.get(match[2].upper()) if match else None
    if match is None or unit is None:
        raise SemanticError(
            f"Error in WITH clause property 'WINDOW_SIZE': Invalid duration: '{text}'.\n"
            "Example valid value: '10 SECONDS'"
        )
    return int(match[1]) * unit
