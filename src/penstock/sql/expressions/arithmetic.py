"""Arithmetic: the type of a result, and the result.

Integers divide towards zero, and a remainder has the sign of the dividend, as in Java. Decimals grow by Spark's rules,
so that nothing is lost as long as the precision allows.
"""

from __future__ import annotations

import decimal
import math
import operator
from collections.abc import Callable
from typing import Any

from penstock.sql.expressions.coercion import as_decimal, bounded_decimal
from penstock.sql.types import NULL, Decimal, SqlType


def number_or(one: SqlType, other: SqlType) -> SqlType:
    """A bare NULL takes the type of the other side."""
    return other if one == NULL else one


def decimal_result(sign: str, left: SqlType, right: SqlType) -> Decimal:
    one, two = as_decimal(number_or(left, right)), as_decimal(number_or(right, left))
    whole = max(one.precision - one.scale, two.precision - two.scale)
    scale = max(one.scale, two.scale)
    if sign in "+-":
        return bounded_decimal(whole + scale + 1, scale)
    if sign == "*":
        return bounded_decimal(one.precision + two.precision + 1, one.scale + two.scale)
    if sign == "/":
        scale = max(6, one.scale + two.precision + 1)
        return bounded_decimal(one.precision - one.scale + two.scale + scale, scale)
    return bounded_decimal(min(one.precision - one.scale, two.precision - two.scale) + scale, scale)


def _divide(one: Any, two: Any) -> Any:
    """Integers divide towards zero."""
    if two == 0:
        raise ZeroDivisionError("division by zero")
    if isinstance(one, float):
        return one / two
    quotient = abs(one) // abs(two)
    return quotient if (one < 0) == (two < 0) else -quotient


def _remainder(one: Any, two: Any) -> Any:
    """The remainder has the sign of the dividend, as in Java."""
    if two == 0:
        raise ZeroDivisionError("division by zero")
    return math.fmod(one, two) if isinstance(one, float) else one - two * _divide(one, two)


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divide,
    "%": _remainder,
}

_DECIMALS = decimal.Context(prec=100, rounding=decimal.ROUND_HALF_UP)


_DECIMAL_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": _DECIMALS.add,
    "-": _DECIMALS.subtract,
    "*": _DECIMALS.multiply,
    "/": _DECIMALS.divide,
    "%": _DECIMALS.remainder,
}


def calculator(sign: str, result: SqlType) -> Callable[[Any, Any], Any]:
    """Computes on values that are not null, before the result is fitted into its type."""
    if not isinstance(result, Decimal):
        return _OPERATORS[sign]
    calculate = _DECIMAL_OPERATORS[sign]
    return lambda one, two: calculate(decimal.Decimal(one), decimal.Decimal(two))
