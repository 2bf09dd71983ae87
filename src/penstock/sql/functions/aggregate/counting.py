"""COUNT, COUNT_DISTINCT, SUM, AVG."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.sql.expressions.spark_types import spark_type
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.functions.signatures import signature, signatures
from penstock.sql.types import SqlType

_DISTINCT_ERROR = 0.02


def signed(text: str, sign: str) -> str:
    """The value, or what takes it back."""
    return f"(case when {sign} > 0 then {text} else - {text} end)"


def count_of(text: str, sign: str) -> str:
    """How many rows have this value, with those taken back."""
    return f"coalesce(sum(case when {text} is not null then cast({sign} as bigint) end), 0L)"


def _spark_count(arguments: Sequence[str], _types: Sequence[SqlType], _order: str) -> str:
    return f"count({arguments[0]})" if arguments else "count(1)"


def _undo_count(arguments: Sequence[str], _types: Sequence[SqlType], sign: str) -> str:
    return count_of(arguments[0] if arguments else "1", sign)


def _add_count(state: int, arguments: Sequence[Any], _order: Any) -> int:
    return state if None in arguments else state + 1


COUNT = AggregateFunction(
    name="COUNT",
    description="Counts rows: all of them with `*`, else those in which the argument is not null.",
    signatures=signatures("-> BIGINT", "value ANY -> BIGINT"),
    initial=int,
    add=_add_count,
    merge=lambda older, newer: older + newer,
    result=lambda state: state,
    spark=_spark_count,
    undo_spark=_undo_count,
)


def _add_distinct(state: dict[str, int], arguments: Sequence[Any], _order: Any) -> dict[str, int]:
    if arguments[0] is not None:
        state[repr(arguments[0])] = 1
    return state


COUNT_DISTINCT = AggregateFunction(
    name="COUNT_DISTINCT",
    description="The number of different values, estimated with a standard error of 2 percent. Nulls do not count.",
    signatures=signatures("value ANY -> BIGINT"),
    initial=dict,
    add=_add_distinct,
    merge=lambda older, newer: {**older, **newer},
    result=len,
    spark=lambda arguments, _types, _order: f"approx_count_distinct({arguments[0]}, {_DISTINCT_ERROR})",
)


def _total(text: str, sql_type: SqlType) -> str:
    return f"cast(coalesce(sum({text}), 0) as {spark_type(sql_type)})"


def _add_sum(state: Any, arguments: Sequence[Any], _order: Any) -> Any:
    value = arguments[0]
    return state if value is None else state + value


SUM = AggregateFunction(
    name="SUM",
    description="The sum of the values that are not null, 0 if there are none; it has the type of the argument.",
    signatures=(
        *signatures("value INTEGER -> INTEGER", "value BIGINT -> BIGINT", "value DOUBLE -> DOUBLE"),
        signature("value DECIMAL", lambda types: types[0]),
    ),
    initial=int,
    add=_add_sum,
    merge=lambda older, newer: older + newer,
    result=lambda state: state,
    spark=lambda arguments, types, _order: _total(arguments[0], types[0]),
    undo_spark=lambda arguments, types, sign: _total(signed(arguments[0], sign), types[0]),
)


def _add_average(state: list[Any], arguments: Sequence[Any], _order: Any) -> list[Any]:
    value = arguments[0]
    return state if value is None else [state[0] + value, state[1] + 1]


def _undo_average(arguments: Sequence[str], _types: Sequence[SqlType], sign: str) -> str:
    total = f"sum(cast({signed(arguments[0], sign)} as double))"
    return f"coalesce({total} / nullif({count_of(arguments[0], sign)}, 0L), double('0'))"


AVG = AggregateFunction(
    name="AVG",
    description="The average of the values that are not null, 0.0 if there are none.",
    signatures=signatures("value INTEGER -> DOUBLE", "value BIGINT -> DOUBLE", "value DOUBLE -> DOUBLE"),
    initial=lambda: [0, 0],
    add=_add_average,
    merge=lambda older, newer: [older[0] + newer[0], older[1] + newer[1]],
    result=lambda state: state[0] / state[1] if state[1] else 0.0,
    spark=lambda arguments, _types, _order: f"coalesce(avg({arguments[0]}), double('0'))",
    undo_spark=_undo_average,
)

FUNCTIONS = (COUNT, COUNT_DISTINCT, SUM, AVG)
