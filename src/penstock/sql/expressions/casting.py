"""CAST on Python values: which types turn into which, and how.

`caster(source, target)` gives the function for values that are not null; it raises ValueError for a value that does not
fit. Numbers narrow as in Java: integers wrap, doubles saturate. Decimals round half up and must fit. Text is trimmed.
"""

from __future__ import annotations

import base64
import binascii
import datetime
import decimal
import math
import re
from collections.abc import Callable
from typing import Any

from penstock.sql.expressions.coercion import is_number
from penstock.sql.expressions.text_form import text_form
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
    Map,
    SqlType,
    Struct,
)

Caster = Callable[[Any], Any]

BLANKS = "".join(map(chr, range(0x21)))
"""What Java trims: control characters and spaces."""

INTEGER_TEXT = r"^[+-]?[0-9]+$"
DOUBLE_TEXT = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
DATE_TEXT = r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2})?)?$"
TIME_TEXT = r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,9})?)?$"
TIMESTAMP_TEXT = (
    r"^[0-9]{4}(-[0-9]{2}(-[0-9]{2}(T([0-9]{2}(:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?)?)?"
    r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)?)?)?)?$"
)
"""The texts that CAST reads, as regular expressions that mean the same in Python and in Java."""

_BITS: dict[SqlType, int] = {INTEGER: 32, BIGINT: 64}
_ZONE = re.compile(r"(Z|[+-][0-9]{2}(:?[0-9]{2})?)$")


def can_cast(source: SqlType, target: SqlType) -> bool:
    return caster(source, target) is not None


def caster(source: SqlType, target: SqlType) -> Caster | None:
    if source in (target, NULL):
        return _same
    if is_number(source) and is_number(target):
        return fitter(target)
    if target == STRING:
        return None if source == BYTES else text_form(source)
    match source, target:
        case Array(one), Array(other):
            return _array_caster(one, other)
        case Map(), Map():
            return _map_caster(source, target)
        case Struct(), Struct():
            return _struct_caster(source, target)
    if source == STRING:
        return fitter(target, parse_decimal) if isinstance(target, Decimal) else _FROM_TEXT.get(target)
    return _BETWEEN_TIMES.get((source, target))


def _same(value: Any) -> Any:
    return value


def fitter(target: SqlType, convert: Callable[[Any], Any] = _same) -> Caster:
    """Turns a number into the type of its result: integers wrap, doubles saturate, decimals round and must fit."""
    if target in _BITS:
        bits = _BITS[target]
        return lambda value: _to_integer(value, bits)
    if target == DOUBLE:
        return float
    if isinstance(target, Decimal):
        return lambda value: to_decimal(convert(value), target)
    return _same


def _to_integer(value: Any, bits: int) -> int:
    limit = 1 << (bits - 1)
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        return int(max(-limit, min(limit - 1, value))) if abs(value) < 2.0**63 else (limit - 1 if value > 0 else -limit)
    whole = int(value)
    return whole if -limit <= whole < limit else (whole + limit) % (2 * limit) - limit


_CONTEXT = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)


def to_decimal(value: Any, target: Decimal) -> decimal.Decimal:
    number = decimal.Decimal(repr(value)) if isinstance(value, float) else decimal.Decimal(value)
    if not number.is_finite():
        raise ValueError(f"{value} is no {target}")
    rounded = number.quantize(decimal.Decimal(1).scaleb(-target.scale), context=_CONTEXT)
    if rounded and rounded.adjusted() >= target.precision - target.scale:
        raise ValueError(f"{value} does not fit into {target}")
    return rounded


def parse_decimal(text: str) -> decimal.Decimal:
    if not re.match(DOUBLE_TEXT, text.strip(BLANKS)):
        raise ValueError(f"'{text}' is no number")
    return decimal.Decimal(text.strip(BLANKS))


def _parse_integer(target: SqlType) -> Caster:
    limit = 1 << (_BITS[target] - 1)

    def parse(text: str) -> int:
        if not re.match(INTEGER_TEXT, text.strip(BLANKS)):
            raise ValueError(f"'{text}' is no {target}")
        value = int(text.strip(BLANKS))
        if not -limit <= value < limit:
            raise ValueError(f"{text} does not fit into {target}")
        return value

    return parse


