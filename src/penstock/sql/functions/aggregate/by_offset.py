"""EARLIEST_BY_OFFSET and LATEST_BY_OFFSET: one value, or the first or last N."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.sql.functions.model import AggregateFunction
from penstock.sql.functions.signatures import signatures
from penstock.sql.types import BOOLEAN, INTEGER, SqlType

_SIGNATURES = signatures(
    "value T -> T",
    "value T, ignoreNulls BOOLEAN -> T",
    "value T, n INTEGER -> ARRAY<T>",
    "value T, n INTEGER, ignoreNulls BOOLEAN -> ARRAY<T>",
)


def _text(arguments: Sequence[str], types: Sequence[SqlType], order: str, latest: bool) -> str:
    value, *options = arguments
    size = options[0] if INTEGER in types[1:2] else None
    keeps_nulls = BOOLEAN in types[1:] and options[-1] == "false"
    condition = "" if keeps_nulls else f" filter (where {value} is not null)"
    choose = "max_by" if latest else "min_by"
    if size is None:
        return f"{choose}({value}, {order}){condition}"
    # A list of structs, or Spark would leave its nulls out.
    rows = f"{choose}(struct({value} as value), {order}, {size}){condition}"
    values = f"transform({rows}, `lambda row` -> `lambda row`.value)"
    return f"coalesce({f'reverse({values})' if latest else values}, array())"


def _add(latest: bool) -> Any:
    def add(state: list[Any], arguments: Sequence[Any], order: Any) -> list[Any]:
        value, *options = arguments
        numbers = [each for each in options if not isinstance(each, bool)]
        ignore_nulls = all(each for each in options if isinstance(each, bool))
        if value is None and ignore_nulls:
            return state or [numbers[0] if numbers else None, []]
        rows = [*(state[1] if state else []), [order, value]]
        return _chosen(numbers[0] if numbers else None, rows, latest)

    return add


def _chosen(size: int | None, rows: list[Any], latest: bool) -> list[Any]:
    ordered = sorted(rows, key=lambda row: row[0])
    count = 1 if size is None else size
    return [size, ordered[-count:] if latest else ordered[:count]]


def _merge(latest: bool) -> Any:
    def merge(older: list[Any], newer: list[Any]) -> list[Any]:
        if not older or not newer:
            return older or newer
        return _chosen(older[0], older[1] + newer[1], latest)

    return merge


def _result(state: list[Any]) -> Any:
    if not state:
        return None
    values = [value for _order, value in state[1]]
    if state[0] is None:
        return values[0] if values else None
    return values


def _by_offset(name: str, latest: bool, description: str) -> AggregateFunction:
    return AggregateFunction(
        name=name,
        description=description + " Nulls are passed over, unless `ignoreNulls` is false; an array may be empty.",
        signatures=_SIGNATURES,
        constants="rest",
        initial=list,
        add=_add(latest),
        merge=_merge(latest),
        result=_result,
        spark=lambda arguments, types, order: _text(arguments, types, order, latest),
    )


FUNCTIONS = (
    _by_offset("EARLIEST_BY_OFFSET", False, "The value of the first row; with `n` an array of the first n, in order."),
    _by_offset("LATEST_BY_OFFSET", True, "The value of the last row; with `n` an array of the last n, in order."),
)
