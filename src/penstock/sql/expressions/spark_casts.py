"""CAST as Spark SQL text: the same results as `casting`, and never an error at run time.

Spark's own casts between numbers agree with ours (ANSI mode is off). Text is read by `try_cast` behind the patterns of
`casting`, where Spark would accept more; text is written in Java's form, where Spark has its own for maps and structs.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.sql.expressions.casting import DATE_TEXT, DOUBLE_TEXT, TIME_TEXT, TIMESTAMP_TEXT
from penstock.sql.expressions.spark_types import quoted, spark_type, string_literal, trimmed
from penstock.sql.types import (
    BIGINT,
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    STRING,
    TIME,
    TIMESTAMP,
    Array,
    Decimal,
    Field,
    Map,
    SqlType,
    Struct,
)

_PLAIN_SCALE_MAX = 6
"""Java writes decimals of a larger scale with an exponent when they are small."""


def spark_cast(text: str, source: SqlType, target: SqlType) -> str:
    if source == target:
        return text
    if source == NULL:
        return f"cast(null as {spark_type(target)})"
    if target == STRING:
        return spark_text_form(text, source)
    if source == STRING:
        return _from_text(text, target)
    match source, target:
        case Array(one), Array(other):
            return f"transform({text}, `lambda item` -> {spark_cast('`lambda item`', one, other)})"
        case Map(), Map():
            return _map_cast(text, source, target)
        case Struct(), Struct():
            return _struct_cast(text, source, target)
    return f"cast({text} as {spark_type(target)})"


def _from_text(text: str, target: SqlType) -> str:
    bare = trimmed(text)
    if isinstance(target, Decimal):
        return _guarded(bare, DOUBLE_TEXT, f"try_cast({bare} as {spark_type(target)})")
    return _FROM_TEXT[target](bare)


def _guarded(text: str, pattern: str, result: str) -> str:
    return f"case when {text} rlike {string_literal(pattern)} then {result} end"


def _double(text: str) -> str:
    """An overflow is no number: Java's rule would make it infinite."""
    number = f"try_cast({text} as double)"
    finite = f"nullif(nullif({number}, double('Infinity')), double('-Infinity'))"
    return _guarded(text, DOUBLE_TEXT, finite)


_COMPLETIONS = (
    ("T$", ""),
    ("T(Z|[+-])", "T00$1"),
    ("T([0-9]{2})(?![0-9:])", "T$1:00"),
    ("T([0-9]{2}:[0-9]{2})(?!:)", "T$1:00"),
    ("([+-][0-9]{2})([0-9]{2})$", "$1:$2"),
)
"""What Spark wants written out: minutes and seconds before a zone, the colon inside it."""


def _timestamp(text: str) -> str:
    completed = text
    for pattern, replacement in _COMPLETIONS:
        completed = f"regexp_replace({completed}, {string_literal(pattern)}, {string_literal(replacement)})"
    return _guarded(text, TIMESTAMP_TEXT, f"try_cast({completed} as timestamp)")


_FROM_TEXT: dict[SqlType, Callable[[str], str]] = {
    INTEGER: lambda text: f"try_cast({text} as int)",
    BIGINT: lambda text: f"try_cast({text} as bigint)",
    DOUBLE: _double,
    BOOLEAN: lambda text: f"(lower({text}) = 'true')",
    DATE: lambda text: _guarded(text, DATE_TEXT, f"try_cast({text} as date)"),
    TIME: lambda text: _guarded(text, TIME_TEXT, f"cast(try_cast({text} as time(3)) as time(6))"),
    TIMESTAMP: _timestamp,
    BYTES: lambda text: f"try_to_binary({text}, 'base64')",
}


def spark_text_form(text: str, source: SqlType) -> str:
    """The value as Java writes it; null stays null."""
    match source:
        case Decimal(_, scale) if scale > _PLAIN_SCALE_MAX:
            return _plain_decimal(text, scale)
        case Array(element):
            items = f"transform({text}, `lambda item` -> {_nullable('`lambda item`', element)})"
            return f"concat('[', array_join({items}, ', '), ']')"
        case Map(key, value):
            pair = f"concat({_nullable('`lambda entry`.key', key)}, '=', {_nullable('`lambda entry`.value', value)})"
            items = f"transform(map_entries({text}), `lambda entry` -> {pair})"
            return f"concat('{{', array_join({items}, ', '), '}}')"
        case Struct(fields):
            return _struct_text(text, fields)
    if source == TIMESTAMP:
        return f"date_format({text}, \"yyyy-MM-dd'T'HH:mm:ss.SSS\")"
    if source == TIME:
        return (
            f"case when second({text}) = 0 then date_format({text}, 'HH:mm') else date_format({text}, 'HH:mm:ss') end"
        )
    return f"cast({text} as string)"


def _plain_decimal(text: str, scale: int) -> str:
    """Spark's cast writes small decimals with an exponent."""
    return f"format_number({text}, '0.{'0' * scale}')"


def _nullable(text: str, source: SqlType) -> str:
    return f"coalesce({spark_text_form(text, source)}, 'null')"


def _struct_text(text: str, fields: tuple[Field, ...]) -> str:
    shown = [
        f"concat({string_literal(field.name + '=')}, {spark_text_form(f'{text}.{quoted(field.name)}', field.type)})"
        for field in fields
    ]
    written = f"concat('Struct{{', concat_ws(',', {', '.join(shown)}), '}}')"
    return f"case when {text} is not null then {written} end"


def _map_cast(text: str, source: Map, target: Map) -> str:
    key = spark_cast("`lambda entry`.key", source.key, target.key)
    value = spark_cast("`lambda entry`.value", source.value, target.value)
    entries = f"transform(map_entries({text}), `lambda entry` -> struct({key} as key, {value} as value))"
    return f"map_from_entries(filter({entries}, `lambda entry` -> `lambda entry`.key is not null))"


def _struct_cast(text: str, source: Struct, target: Struct) -> str:
    parts = []
    for field in target.fields:
        own = source.field(field.name)
        value = spark_cast(f"{text}.{quoted(field.name)}", own.type, field.type) if own else None
        parts += [string_literal(field.name), value or spark_cast("null", NULL, field.type)]
    return f"case when {text} is not null then named_struct({', '.join(parts)}) end"
