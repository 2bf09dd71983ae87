"""Comparison: which types may be compared, and as what.

Numbers compare as the wider of both. Text compares with times, dates and timestamps by being read as one; a BIGINT that
holds a row's time (ROWTIME, WINDOWSTART, WINDOWEND) compares with text in the same way, as milliseconds. NaN equals
itself and is larger than every number, as in Java and in Spark.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.coercion import common_type
from penstock.sql.expressions.nodes import Column, Expression
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART
from penstock.sql.types import BIGINT, BOOLEAN, DATE, DOUBLE, NULL, STRING, TIME, TIMESTAMP, Array, Map, SqlType, Struct

_EQUALITY = frozenset({"=", "<>", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"})
_TIME_COLUMNS = (ROWTIME, WINDOWSTART, WINDOWEND)


def comparison_type(sign: str, left: Expression, left_type: SqlType, right: Expression, right_type: SqlType) -> SqlType:
    """The type both sides are turned into. TIMESTAMP for a row's time against text: see `is_row_time`."""
    joined = _comparable(left, left_type, right, right_type)
    if joined is None or (sign not in _EQUALITY and not _has_order(joined)):
        raise SemanticError(f"Operator '{sign}' cannot be used to compare {left_type} and {right_type}.")
    return joined


def _comparable(left: Expression, left_type: SqlType, right: Expression, right_type: SqlType) -> SqlType | None:
    kinds = {left_type, right_type}
    if kinds == {DATE, TIMESTAMP}:
        return TIMESTAMP
    if STRING in kinds:
        other = right_type if left_type == STRING else left_type
        row_time = is_row_time(left, left_type) or is_row_time(right, right_type)
        return TIMESTAMP if row_time else (other if other in (STRING, TIME, DATE, TIMESTAMP) else _text_with(other))
    return common_type(left_type, right_type)


def _text_with(other: SqlType) -> SqlType | None:
    return STRING if other == NULL else None


def is_row_time(expression: Expression, sql_type: SqlType) -> bool:
    """A BIGINT of milliseconds that people compare with text. In joins the name has a prefix."""
    return sql_type == BIGINT and isinstance(expression, Column) and expression.name.endswith(_TIME_COLUMNS)


def _has_order(sql_type: SqlType) -> bool:
    return not isinstance(sql_type, Array | Map | Struct) and sql_type != BOOLEAN


_SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparator(sign: str, sql_type: SqlType) -> Callable[[Any, Any], bool]:
    """Compares two values of this type, neither of them null."""
    compare = _SIGNS[sign]
    if sql_type != DOUBLE:
        return compare
    return lambda left, right: compare(_double_key(left), _double_key(right))


def _double_key(value: float) -> tuple[bool, float]:
    return (True, 0.0) if math.isnan(value) else (False, value)
