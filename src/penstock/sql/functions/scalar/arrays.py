"""Arrays. Positions count from 1; equal means equal in every part, and null is equal to null."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from penstock.sql.expressions.spark_casts import spark_text_form
from penstock.sql.expressions.spark_types import holds_map, literal_value
from penstock.sql.expressions.text_form import double_text
from penstock.sql.functions.model import ScalarFunction
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import STRING, Array, SqlType

_array = partial(scalar, "ARRAY")

SERIES_SIZE_MAX = 1_000_000


def _without_maps(template: str) -> Callable[[Sequence[str], Sequence[SqlType]], str | None]:
    """Spark compares no maps: arrays of them go through the rule book."""

    def form(arguments: Sequence[str], types: Sequence[SqlType]) -> str | None:
        return None if holds_map(types[0]) else template.format(*arguments)

    return form


def _distinct(items: list[Any]) -> list[Any]:
    kept: list[Any] = []
    for item in items:
        if item not in kept:
            kept.append(item)
    return kept


def _concat(one: list[Any] | None, other: list[Any] | None) -> list[Any] | None:
    return None if one is None and other is None else [*(one or []), *(other or [])]


def _order(value: Any) -> Any:
    return (math.isnan(value), value) if isinstance(value, float) else value


def _extreme(choose: Callable[..., Any]) -> Callable[[list[Any]], Any]:
    return lambda items: choose((item for item in items if item is not None), key=_order, default=None)


def _join(items: list[Any] | None, delimiter: str | None = ",") -> str | None:
    return None if items is None else (delimiter or "").join(map(_text, items))


def _text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return double_text(value) if isinstance(value, float) else str(value)


def _spark_join(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
    items, *delimiter = arguments
    kind = types[0]
    element = kind.element if isinstance(kind, Array) else STRING
    texts = f"transform({items}, `lambda item` -> {spark_text_form('`lambda item`', element)})"
    between = f"coalesce({delimiter[0]}, '')" if delimiter else "','"
    return f"array_join({texts}, {between}, 'null')"


_DIRECTIONS = {"ASC": False, "ASCENDING": False, "DESC": True, "DESCENDING": True}


def _sort(items: list[Any], direction: str = "ASC") -> list[Any] | None:
    descending = _DIRECTIONS.get(direction.upper())
    if descending is None:
        return None
    present = [item for item in items if item is not None]
    return sorted(present, key=_order, reverse=descending) + [None] * (len(items) - len(present))


def _spark_sort(arguments: Sequence[str], _types: Sequence[SqlType]) -> str | None:
    items, *direction = arguments
    descending = _DIRECTIONS.get((literal_value(direction[0]) or "").upper()) if direction else False
    if descending is None:
        return None
    return f"sort_array({items}, false)" if descending else f"array_sort({items})"


def _series(start: int, end: int, step: int | None = None) -> list[int]:
    pace = step if step is not None else (1 if end > start else -1)
    if pace == 0:
        raise ValueError("GENERATE_SERIES step cannot be zero")
    if (end - start) * pace < 0:
        raise ValueError("GENERATE_SERIES step has wrong sign")
    if (end - start) // pace >= SERIES_SIZE_MAX:
        raise ValueError(f"GENERATE_SERIES gives more than {SERIES_SIZE_MAX} values")
    return list(range(start, end + (1 if pace > 0 else -1), pace))


def _spark_series(arguments: Sequence[str], _types: Sequence[SqlType]) -> str:
    start, end, *given = arguments
    step = given[0] if given else f"(case when {end} > {start} then 1 else -1 end)"
    span = f"(cast({end} as decimal(20,0)) - cast({start} as decimal(20,0)))"
    fits = f"{step} <> 0 and {span} * {step} >= 0 and abs({span}) < {SERIES_SIZE_MAX} * abs(cast({step} as bigint))"
    return f"case when {fits} then sequence({start}, {end}, {step}) end"


def _slice(items: list[Any] | None, first: int | None, last: int | None) -> list[Any] | None:
    if items is None:
        return None
    start = 0 if first is None else first - 1
    end = len(items) if last is None else last
    return items[start:end] if 0 <= start <= end <= len(items) else None


_SPARK_SLICE = (
    "case when coalesce({1}, 1) >= 1 and coalesce({2}, array_size({0})) >= coalesce({1}, 1) - 1"
    " and coalesce({2}, array_size({0})) <= array_size({0})"
    " then slice({0}, coalesce({1}, 1), coalesce({2}, array_size({0})) - coalesce({1}, 1) + 1) end"
)


def _of_two(name: str, description: str, python: Callable[..., Any]) -> ScalarFunction:
    return _array(
        name,
        description,
        "one ARRAY<T>, other ARRAY<T> -> ARRAY<T>",
        python=python,
        spark=_without_maps(f"{name.lower()}({{0}}, {{1}})"),
    )


FUNCTIONS = (
    _array(
        "ARRAY_CONCAT",
        "Both arrays one after the other. A null array counts as an empty one, unless both are null.",
        "one ARRAY<T>, other ARRAY<T> -> ARRAY<T>",
        python=_concat,
        spark="coalesce(concat({0}, {1}), {0}, {1})",
        strict=False,
    ),
    _array(
        "ARRAY_CONTAINS",
        "Whether the array has this element. False for a null array.",
        "array ARRAY<T>, element T -> BOOLEAN",
        python=lambda items, element: items is not None and element in items,
        spark=_without_maps("coalesce(exists({0}, `lambda item` -> `lambda item` <=> {1}), false)"),
        strict=False,
    ),
    _array(
        "ARRAY_DISTINCT",
        "The different elements, in the order they first occur; null is one of them.",
        "array ARRAY<T> -> ARRAY<T>",
        python=_distinct,
        spark=_without_maps("array_distinct({0})"),
    ),
    _of_two(
        "ARRAY_EXCEPT",
        "The different elements of the first array that are not in the other, in their order.",
        lambda one, other: _distinct([item for item in one if item not in other]),
    ),
    _of_two(
        "ARRAY_INTERSECT",
        "The different elements that are in both arrays, in the order of the first.",
        lambda one, other: _distinct([item for item in one if item in other]),
    ),
    _array(
        "ARRAY_JOIN",
        "The elements as text, with the delimiter between them, a comma if none is given.",
        *(
            f"array ARRAY<{element}>{delimiter} -> STRING"
            for element in ("BOOLEAN", "INTEGER", "BIGINT", "DOUBLE", "DECIMAL", "STRING")
            for delimiter in ("", ", delimiter STRING")
        ),
        python=_join,
        spark=_spark_join,
        strict=False,
    ),
    _array(
        "ARRAY_LENGTH", "How many elements it has.", "array ARRAY<T> -> INTEGER", python=len, spark="array_size({0})"
    ),
    _array(
        "ARRAY_MAX",
        "The largest element that is not null.",
        "array ARRAY<T> -> T",
        python=_extreme(max),
        spark=_without_maps("array_max({0})"),
    ),
    _array(
        "ARRAY_MIN",
        "The smallest element that is not null.",
        "array ARRAY<T> -> T",
        python=_extreme(min),
        spark=_without_maps("array_min({0})"),
    ),
    _array(
        "ARRAY_REMOVE",
        "The array without the elements that are equal to this one; null removes the nulls.",
        "array ARRAY<T>, element T -> ARRAY<T>",
        python=lambda items, element: None if items is None else [item for item in items if item != element],
        spark=_without_maps("filter({0}, `lambda item` -> not (`lambda item` <=> {1}))"),
        strict=False,
    ),
    _array(
        "ARRAY_SORT",
        "The elements in order, smallest first or with 'DESC' largest first; nulls last.",
        "array ARRAY<T> -> ARRAY<T>",
        "array ARRAY<T>, direction STRING -> ARRAY<T>",
        python=_sort,
        spark=_spark_sort,
    ),
    _of_two(
        "ARRAY_UNION",
        "The different elements of both arrays, in the order they occur.",
        lambda one, other: _distinct(one + other),
    ),
    _array(
        "GENERATE_SERIES",
        f"An array of the numbers from start to end, both included, by steps of 1 or those given. At most "
        f"{SERIES_SIZE_MAX} numbers.",
        "start INTEGER, end INTEGER -> ARRAY<INTEGER>",
        "start BIGINT, end BIGINT -> ARRAY<BIGINT>",
        "start INTEGER, end INTEGER, step INTEGER -> ARRAY<INTEGER>",
        "start BIGINT, end BIGINT, step INTEGER -> ARRAY<BIGINT>",
        python=_series,
        spark=_spark_series,
    ),
    _array(
        "SLICE",
        "The elements from one position to another, both included. Null for a position leaves that end open; positions "
        "outside the array give null.",
        "array ARRAY<T>, from INTEGER, to INTEGER -> ARRAY<T>",
        python=_slice,
        spark=_SPARK_SLICE,
        strict=False,
    ),
)