def _parse_double(text: str) -> float:
    if not re.match(DOUBLE_TEXT, text.strip(BLANKS)):
        raise ValueError(f"'{text}' is no DOUBLE")
    value = float(text.strip(BLANKS))
    if math.isinf(value):
        raise ValueError(f"{text} does not fit into DOUBLE")
    return value


def _parse_boolean(text: str) -> bool:
    return text.strip(BLANKS).lower() == "true"


def parse_date(text: str) -> datetime.date:
    if not re.match(DATE_TEXT, text.strip(BLANKS)):
        raise ValueError(f"'{text}' is no date of the form yyyy-MM-dd")
    return datetime.date.fromisoformat(_complete_date(text.strip(BLANKS)))


def _complete_date(text: str) -> str:
    return text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text


def parse_time(text: str) -> datetime.time:
    if not re.match(TIME_TEXT, text.strip(BLANKS)):
        raise ValueError(f"'{text}' is no time of the form HH:mm:ss")
    whole, _, fraction = text.strip(BLANKS).partition(".")
    return datetime.time.fromisoformat(f"{whole}.{fraction[:3]:0<3}" if fraction else whole)


def parse_timestamp(text: str) -> datetime.datetime:
    """Parts may be left off from the right: `2020`, `2020-01`, `2020-01-02T10:30+01:00`."""
    stripped = text.strip(BLANKS)
    if not re.match(TIMESTAMP_TEXT, stripped):
        raise ValueError(f"'{text}' is no timestamp of the form yyyy-MM-ddTHH:mm:ss.SSS")
    date, _, rest = stripped.partition("T")
    zone = _ZONE.search(rest)
    time = rest[: zone.start()] if zone else rest
    whole = time + "00:00:00.000"[len(time) :]
    stamp = datetime.datetime.fromisoformat(f"{_complete_date(date)}T{whole}{zone.group() if zone else 'Z'}")
    return stamp.astimezone(datetime.UTC)


def _parse_bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text.strip(BLANKS), validate=True)
    except binascii.Error as error:
        raise ValueError(f"'{text}' is no base64: {error}") from error


def _midnight(date: datetime.date) -> datetime.datetime:
    return datetime.datetime(date.year, date.month, date.day, tzinfo=datetime.UTC)


_FROM_TEXT: dict[SqlType, Caster] = {
    INTEGER: _parse_integer(INTEGER),
    BIGINT: _parse_integer(BIGINT),
    DOUBLE: _parse_double,
    BOOLEAN: _parse_boolean,
    DATE: parse_date,
    TIME: parse_time,
    TIMESTAMP: parse_timestamp,
    BYTES: _parse_bytes,
}

_BETWEEN_TIMES: dict[tuple[SqlType, SqlType], Caster] = {
    (TIMESTAMP, TIME): lambda stamp: stamp.time(),
    (TIMESTAMP, DATE): lambda stamp: stamp.date(),
    (DATE, TIMESTAMP): _midnight,
}


def null_safe(cast: Caster) -> Caster:
    return lambda value: None if value is None else cast(value)


def _for_part(cast: Caster) -> Caster:
    """A part that does not fit is null, and the rest stays."""

    def apply(value: Any) -> Any:
        try:
            return None if value is None else cast(value)
        except (ValueError, ArithmeticError):
            return None

    return apply


def _array_caster(one: SqlType, other: SqlType) -> Caster | None:
    element = caster(one, other)
    if element is None:
        return None
    cast = _for_part(element)
    return lambda items: [cast(item) for item in items]


def _map_caster(source: Map, target: Map) -> Caster | None:
    """An entry whose key does not fit is left out."""
    key, value = caster(source.key, target.key), caster(source.value, target.value)
    if key is None or value is None:
        return None
    cast_key, cast_value = _for_part(key), _for_part(value)

    def apply(entries: dict[Any, Any]) -> dict[Any, Any]:
        pairs = ((cast_key(name), cast_value(each)) for name, each in entries.items())
        return {name: each for name, each in pairs if name is not None}

    return apply


def _struct_caster(source: Struct, target: Struct) -> Caster | None:
    """Fields the target lacks are dropped; those the source lacks are null."""
    casts: dict[str, Caster] = {}
    for field in target.fields:
        own = source.field(field.name)
        cast = caster(own.type, field.type) if own else _same
        if cast is None:
            return None
        casts[field.name] = _for_part(cast)
    return lambda struct: {name: cast(struct.get(name)) for name, cast in casts.items()}
