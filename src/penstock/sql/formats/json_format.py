"""JSON: an object with a member per column, or one bare value where a single column is not wrapped.

Objects are parsed by Arrow's own parser where that gives the same answer (`json_arrow`), else one by one. The second
way works on whole columns too: rows with the same names in the same order share a layout, which knows where each column
is, and a column whose values are all of the JSON type expected goes to Arrow as it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec
import pyarrow as pa

from penstock.sql.formats.codec import BadValueError, Columns, build_columns
from penstock.sql.formats.json_arrow import ArrowJson
from penstock.sql.formats.json_values import make_reader, pick_names
from penstock.sql.formats.python_values import JsonWriter, json_double, make_json_writer
from penstock.sql.schema import ColumnSchema
from penstock.sql.types import Array, Decimal, Map, SqlType, Struct

_AS_THEY_ARE: Final[dict[str, frozenset[type]]] = {
    "BOOLEAN": frozenset({bool, type(None)}),
    "BIGINT": frozenset({int, type(None)}),
    "DOUBLE": frozenset({float, type(None)}),
    "STRING": frozenset({str, type(None)}),
}
"""Python types that Arrow takes for a SQL type just as the reader would give them."""

_BAD_JSON = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


class JsonCodec:
    """`wrapped` False: the record is the bare value of the only column."""

    def __init__(self, columns: Sequence[ColumnSchema], *, wrapped: bool) -> None:
        self._columns = tuple(columns)
        self._wrapped = wrapped
        exact = any(_has_decimal(column.type) for column in columns)
        self._parse: Callable[[bytes], Any] = msgspec.json.Decoder(float_hook=_exact if exact else None).decode
        self._readers = [make_reader(column.type) for column in columns]
        self._layouts = _Layouts([column.name for column in columns])
        self._arrow = ArrowJson(columns) if wrapped and ArrowJson.takes(columns) else None
        self._write = _RowWriter(columns, wrapped=wrapped)

    def read(self, data: pa.Array) -> Columns:
        if self._arrow is not None:
            arrays = self._arrow.read(data)
            if arrays is not None:
                return Columns(arrays=arrays)
        errors: dict[int, str] = {}
        parsed = self._parse_all(data.to_pylist(), errors)
        if not self._wrapped:
            return self._typed([parsed], errors)
        rows = [self._picked(index, value, errors) for index, value in enumerate(parsed)]
        return self._typed(list(zip(*rows, strict=True)) if rows else [()] * len(self._columns), errors)

    def write(self, columns: Sequence[Sequence[Any]], count: int) -> list[bytes | None]:
        return self._write.rows(columns, count)

    def _parse_all(self, values: list[bytes | None], errors: dict[int, str]) -> list[Any]:
        parse = self._parse
        try:
            return [None if value is None else parse(value) for value in values]
        except _BAD_JSON:
            return [self._parse_one(index, value, errors) for index, value in enumerate(values)]

    def _parse_one(self, index: int, value: bytes | None, errors: dict[int, str]) -> Any:
        try:
            return None if value is None else self._parse(value)
        except _BAD_JSON as error:
            errors[index] = f"the bytes are not JSON: {error}"
            return None

    def _picked(self, index: int, value: Any, errors: dict[int, str]) -> Sequence[Any]:
        if type(value) is dict:
            return self._layouts.pick(value)
        if value is not None:
            errors[index] = f"a JSON object is wanted, not {_kind(value)}"
        return self._layouts.nothing

    def _typed(self, raw: list[Sequence[Any]], errors: dict[int, str]) -> Columns:
        typed = [
            self._read_column(column, reader, values, errors)
            for column, reader, values in zip(self._columns, self._readers, raw, strict=True)
        ]
        return build_columns(self._columns, typed, errors)

    def _read_column(
        self, column: ColumnSchema, read: Any, values: Sequence[Any], errors: dict[int, str]
    ) -> Sequence[Any]:
        plain = _AS_THEY_ARE.get(str(column.type))
        if plain is not None and plain.issuperset(map(type, values)):
            return values
        return list(_read_each(column, read, values, errors))


def _read_each(column: ColumnSchema, read: Any, values: Sequence[Any], errors: dict[int, str]) -> Iterator[Any]:
    for index, value in enumerate(values):
        try:
            yield None if value is None else read(value)
        except BadValueError as error:
            errors.setdefault(index, f"column {column.name}: {error}")
            yield None


class _Layouts:
    """For every sequence of names met so far, how the columns are picked out of such an object."""

    MAX = 1_000
    """Objects with names of their own each (a map in disguise) must not fill the memory."""

    def __init__(self, wanted: list[str]) -> None:
        self._wanted = wanted
        self._known: dict[tuple[str, ...], Callable[[dict[str, Any]], Sequence[Any]]] = {}
        self.nothing: tuple[Any, ...] = (None,) * len(wanted)

    def pick(self, value: dict[str, Any]) -> Sequence[Any]:
        names = tuple(value)
        picker = self._known.get(names)
        if picker is None:
            if len(self._known) >= self.MAX:
                self._known.clear()
            picker = self._known[names] = _make_picker(pick_names(self._wanted, list(names)))
        return picker(value)


def _make_picker(names: list[str | None]) -> Callable[[dict[str, Any]], Sequence[Any]]:
    present = [name for name in names if name is not None]
    if len(present) == len(names) and len(names) > 1:
        return itemgetter(*present)
    return lambda value: [None if name is None else value[name] for name in names]


class _RowWriter:
    """Rows become structs whose members are named like the columns; the encoder does the rest in one call per row."""

    def __init__(self, columns: Sequence[ColumnSchema], *, wrapped: bool) -> None:
        self._writers: list[JsonWriter | None] = [make_json_writer(column.type) for column in columns]
        self._encode = msgspec.json.Encoder(decimal_format="number").encode
        self._row: Callable[..., Any] | None = _row_type(columns) if wrapped else None

    def rows(self, columns: Sequence[Sequence[Any]], count: int) -> list[bytes | None]:
        plain = [_converted(writer, values) for writer, values in zip(self._writers, columns, strict=True)]
        if self._row is None:
            return [None if value is None else self._encode(value) for value in plain[0]]
        if not plain:
            return [b"{}"] * count
        return list(map(self._encode, map(self._row, *plain)))


def _row_type(columns: Sequence[ColumnSchema]) -> Callable[..., Any]:
    names = {f"c{index}": column.name for index, column in enumerate(columns)}
    return msgspec.defstruct("Row", list(names), rename=names)


def _converted(writer: JsonWriter | None, values: Sequence[Any]) -> Sequence[Any]:
    # Nearly all doubles are finite; then so is their sum, nearly always, and they are written as they are.
    if writer is None or (writer is json_double and math.isfinite(sum(filter(None, values)))):
        return values
    return [None if value is None else writer(value) for value in values]


def _exact(text: str) -> Any:
    from decimal import Decimal

    return Decimal(text)


def _has_decimal(sql_type: SqlType) -> bool:
    match sql_type:
        case Decimal():
            return True
        case Array(element):
            return _has_decimal(element)
        case Map(key, value):
            return _has_decimal(key) or _has_decimal(value)
        case Struct(fields):
            return any(_has_decimal(field.type) for field in fields)
    return False


def _kind(value: object) -> str:
    names: dict[type, str] = {list: "an array", str: "text", bool: "a boolean", int: "a number", float: "a number"}
    return names.get(type(value), "a number")
