"""Names and literals in Spark's SQL."""

from __future__ import annotations

import re

from penstock.sql.types import Array, Decimal, Map, SqlType, Struct

_SCALARS = {
    "BOOLEAN": "boolean",
    "INTEGER": "int",
    "BIGINT": "bigint",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "binary",
    "TIME": "time(6)",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "NULL": "void",
}


def spark_type(sql_type: SqlType) -> str:
    """The type as Spark's DDL writes it."""
    match sql_type:
        case Decimal(precision, scale):
            return f"decimal({precision},{scale})"
        case Array(element):
            return f"array<{spark_type(element)}>"
        case Map(key, value):
            return f"map<{spark_type(key)},{spark_type(value)}>"
        case Struct(fields):
            return "struct<" + ",".join(f"{quoted(field.name)}:{spark_type(field.type)}" for field in fields) + ">"
        case _:
            return _SCALARS[sql_type.name]


def quoted(name: str) -> str:
    """A name as Spark's identifier."""
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    """`$` is written by its number, or Spark would look for `${variable}` in some texts."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("$", "\\u0024")
    return f"'{escaped}'"


_LITERAL = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
_ESCAPE = re.compile(r"\\(u0024|.)", re.DOTALL)


def literal_value(text: str) -> str | None:
    """The string that `string_literal` wrote as this text; None for any other expression."""
    found = _LITERAL.fullmatch(text)
    return _ESCAPE.sub(lambda escape: "$" if escape[1] == "u0024" else escape[1], found[1]) if found else None


def integer_value(text: str) -> int | None:
    """The number written by this text, if it is one."""
    bare = text[1:-1] if text.startswith("(-") and text.endswith(")") else text
    return int(bare) if re.fullmatch(r"-?[0-9]+", bare) else None


def holds_map(sql_type: SqlType) -> bool:
    match sql_type:
        case Map():
            return True
        case Array(element):
            return holds_map(element)
        case Struct(fields):
            return any(holds_map(field.type) for field in fields)
    return False


def without_maps(text: str, sql_type: SqlType) -> str:
    """Spark compares no maps: their entries in order stand for them."""
    if not holds_map(sql_type):
        return text
    match sql_type:
        case Map(_, value):
            entry = f"struct(`lambda entry`.key as key, {without_maps('`lambda entry`.value', value)} as value)"
            return f"array_sort(transform(map_entries({text}), `lambda entry` -> {entry}))"
        case Array(element):
            return f"transform({text}, `lambda item` -> {without_maps('`lambda item`', element)})"
        case Struct(fields):
            parts = ", ".join(without_maps(f"{text}.{quoted(field.name)}", field.type) for field in fields)
            return f"case when {text} is not null then struct({parts}) end"
    return text


_BLANKS = "".join(f"\\u{code:04x}" for code in range(0x21))


def trimmed(text: str) -> str:
    """Without the control characters and spaces at both ends, as Java trims."""
    return f"btrim({text}, '{_BLANKS}')"
