"""Types as they are written: `ARRAY<STRUCT<A INT, B DECIMAL(10, 2)>>`, or the name of a custom type."""

from __future__ import annotations

from typing import Final

from penstock.base.config.text import closest
from penstock.sql import types
from penstock.sql.parser.cursor import Cursor

_NAMES: Final[dict[str, types.SqlType]] = {
    "BOOLEAN": types.BOOLEAN,
    "INT": types.INTEGER,
    "INTEGER": types.INTEGER,
    "BIGINT": types.BIGINT,
    "DOUBLE": types.DOUBLE,
    "STRING": types.STRING,
    "VARCHAR": types.STRING,
    "BYTES": types.BYTES,
    "TIME": types.TIME,
    "DATE": types.DATE,
    "TIMESTAMP": types.TIMESTAMP,
}
_WITH_PARTS: Final = ("ARRAY", "MAP", "STRUCT", "DECIMAL", "DEC")
NESTING_MAX: Final = 50


def type_of(cursor: Cursor) -> types.SqlType:
    if cursor.nesting >= NESTING_MAX:
        cursor.fail(f"The type is nested too deeply: at most {NESTING_MAX} levels are read.")
    cursor.nesting += 1
    found = _type(cursor)
    cursor.nesting -= 1
    return found


def _type(cursor: Cursor) -> types.SqlType:
    token = cursor.token
    name = cursor.name("a type")
    if token.kind == "word":
        if name in ("DECIMAL", "DEC"):
            return _decimal(cursor)
        if name == "ARRAY" and cursor.accept_symbol("<"):
            return types.Array(_closed(cursor, type_of(cursor)))
        if name == "MAP" and cursor.accept_symbol("<"):
            return _map(cursor)
        if name == "STRUCT" and (cursor.is_symbol("<") or cursor.is_symbol("<>")):
            return _struct(cursor)
        if name in ("STRING", "VARCHAR") and cursor.accept_symbol("("):
            _length(cursor)
        if name in _NAMES:
            return _NAMES[name]
    if name in cursor.types:
        return cursor.types[name]
    meant = closest(name, [*_NAMES, *_WITH_PARTS, *cursor.types])
    hint = f"Did you mean {meant}?" if meant else "Make one with: CREATE TYPE name AS ...;"
    return cursor.fail(f"There is no type {name}.", hint=hint, at=token)


def _closed(cursor: Cursor, found: types.SqlType) -> types.SqlType:
    cursor.expect_symbol(">")
    return found


def _map(cursor: Cursor) -> types.Map:
    key = type_of(cursor)
    cursor.expect_symbol(",")
    return types.Map(key, _closed(cursor, type_of(cursor)))


def _struct(cursor: Cursor) -> types.Struct:
    if cursor.accept_symbol("<>"):
        return types.Struct(())
    start = cursor.advance()
    if cursor.accept_symbol(">"):
        return types.Struct(())
    fields = cursor.listed(lambda: types.Field(cursor.name("the name of a field"), type_of(cursor)))
    cursor.expect_symbol(">")
    if len({field.name for field in fields}) < len(fields):
        cursor.fail("Two fields of a STRUCT have the same name.", at=start)
    return types.Struct(fields)


def _decimal(cursor: Cursor) -> types.Decimal:
    start = cursor.token
    cursor.expect_symbol("(")
    precision = cursor.integer()
    scale = cursor.integer() if cursor.accept_symbol(",") else 0
    cursor.expect_symbol(")")
    if not 1 <= precision <= types.MAX_DECIMAL_PRECISION:
        cursor.fail(f"The precision of a DECIMAL is 1 to {types.MAX_DECIMAL_PRECISION}, not {precision}.", at=start)
    if scale > precision:
        cursor.fail(f"The scale of a DECIMAL is at most its precision {precision}, not {scale}.", at=start)
    return types.Decimal(precision, scale)


def _length(cursor: Cursor) -> None:
    """VARCHAR(20): taken for the sake of other databases' texts, and without effect."""
    cursor.integer()
    cursor.expect_symbol(")")
