"""STDDEV_SAMP, STDDEV_SAMPLE, CORRELATION."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from penstock.sql.functions.aggregate.counting import count_of, signed
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.functions.signatures import signatures
from penstock.sql.types import SqlType

_ONE_NUMBER = signatures("value INTEGER -> DOUBLE", "value BIGINT -> DOUBLE", "value DOUBLE -> DOUBLE")
_TWO_NUMBERS = signatures(
    "x INTEGER, y INTEGER -> DOUBLE", "x BIGINT, y BIGINT -> DOUBLE", "x DOUBLE, y DOUBLE -> DOUBLE"
)


def _add_spread(state: list[float], arguments: Sequence[Any], _order: Any) -> list[float]:
    """Welford's running count, mean and sum of squared distances."""
    value = arguments[0]
    if value is None:
        return state
    count, mean, squares = state
    delta = value - mean
    mean += delta / (count + 1)
    return [count + 1, mean, squares + delta * (value - mean)]


def _merge_spread(older: list[float], newer: list[float]) -> list[float]:
    count = older[0] + newer[0]
    if not count:
        return older
    delta = newer[1] - older[1]
    mean = older[1] + delta * newer[0] / count
    return [count, mean, older[2] + newer[2] + delta * delta * older[0] * newer[0] / count]


def _variance(state: list[float]) -> float:
    count, _mean, squares = state
    return squares / (count - 1) if count > 1 else 0.0


def _undo_variance(arguments: Sequence[str], _types: Sequence[SqlType], sign: str) -> str:
    value = f"cast({arguments[0]} as double)"
    count, total = count_of(arguments[0], sign), f"sum({signed(value, sign)})"
    squares = f"sum({signed(f'({value} * {value})', sign)})"
    variance = f"({squares} - {total} * {total} / {count}) / ({count} - 1)"
    return f"case when {count} > 1 then greatest({variance}, double('0')) else double('0') end"


def _spread(name: str, result: Callable[[float], float], text: str, description: str) -> AggregateFunction:
    return AggregateFunction(
        name=name,
        description=description,
        signatures=_ONE_NUMBER,
        initial=lambda: [0, 0.0, 0.0],
        add=_add_spread,
        merge=_merge_spread,
        result=lambda state: result(_variance(state)),
        spark=lambda arguments, _types, _order: text.format(f"coalesce(var_samp({arguments[0]}), double('0'))"),
        undo_spark=lambda arguments, types, sign: text.format(_undo_variance(arguments, types, sign)),
    )


STDDEV_SAMP = _spread(
    "STDDEV_SAMP",
    lambda variance: variance,
    "{0}",
    "The sample variance, the square of what the name says; kept for statements that know it. See STDDEV_SAMPLE.",
)
STDDEV_SAMPLE = _spread(
    "STDDEV_SAMPLE", math.sqrt, "sqrt({0})", "The sample standard deviation; 0.0 for fewer than two rows."
)


def _add_pair(state: list[float], arguments: Sequence[Any], _order: Any) -> list[float]:
    if None in arguments:
        return state
    x, y = map(float, arguments)
    return [total + each for total, each in zip(state, (1, x, y, x * x, y * y, x * y), strict=True)]


def _correlation(state: list[float]) -> float:
    count, x, y, xx, yy, xy = state
    spread = (count * xx - x * x) * (count * yy - y * y)
    return (count * xy - x * y) / math.sqrt(spread) if spread > 0 else math.nan


def _undo_correlation(arguments: Sequence[str], _types: Sequence[SqlType], sign: str) -> str:
    x, y = (f"cast({argument} as double)" for argument in arguments)
    both = f"{arguments[0]} is not null and {arguments[1]} is not null"

    def total(text: str) -> str:
        return f"sum(case when {both} then {signed(f'({text})', sign)} end)"

    count = total("double('1')")
    top = f"({count} * {total(f'{x} * {y}')} - {total(x)} * {total(y)})"
    left = f"({count} * {total(f'{x} * {x}')} - {total(x)} * {total(x)})"
    right = f"({count} * {total(f'{y} * {y}')} - {total(y)} * {total(y)})"
    return f"case when {left} * {right} > 0 then {top} / sqrt({left} * {right}) else double('NaN') end"


CORRELATION = AggregateFunction(
    name="CORRELATION",
    description=(
        "Pearson's correlation of two columns, from rows in which both are not null. NaN for fewer than two such rows, "
        "and when all values of a column are equal."
    ),
    signatures=_TWO_NUMBERS,
    initial=lambda: [0, 0.0, 0.0, 0.0, 0.0, 0.0],
    add=_add_pair,
    merge=lambda older, newer: [one + other for one, other in zip(older, newer, strict=True)],
    result=_correlation,
    spark=lambda arguments, _types, _order: f"coalesce(corr({arguments[0]}, {arguments[1]}), double('NaN'))",
    undo_spark=_undo_correlation,
)

FUNCTIONS = (STDDEV_SAMP, STDDEV_SAMPLE, CORRELATION)
