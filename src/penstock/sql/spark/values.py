"""Python values on their way into Arrow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.sql.formats.arrow_types import arrow_type
from penstock.sql.types import Array, Map, SqlType, Struct

_Convert = Callable[[Any], Any]


def arrow_array(values: Sequence[Any], sql_type: SqlType) -> pa.Array:
    """A column of these values. What does not fit the type, as a user's function may give it, is null."""
    kind, convert = arrow_type(sql_type), arrow_value(sql_type)
    try:
        return pa.array([_maybe(convert, value) for value in values], kind)
    except _UNFIT:
        return pa.array([_fitting(value, convert, kind) for value in values], kind)


_UNFIT = (pa.ArrowException, AttributeError, OverflowError, TypeError, ValueError)


def _fitting(value: Any, convert: _Convert | None, kind: pa.DataType) -> Any:
    try:
        converted = _maybe(convert, value)
        pa.scalar(converted, kind)
    except _UNFIT:
        return None
    return converted


def arrow_value(sql_type: SqlType) -> _Convert | None:
    """What makes of a value one that Arrow takes: it knows maps as lists of pairs. None: it stays as it is."""
    match sql_type:
        case Array(element):
            return _each(arrow_value(element))
        case Map(_, value):
            return _pairs(arrow_value(value))
        case Struct(fields):
            return _fields({field.name: arrow_value(field.type) for field in fields})
    return None


def _maybe(convert: _Convert | None, value: Any) -> Any:
    return value if value is None or convert is None else convert(value)


def _each(convert: _Convert | None) -> _Convert | None:
    return None if convert is None else lambda values: [_maybe(convert, value) for value in values]


def _pairs(convert: _Convert | None) -> _Convert:
    def pairs(value: Any) -> Any:
        entries = value.items() if isinstance(value, dict) else value
        return [(key, _maybe(convert, each)) for key, each in entries]

    return pairs


def _fields(converts: dict[str, _Convert | None]) -> _Convert | None:
    if not any(converts.values()):
        return None
    return lambda value: {name: _maybe(convert, value.get(name)) for name, convert in converts.items()}
