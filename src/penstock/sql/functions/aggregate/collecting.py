"""COLLECT_LIST, COLLECT_SET, HISTOGRAM.

Spark's own lists leave nulls out and have no order, so they hold structs of the row's order and the value. Where rows
are taken back (tables) a list keeps what was added and what was taken back, and the result is the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from penstock.sql.functions.model import AggregateFunction
from penstock.sql.functions.signatures import signatures
from penstock.sql.types import SqlType

_BY_ORDER = (
    "(`lambda one`, `lambda other`) -> case when `lambda one`.`order` < `lambda other`.`order` then -1"
    " when `lambda one`.`order` > `lambda other`.`order` then 1 else 0 end"
)
_HISTOGRAM_ENTRIES_MAX = 1000


def in_order(value: str, order: str, condition: str = "true") -> str:
    """The values of the rows, in the order of the rows."""
    rows = f"collect_list(struct({order} as `order`, {value} as value)) filter (where {condition})"
    return f"transform(array_sort({rows}, {_BY_ORDER}), `lambda row` -> `lambda row`.value)"


def remaining(value: str, sign: str) -> str:
    """What was added and not taken back, as structs of one field `value`."""
    row = f"struct({value} as value)"
    added = f"collect_list({row}) filter (where {sign} > 0)"
    taken = f"collect_list({row}) filter (where {sign} < 0)"
    place = "array_position(`lambda kept`, `lambda gone`)"
    without = (
        f"case when {place} = 0 then `lambda kept` else concat(slice(`lambda kept`, 1, cast({place} - 1 as int)),"
        f" slice(`lambda kept`, cast({place} + 1 as int), size(`lambda kept`))) end"
    )
    return f"aggregate({taken}, {added}, (`lambda kept`, `lambda gone`) -> {without})"


def _undo_list(arguments: Sequence[str], _types: Sequence[SqlType], sign: str) -> str:
    return f"transform({remaining(arguments[0], sign)}, `lambda row` -> `lambda row`.value)"


def _add_to_list(state: list[Any], arguments: Sequence[Any], _order: Any) -> list[Any]:
    state.append(arguments[0])
    return state


COLLECT_LIST = AggregateFunction(
    name="COLLECT_LIST",
    description="An array of all values, nulls too, in the order of the rows. Over a table the order is not fixed.",
    signatures=signatures("value T -> ARRAY<T>"),
    initial=list,
    add=_add_to_list,
    merge=lambda older, newer: older + newer,
    result=list,
    spark=lambda arguments, _types, order: in_order(arguments[0], order),
    undo_spark=_undo_list,
)


def _spark_set(arguments: Sequence[str], _types: Sequence[SqlType], _order: str) -> str:
    values = f"collect_set(struct({arguments[0]} as value))"
    return f"array_sort(transform({values}, `lambda row` -> `lambda row`.value))"


def _sorted_set(values: list[Any]) -> list[Any]:
    """Smallest first, null last."""
    return sorted(values, key=_rank)


def _rank(value: Any) -> Any:
    """Something that orders values of one type as Spark does: fields in turn, nulls last."""
    if value is None:
        return (True,)
    if isinstance(value, dict):
        return (False, [_rank(each) for each in value.values()])
    if isinstance(value, list):
        return (False, [_rank(each) for each in value])
    return (False, value)


def _add_to_set(state: list[Any], arguments: Sequence[Any], _order: Any) -> list[Any]:
    if arguments[0] not in state:
        state.append(arguments[0])
    return state


COLLECT_SET = AggregateFunction(
    name="COLLECT_SET",
    description="An array of the different values, smallest first, a null last.",
    signatures=signatures("value T -> ARRAY<T>"),
    initial=list,
    add=_add_to_set,
    merge=lambda older, newer: older + [value for value in newer if value not in older],
    result=_sorted_set,
    spark=_spark_set,
)


def _counted(values: str) -> str:
    """Each value with how often it is there, as a map."""
    distinct = f"slice(array_distinct({values}), 1, {_HISTOGRAM_ENTRIES_MAX})"
    occurrences = f"size(filter({values}, `lambda item` -> `lambda item` = `lambda key`))"
    entry = f"struct(`lambda key` as key, cast({occurrences} as bigint) as value)"
    return f"map_from_entries(transform({distinct}, `lambda key` -> {entry}))"


def _undo_histogram(arguments: Sequence[str], _types: Sequence[SqlType], sign: str) -> str:
    rows = remaining(arguments[0], sign)
    present = f"filter({rows}, `lambda row` -> `lambda row`.value is not null)"
    return _counted(f"transform({present}, `lambda row` -> `lambda row`.value)")


def _add_to_histogram(state: dict[str, int], arguments: Sequence[Any], _order: Any) -> dict[str, int]:
    return state if arguments[0] is None else _joined(state, {arguments[0]: 1})


def _joined(older: dict[str, int], newer: dict[str, int]) -> dict[str, int]:
    for key, count in newer.items():
        if key in older or len(older) < _HISTOGRAM_ENTRIES_MAX:
            older[key] = older.get(key, 0) + count
    return older


HISTOGRAM = AggregateFunction(
    name="HISTOGRAM",
    description=(
        f"A map from each value to how often it occurs, of at most {_HISTOGRAM_ENTRIES_MAX} values. Nulls do not count."
    ),
    signatures=signatures("value STRING -> MAP<STRING, BIGINT>"),
    initial=dict,
    add=_add_to_histogram,
    merge=_joined,
    result=dict,
    spark=lambda arguments, _types, _order: _counted(f"collect_list({arguments[0]})"),
    undo_spark=_undo_histogram,
)

FUNCTIONS = (COLLECT_LIST, COLLECT_SET, HISTOGRAM)
