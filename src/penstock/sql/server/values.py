"""Values of columns as REST shows them.

msgspec writes most of them as they are: decimals as numbers, bytes in base64, dates in ISO form. Timestamps
have milliseconds and no zone; times of day are as Java writes them, without the seconds or the milliseconds they do
not have; what JSON has no number for (NaN, infinities) is text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import datetime, time
from decimal import Decimal as PythonDecimal
from typing import Any, Final

import msgspec

from penstock.sql.types import DOUBLE, TIME, TIMESTAMP, Array, Decimal, Map, SqlType, Struct

Show = Callable[[Any], Any]

_encoder: Final = msgspec.json.Encoder(decimal_format="number")
encode: Final = _encoder.encode

_PLAIN_SCALE_MAX: Final = 6
"""Python writes small decimals of more places with an exponent: 0E-7."""


def show_row(types: Sequence[SqlType]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Makes the values of a row fit for `encode`."""
    shows = [(index, show) for index, show in enumerate(map(_show, types)) if show is not None]
    if not shows:
        return lambda columns: columns

    def shown(columns: Sequence[Any]) -> Sequence[Any]:
        values = list(columns)
        for index, show in shows:
            # A tombstone may have fewer columns than the query.
            if index < len(values) and values[index] is not None:
                values[index] = show(values[index])
        return values

    return shown


def _show(sql_type: SqlType) -> Show | None:
    """How to change a value of this type that is not null; None when it stays as it is."""
    match sql_type:
        case Array(element):
            return _each(_show(element))
        case Map(_, value):
            return _each_value(_show(value))
        case Decimal(_, scale) if scale > _PLAIN_SCALE_MAX:
            return _plain_decimal
        case Struct(fields):
            return _each_field({field.name: show for field in fields if (show := _show(field.type)) is not None})
        case _:
            return _SCALARS.get(sql_type)


def _each(show: Show | None) -> Show | None:
    return show and (lambda items: [None if item is None else show(item) for item in items])


def _each_value(show: Show | None) -> Show | None:
    return show and (lambda items: {key: None if item is None else show(item) for key, item in items.items()})


def _each_field(shows: dict[str, Show]) -> Show | None:
    if not shows:
        return None

    def shown(fields: dict[str, Any]) -> dict[str, Any]:
        return {
            name: shows[name](value) if name in shows and value is not None else value for name, value in fields.items()
        }

    return shown


def _timestamp(value: datetime) -> str:
    return value.replace(tzinfo=None).isoformat(timespec="milliseconds")


def _time(value: time) -> str:
    precision = "milliseconds" if value.microsecond >= 1_000 else "seconds" if value.second else "minutes"
    return value.replace(tzinfo=None).isoformat(timespec=precision)


def _plain_decimal(value: PythonDecimal) -> msgspec.Raw:
    return msgspec.Raw(f"{value:f}".encode())


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


_SCALARS: Final[dict[SqlType, Show]] = {TIMESTAMP: _timestamp, TIME: _time, DOUBLE: _double}
