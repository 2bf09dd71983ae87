"""Functions that keep the type of their number: ABS, CEIL, FLOOR, ROUND, TRUNC, SIGN, GREATEST, LEAST.

ROUND goes to the nearer value and, between two, upwards: -1.5 becomes -1. On doubles it works on the decimal digits one
sees, through a decimal of twenty places; beyond `_WHOLE_FROM` every double is a whole number.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any

from penstock.sql.expressions.coercion import as_decimal, common_number
from penstock.sql.expressions.spark_types import integer_value, spark_type
from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.functions.signatures import signature
from penstock.sql.types import DOUBLE, Decimal, SqlType

_mathematical = partial(scalar, "MATHEMATICAL")

_KEEPING = ("value INTEGER -> INTEGER", "value BIGINT -> BIGINT", "value DOUBLE -> DOUBLE")
_SAME_DECIMAL = signature("value DECIMAL", lambda types: types[0])
_WHOLE_FROM = 2.0**52
_WIDE = decimal.Context(prec=400)
_EXACT = "decimal(38,20)"
_EXACT_UP_TO = "1E17"
_NATIVE_SCALE_MAX = 15


def _whole_decimal(types: Sequence[SqlType]) -> SqlType:
    """The type of a decimal without its places."""
    value = as_decimal(types[0])
    return Decimal(max(1, value.precision - value.scale), 0)


def _to_places(value: decimal.Decimal, places: int, rounding: str) -> decimal.Decimal:
    unit = decimal.Decimal(1).scaleb(-places)
    return value.quantize(unit, rounding=rounding, context=_WIDE)


def _half_up(value: decimal.Decimal, places: int) -> decimal.Decimal:
    """To the nearer value; half way it goes up, towards the positive."""
    return _to_places(value, places, decimal.ROUND_HALF_UP if value > 0 else decimal.ROUND_HALF_DOWN)


def _truncated(value: decimal.Decimal, places: int) -> decimal.Decimal:
    return _to_places(value, places, decimal.ROUND_DOWN)


def _round_double(value: float) -> float:
    return math.floor(value + 0.5) if abs(value) < _WHOLE_FROM else value


def _rounding(
    on_double: Callable[[float], float], on_decimal: Callable[[decimal.Decimal, int], decimal.Decimal]
) -> Callable[..., Any]:
    def apply(value: Any, places: int | None = None) -> Any:
        if isinstance(value, decimal.Decimal):
            return on_decimal(value, places or 0)
        if isinstance(value, float):
            return on_double(value) if places is None else float(on_decimal(_digits(value), places))
        return value

    return apply


def _digits(value: float) -> decimal.Decimal:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no decimal places")
    return decimal.Decimal(repr(value))


def _integral(on_double: Callable[[float], float], rounding: str) -> Callable[[Any], Any]:
    """CEIL and FLOOR."""

    def apply(value: Any) -> Any:
        if isinstance(value, decimal.Decimal):
            return _to_places(value, 0, rounding)
        return float(on_double(value)) if isinstance(value, float) and abs(value) < _WHOLE_FROM else value

    return apply


def _spark_integral(function: str) -> Callable[[Sequence[str], Sequence[SqlType]], str]:
    def form(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
        (value,), (sql_type,) = arguments, types
        if sql_type == DOUBLE:
            whole = f"cast({function}({value}) as double)"
            return f"case when abs({value}) < double('{_WHOLE_FROM}') then {whole} else {value} end"
        return f"cast({function}({value}) as {spark_type(sql_type)})" if isinstance(sql_type, Decimal) else value

    return form


def _spark_round(arguments: Sequence[str], types: Sequence[SqlType]) -> str | None:
    if len(arguments) == 1:
        return _spark_round_whole(arguments[0], types[0])
    return _spark_places(arguments, types, _spark_half_up)


def _spark_round_whole(value: str, sql_type: SqlType) -> str:
    if sql_type == DOUBLE:
        nearest = f"floor({value} + double('0.5'))"
        return f"case when abs({value}) < double('{_WHOLE_FROM}') then {nearest} else cast({value} as bigint) end"
    if isinstance(sql_type, Decimal):
        return f"cast({_spark_half_up(value, 0)} as {spark_type(_whole_decimal([sql_type]))})"
    return f"cast({value} as bigint)"


def _spark_half_up(value: str, places: int) -> str:
    half = f"cast('{decimal.Decimal(5).scaleb(-places - 1):f}' as decimal({places + 1},{places + 1}))"
    return f"floor({value} + {half}, {places})"


def _spark_truncated(value: str, places: int) -> str:
    return f"case when {value} >= 0 then floor({value}, {places}) else ceil({value}, {places}) end"


def _spark_places(
    arguments: Sequence[str], types: Sequence[SqlType], to_places: Callable[[str, int], str]
) -> str | None:
    """The places must be a number in the statement: Spark wants them before it runs."""
    value, places = arguments[0], integer_value(arguments[1])
    if places is None or not 0 <= places <= _NATIVE_SCALE_MAX:
        return None
    if isinstance(types[0], Decimal):
        return value if places >= types[0].scale else f"cast({to_places(value, places)} as {spark_type(types[0])})"
    exact = to_places(f"cast({value} as {_EXACT})", places)
    near = f"when abs({value}) < double('{_EXACT_UP_TO}') then cast({exact} as double)"
    return f"case {near} when abs({value}) < double('Infinity') then {value} end"


def _spark_trunc(arguments: Sequence[str], types: Sequence[SqlType]) -> str | None:
    if len(arguments) == 2:
        return _spark_places(arguments, types, _spark_truncated)
    if isinstance(types[0], Decimal):
        return f"cast({_spark_truncated(arguments[0], 0)} as {spark_type(_whole_decimal(types))})"
    return f"cast({arguments[0]} as bigint)"


_TO_PLACES = (
    "value INTEGER -> BIGINT",
    "value BIGINT -> BIGINT",
    "value DOUBLE -> BIGINT",
    signature("value DECIMAL", _whole_decimal),
    "value DOUBLE, places INTEGER -> DOUBLE",
    signature("value DECIMAL, places INTEGER", lambda types: types[0]),
)


def _sign(value: Any) -> int:
    return int(value > 0) - int(value < 0)


_ORDERED = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "TIME", "DATE", "TIMESTAMP")


def _widest(types: Sequence[SqlType]) -> SqlType:
    return reduce(lambda one, other: common_number(one, other) or one, types)


def _extreme(name: str, choose: Callable[..., Any], description: str) -> ScalarFunction:
    def apply(*values: Any) -> Any:
        return choose((value for value in values if value is not None), key=_order, default=None)

    def form(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
        text = f"{name.lower()}({', '.join(arguments)})" if len(arguments) > 1 else arguments[0]
        return f"cast({text} as {spark_type(_widest(types))})" if isinstance(types[0], Decimal) else text

    return _mathematical(
        name,
        description,
        *(f"value {each}, others {each}... -> {each}" for each in _ORDERED),
        signature("value DECIMAL, others DECIMAL...", _widest),
        python=apply,
        spark=form,
        strict=False,
    )


def _order(value: Any) -> Any:
    """NaN is above every number."""
    return (math.isnan(value), value) if isinstance(value, float) else value


FUNCTIONS = (
    _mathematical("ABS", "The number without its sign.", *_KEEPING, _SAME_DECIMAL, python=abs, spark="abs({0})"),
    _mathematical(
        "CEIL",
        "The smallest whole number that is not smaller.",
        *_KEEPING,
        _SAME_DECIMAL,
        python=_integral(math.ceil, decimal.ROUND_CEILING),
        spark=_spark_integral("ceil"),
    ),
    _mathematical(
        "FLOOR",
        "The largest whole number that is not larger.",
        *_KEEPING,
        _SAME_DECIMAL,
        python=_integral(math.floor, decimal.ROUND_FLOOR),
        spark=_spark_integral("floor"),
    ),
    _mathematical(
        "ROUND",
        "The nearest whole number, or the nearest with so many decimal places; between two it goes up, towards the "
        "positive: ROUND(-1.5) is -1. Negative places round before the point.",
        *_TO_PLACES,
        python=_rounding(_round_double, _half_up),
        spark=_spark_round,
    ),
    _mathematical(
        "TRUNC",
        "The number without its decimal places, or with so many of them; towards zero. Negative places cut before the "
        "point.",
        *_TO_PLACES,
        python=_rounding(lambda value: value, _truncated),
        spark=_spark_trunc,
    ),
    _mathematical(
        "SIGN",
        "-1, 0 or 1: the sign of the number.",
        "value INTEGER -> INTEGER",
        "value BIGINT -> INTEGER",
        "value DOUBLE -> INTEGER",
        python=_sign,
        spark="cast(signum({0}) as int)",
    ),
    _extreme("GREATEST", max, "The largest of the values that are not null."),
    _extreme("LEAST", min, "The smallest of the values that are not null."),
)
