"""Values as text, in the form Java gives them: what CAST(... AS STRING) writes."""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

from penstock.sql.types import BOOLEAN, DATE, DOUBLE, TIME, TIMESTAMP, Array, Decimal, Map, SqlType, Struct

_SPECIAL = {math.inf: "Infinity", -math.inf: "-Infinity"}


def text_form(sql_type: SqlType) -> Callable[[Any], str]:
    """The function that writes values of this type that are not null."""
    match sql_type:
        case Decimal():
            return decimal_text
        case Array(element):
            item = _nullable(element)
            return lambda items: "[" + ", ".join(map(item, items)) + "]"
        case Map(key, value):
            left, right = _nullable(key), _nullable(value)
            return lambda entries: "{" + ", ".join(f"{left(k)}={right(v)}" for k, v in entries.items()) + "}"
        case Struct(fields):
            forms = {field.name: text_form(field.type) for field in fields}
            return lambda struct: _struct_text(struct, forms)
    return _FORMS.get(sql_type, str)


def _nullable(sql_type: SqlType) -> Callable[[Any], str]:
    form = text_form(sql_type)
    return lambda value: "null" if value is None else form(value)


def _struct_text(struct: dict[str, Any], forms: dict[str, Callable[[Any], str]]) -> str:
    """Fields that are null do not appear."""
    shown = (f"{name}={form(struct[name])}" for name, form in forms.items() if struct.get(name) is not None)
    return "Struct{" + ",".join(shown) + "}"


def decimal_text(value: decimal.Decimal) -> str:
    return f"{value:f}"


def double_text(value: float) -> str:
    """Java's Double.toString: plain between 0.001 and 10 million, else with an exponent."""
    if math.isnan(value):
        return "NaN"
    if value in _SPECIAL:
        return _SPECIAL[value]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = f"{decimal.Decimal(repr(value)):f}"
        return plain if "." in plain else plain + ".0"
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    shown = "".join(map(str, digits)).rstrip("0") or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{shown[0]}.{shown[1:] or '0'}E{power}"


def timestamp_text(value: datetime.datetime) -> str:
    return value.astimezone(datetime.UTC).replace(tzinfo=None).isoformat(timespec="milliseconds")


def time_text(value: datetime.time) -> str:
    return value.strftime("%H:%M:%S" if value.second else "%H:%M")


_FORMS: dict[SqlType, Callable[[Any], str]] = {
    BOOLEAN: lambda value: "true" if value else "false",
    DOUBLE: double_text,
    TIMESTAMP: timestamp_text,
    DATE: datetime.date.isoformat,
    TIME: time_text,
}
