"""What a JSON value means for a column of a type, as ksqlDB has it.

Numbers may come as text; a fraction given for a whole number is cut; numbers, booleans, objects and arrays are taken
as text where text is declared; a time is a number (milliseconds, days, milliseconds of the day); bytes are base64;
names in objects are matched without regard to case unless the declaration quoted them in another case than upper.
A number that does not fit its type is an error of the record, never a wrapped number.
"""

from __future__ import annotations

import base64
import binascii
import decimal
import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from penstock.sql.formats.codec import BadValueError
from penstock.sql.types import Array, Decimal, Map, Scalar, SqlType, Struct

Read = Callable[[Any], Any]
"""A value that is not None, as the JSON parser gives it, to one that Arrow takes."""

TIMESTAMP_MIN_MS: Final = -62_135_596_800_000
TIMESTAMP_MAX_MS: Final = 253_402_300_799_999
"""From year 1 to year 9999: what Python and Spark can show."""
DATE_MIN_DAYS: Final = -719_162
DATE_MAX_DAYS: Final = 2_932_896
DAY_MS: Final = 86_400_000


def make_reader(sql_type: SqlType) -> Read:
    match sql_type:
        case Scalar(name):
            return _SCALARS[name]
        case Decimal(precision, scale):
            return _decimal_reader(precision, scale)
        case Array(element):
            return _array_reader(make_reader(element))
        case Map(key, value):
            return _map_reader(make_reader(key), make_reader(value))
        case Struct(fields):
            return _struct_reader({field.name: make_reader(field.type) for field in fields})


def pick_names(wanted: list[str], present: list[str]) -> list[str | None]:
    """The name under which each wanted column is present: any case for upper-case names, else exactly as declared."""
    folded = {name.upper(): name for name in present}
    exact = set(present)
    return [folded.get(name, name if name in exact else None) for name in wanted]


def _refuse(value: object, wanted: str) -> BadValueError:
    shown = repr(value)
    return BadValueError(f"cannot read {shown if len(shown) <= 60 else shown[:57] + '...'} as {wanted}")


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return value
    raise _refuse(value, "BOOLEAN")


def _whole(name: str, low: int, high: int) -> Read:
    def read(value: Any) -> int:
        number = _number(value, name)
        if low <= number <= high:
            return number
        raise BadValueError(f"{number} does not fit into {name}")

    return read


def _number(value: Any, name: str) -> int:
    kind = type(value)
    if kind is int:
        return int(value)
    if kind is float or kind is decimal.Decimal:
        if math.isfinite(value):
            return int(value)
    elif kind is str:
        try:
            return int(value)
        except ValueError:
            pass
    raise _refuse(value, name)


def _double(value: Any) -> float:
    if isinstance(value, int | float | decimal.Decimal | str) and not isinstance(value, bool):
        try:
            return float(value)
        except (ValueError, OverflowError):
            pass
    raise _refuse(value, "DOUBLE")


def _string(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list):
        return _as_text(value)
    return str(value)


_TEXT = msgspec.json.Encoder(decimal_format="number")


def _as_text(value: Any) -> str:
    return _TEXT.encode(value).decode()


def _bytes(value: Any) -> bytes:
    if isinstance(value, str):
        try:
            return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
    raise _refuse(value, "BYTES (base64)")


def _scaled(read: Read, factor: int) -> Read:
    return lambda value: read(value) * factor


def _null(value: Any) -> None:
    return None


_SCALARS: Final[dict[str, Read]] = {
    "BOOLEAN": _boolean,
    "INTEGER": _whole("INTEGER", -(1 << 31), (1 << 31) - 1),
    "BIGINT": _whole("BIGINT", -(1 << 63), (1 << 63) - 1),
    "DOUBLE": _double,
    "STRING": _string,
    "BYTES": _bytes,
    "TIME": _scaled(_whole("TIME", 0, DAY_MS - 1), 1_000_000),
    "DATE": _whole("DATE", DATE_MIN_DAYS, DATE_MAX_DAYS),
    "TIMESTAMP": _scaled(_whole("TIMESTAMP", TIMESTAMP_MIN_MS, TIMESTAMP_MAX_MS), 1_000),
    "NULL": _null,
}


def _decimal_reader(precision: int, scale: int) -> Read:
    unit = decimal.Decimal(1).scaleb(-scale)
    context = decimal.Context(prec=precision, traps=[decimal.Inexact, decimal.InvalidOperation])

    def read(value: Any) -> decimal.Decimal:
        if isinstance(value, int | float | decimal.Decimal | str) and not isinstance(value, bool):
            try:
                return decimal.Decimal(str(value)).quantize(unit, context=context)
            except decimal.DecimalException:
                pass
        raise _refuse(value, f"DECIMAL({precision}, {scale})")

    return read


def _array_reader(element: Read) -> Read:
    def read(value: Any) -> list[Any]:
        if isinstance(value, list):
            return [None if each is None else element(each) for each in value]
        raise _refuse(value, "ARRAY")

    return read


def _map_reader(key: Read, element: Read) -> Read:
    def read(value: Any) -> list[tuple[Any, Any]]:
        if isinstance(value, dict):
            return [(key(name), None if each is None else element(each)) for name, each in value.items()]
        raise _refuse(value, "MAP")

    return read


def _struct_reader(fields: dict[str, Read]) -> Read:
    wanted = list(fields)

    def read(value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _refuse(value, "STRUCT")
        found: dict[str, Any] = {}
        for name, present in zip(wanted, pick_names(wanted, list(value)), strict=True):
            given = None if present is None else value[present]
            found[name] = None if given is None else fields[name](given)
        return found

    return read
