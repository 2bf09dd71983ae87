"""Functions of doubles: powers, logarithms, trigonometry. Outside their domain NaN or infinity, as in Java."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.scalar.declaring import scalar

_mathematical = partial(scalar, "MATHEMATICAL")


def _total(function: Callable[..., float]) -> Callable[..., float]:
    """Python raises where Java gives NaN or infinity."""

    def total(*values: float) -> float:
        try:
            return function(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return total


def _of_one(name: str, description: str, python: Callable[[float], float], spark: str) -> ScalarFunction:
    return _mathematical(name, description, "value DOUBLE -> DOUBLE", python=_total(python), spark=spark)


def _logarithm(value: float) -> float:
    return -math.inf if value == 0 else math.log(value)


def _logarithm_to(base: float, value: float) -> float:
    if base <= 0 or base == 1:
        return math.nan
    return _total(_logarithm)(value) / math.log(base)


def _any_logarithm(*arguments: float) -> float:
    return _logarithm(*arguments) if len(arguments) == 1 else _logarithm_to(*arguments)


def _spark_logarithm(text: str) -> str:
    return (
        f"case when {text} > 0 then ln({text}) when {text} = 0 then double('-Infinity')"
        f" when {text} is not null then double('NaN') end"
    )


def _spark_any_logarithm(arguments: Any, _types: Any) -> str:
    if len(arguments) == 1:
        return _spark_logarithm(arguments[0])
    base, value = arguments
    quotient = f"({_spark_logarithm(value)}) / ln({base})"
    wrong = f"when {value} is not null and ({base} <= 0 or {base} = 1) then double('NaN')"
    return f"case {wrong} when {value} is not null then {quotient} end"


def _power(base: float, exponent: float) -> float:
    if base == 0 and exponent < 0:
        return math.inf
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf


def _sinh(value: float) -> float:
    try:
        return math.sinh(value)
    except OverflowError:
        return math.copysign(math.inf, value)


def _cotangent(value: float) -> float:
    tangent = math.tan(value)
    return math.copysign(math.inf, tangent) if tangent == 0 else 1 / tangent


FUNCTIONS = (
    _of_one("ACOS", "The angle whose cosine this is, in radians.", math.acos, "acos({0})"),
    _of_one("ASIN", "The angle whose sine this is, in radians.", math.asin, "asin({0})"),
    _of_one("ATAN", "The angle whose tangent this is, in radians.", math.atan, "atan({0})"),
    _mathematical(
        "ATAN2",
        "The angle of the point (x, y), in radians.",
        "y DOUBLE, x DOUBLE -> DOUBLE",
        python=math.atan2,
        spark="atan2({0}, {1})",
    ),
    _of_one("CBRT", "The cube root.", math.cbrt, "cbrt({0})"),
    _of_one("COS", "The cosine of an angle in radians.", math.cos, "cos({0})"),
    _of_one("COSH", "The hyperbolic cosine.", math.cosh, "cosh({0})"),
    _of_one("COT", "The cotangent of an angle in radians; infinity at 0.", _cotangent, "cot({0})"),
    _of_one("DEGREES", "Radians in degrees.", math.degrees, "degrees({0})"),
    _of_one("EXP", "e to the power of the value.", math.exp, "exp({0})"),
    _of_one("LN", "The natural logarithm: -Infinity at 0, NaN below.", _logarithm, _spark_logarithm("{0}")),
    _mathematical(
        "LOG",
        "The natural logarithm of the value, or that to the given base: -Infinity for 0; NaN for negative values and "
        "for a base that is 1, 0 or negative.",
        "value DOUBLE -> DOUBLE",
        "base DOUBLE, value DOUBLE -> DOUBLE",
        python=_total(_any_logarithm),
        spark=_spark_any_logarithm,
    ),
    _mathematical("PI", "The number pi.", "-> DOUBLE", python=lambda: math.pi, spark="pi()"),
    _mathematical(
        "POWER",
        "The base to the power of the exponent; Infinity when it is too large.",
        "base DOUBLE, exponent DOUBLE -> DOUBLE",
        python=_total(_power),
        spark="power({0}, {1})",
    ),
    _of_one("RADIANS", "Degrees in radians.", math.radians, "radians({0})"),
    _mathematical(
        "RANDOM",
        "A number between 0.0 and 1.0 by chance, another one for each row.",
        "-> DOUBLE",
        python=random.random,
        spark="rand()",
    ),
    _of_one("SIN", "The sine of an angle in radians.", math.sin, "sin({0})"),
    _of_one("SINH", "The hyperbolic sine.", _sinh, "sinh({0})"),
    _of_one("SQRT", "The square root; NaN for negative values.", math.sqrt, "sqrt({0})"),
    _of_one("TAN", "The tangent of an angle in radians.", math.tan, "tan({0})"),
    _of_one("TANH", "The hyperbolic tangent.", math.tanh, "tanh({0})"),
)
