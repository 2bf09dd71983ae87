"""MIN, MAX, TOPK, TOPKDISTINCT."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from penstock.sql.errors import SemanticError
from penstock.sql.functions.model import AggregateFunction
from penstock.sql.functions.signatures import signature, signatures
from penstock.sql.types import INTEGER, Array, Field, SqlType, Struct

_ORDERED = ("INTEGER", "BIGINT", "DOUBLE", "STRING", "BYTES", "TIME", "DATE", "TIMESTAMP")


def _extreme(name: str, choose: Callable[[Any, Any], Any], description: str) -> AggregateFunction:
    def better(one: Any, other: Any) -> Any:
        return other if one is None else one if other is None else choose(one, other)

    return AggregateFunction(
        name=name,
        description=description,
        signatures=(
            *signatures(*(f"value {each} -> {each}" for each in _ORDERED)),
            signature("value DECIMAL", lambda types: types[0]),
        ),
        initial=lambda: None,
        add=lambda state, arguments, _order: better(state, arguments[0]),
        merge=better,
        result=lambda state: state,
        spark=lambda arguments, _types, _order: f"{name.lower()}({arguments[0]})",
    )


MIN = _extreme("MIN", min, "The smallest of the values that are not null.")
MAX = _extreme("MAX", max, "The largest of the values that are not null.")

SORT_FIELD = "sort_col"


def other_field(index: int) -> str:
    """The name of a further column in the structs of TOPK."""
    return f"col{index}"


def _struct_of(types: Sequence[SqlType]) -> SqlType:
    """TOPK(value, other, ..., k): the last is k."""
    *columns, size = types
    if size != INTEGER or not columns:
        raise SemanticError(f"The last argument of TOPK is how many to keep, an INTEGER, not {size}.")
    names = [SORT_FIELD, *(other_field(index) for index in range(len(columns) - 1))]
    return Array(Struct(tuple(Field(name, each) for name, each in zip(names, columns, strict=True))))


def _spark_top(arguments: Sequence[str], _types: Sequence[SqlType], order: str) -> str:
    """A bounded heap in the state; of equal values the earlier rows stay."""
    value, *others, size = arguments
    kept = value
    if others:
        parts = [f"'{other_field(index)}', {other}" for index, other in enumerate(others)]
        kept = f"named_struct('{SORT_FIELD}', {value}, {', '.join(parts)})"
    return f"max_by({kept}, struct({value}, {_backwards(order)}), {size}) filter (where {value} is not null)"


def _backwards(order: str) -> str:
    """The order is a struct of numbers, written as quoted names: the same with every number negated."""
    names = re.findall(r"`(?:[^`]|``)*`", order)
    return f"struct({', '.join(f'- {name}' for name in names)})"


def _add_top(state: list[Any], arguments: Sequence[Any], _order: Any) -> list[Any]:
    value, *others, size = arguments
    if value is None:
        return state
    row = {SORT_FIELD: value} | {other_field(index): other for index, other in enumerate(others)}
    return _best(size, [*_kept(state), row if others else value])


def _kept(state: list[Any]) -> list[Any]:
    return state[1] if state else []


def _best(size: int, rows: list[Any]) -> list[Any]:
    return [size, sorted(rows, key=_sort_value, reverse=True)[:size]]


def _sort_value(row: Any) -> Any:
    return row[SORT_FIELD] if isinstance(row, dict) else row


def _merge_top(older: list[Any], newer: list[Any]) -> list[Any]:
    if not older or not newer:
        return older or newer
    return _best(older[0], _kept(older) + _kept(newer))


TOPK = AggregateFunction(
    name="TOPK",
    constants="last",
    description=(
        "The k largest values, largest first. With further columns it gives structs: `sort_col` is the value, `col0`, "
        "`col1`, ... the others of the same row. Rows whose value is null are left out."
    ),
    signatures=(
        signature("value T, k INTEGER -> ARRAY<T>"),
        signature("value T, others ANY...", _struct_of),
    ),
    initial=list,
    add=_add_top,
    merge=_merge_top,
    result=_kept,
    spark=_spark_top,
)


def _spark_top_distinct(arguments: Sequence[str], _types: Sequence[SqlType], _order: str) -> str:
    return f"slice(sort_array(collect_set({arguments[0]}), false), 1, {arguments[1]})"


def _add_top_distinct(state: list[Any], arguments: Sequence[Any], _order: Any) -> list[Any]:
    value, size = arguments
    if value is None or value in _kept(state):
        return state
    return _best(size, [*_kept(state), value])


def _merge_top_distinct(older: list[Any], newer: list[Any]) -> list[Any]:
    if not older or not newer:
        return older or newer
    return _best(older[0], _kept(older) + [value for value in _kept(newer) if value not in _kept(older)])


TOPKDISTINCT = AggregateFunction(
    name="TOPKDISTINCT",
    constants="last",
    description="The k largest different values, largest first. Rows whose value is null are left out.",
    signatures=signatures("value T, k INTEGER -> ARRAY<T>"),
    initial=list,
    add=_add_top_distinct,
    merge=_merge_top_distinct,
    result=_kept,
    spark=_spark_top_distinct,
)

FUNCTIONS = (MIN, MAX, TOPK, TOPKDISTINCT)
