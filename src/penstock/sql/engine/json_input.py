"""JSON values of clients as values of columns: what /inserts-stream sends."""

from __future__ import annotations

import decimal
import math
from collections.abc import Mapping
from typing import Any

from penstock.sql.expressions.casting import caster
from penstock.sql.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    INTEGER,
    STRING,
    Array,
    Decimal,
    Map,
    SqlType,
    Struct,
)

_LIMITS = {INTEGER: 2**31, BIGINT: 2**63}


def column_value(value: Any, sql_type: SqlType) -> Any:
    """The value as the engine holds it; ValueError if it is none of this type."""
    if value is None:
        return None
    match sql_type:
        case Array(element):
            return [column_value(item, element) for item in _checked(value, list, sql_type)]
        case Map(_, element):
            entries = _checked(value, dict, sql_type).items()
            return {str(key): column_value(item, element) for key, item in entries}
        case Struct():
            return _struct(_checked(value, dict, sql_type), sql_type)
        case Decimal():
            return _read(str(value), sql_type)
        case _:
            return _scalar(value, sql_type)


def _scalar(value: Any, sql_type: SqlType) -> Any:
    number = isinstance(value, int | float | decimal.Decimal) and not isinstance(value, bool)
    if sql_type in (INTEGER, BIGINT) and number:
        return _whole(value, sql_type)
    if sql_type == DOUBLE and number:
        return float(value)
    if sql_type == BOOLEAN and isinstance(value, bool):
        return value
    if sql_type == STRING and isinstance(value, str):
        return value
    if isinstance(value, str):
        return _read(value, sql_type)
    raise _unfit(value, sql_type)


def _whole(value: Any, sql_type: SqlType) -> int:
    limit = _LIMITS[sql_type]  # type: ignore[index]  # the caller has looked
    if not math.isfinite(value) or int(value) != value or not -limit <= int(value) < limit:
        raise _unfit(value, sql_type)
    return int(value)


def _read(text: str, sql_type: SqlType) -> Any:
    """Numbers, dates, times and bytes (base64) as text, by the rules of CAST."""
    read = caster(STRING, sql_type)
    if read is None:
        raise _unfit(text, sql_type)
    try:
        return read(text)
    except ValueError:
        raise _unfit(text, sql_type) from None


def _struct(value: Mapping[str, Any], sql_type: Struct) -> dict[str, Any]:
    given = {str(name).upper(): item for name, item in value.items()} | dict(value)
    unknown = [name for name in value if name not in _names(sql_type) and str(name).upper() not in _names(sql_type)]
    if unknown:
        raise ValueError(f"{sql_type} has no field {unknown[0]}")
    return {field.name: column_value(given.get(field.name), field.type) for field in sql_type.fields}


def _names(sql_type: Struct) -> set[str]:
    return {field.name for field in sql_type.fields}


def _checked(value: Any, kind: type, sql_type: SqlType) -> Any:
    if not isinstance(value, kind):
        raise _unfit(value, sql_type)
    return value


def _unfit(value: Any, sql_type: SqlType) -> ValueError:
    return ValueError(f"Can't coerce {value!r} to {sql_type}")
