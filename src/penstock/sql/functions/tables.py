"""Table functions: one row becomes as many as the array has elements. Null gives no row."""

from __future__ import annotations

from typing import Any

from penstock.sql.functions.model import TableFunction
from penstock.sql.functions.signatures import signatures

_CUBE_COLUMNS_MAX = 20
"""A million rows from one."""

EXPLODE = TableFunction(
    name="EXPLODE",
    category="TABLE",
    description="One row for each element of the array.",
    signatures=signatures("array ARRAY<T> -> T"),
    python=lambda array: array,
    spark="{0}",
)


def _cube(values: list[Any] | None) -> list[Any] | None:
    """Every combination of each value and null, counting in binary; a null value has no second choice."""
    if values is None or len(values) > _CUBE_COLUMNS_MAX:
        return None
    rows: list[list[Any]] = [[]]
    for value in values:
        choices = [None] if value is None else [None, value]
        rows = [[*row, choice] for row in rows for choice in choices]
    return rows


_BIT = "(`lambda mask` & shiftleft(1, array_size({0}) - 1 - `lambda index`))"
_CUBE = (
    "case when array_size({0}) <= " + str(_CUBE_COLUMNS_MAX) + " then transform(filter("
    "sequence(0, shiftleft(1, array_size({0})) - 1),"
    " `lambda mask` -> not exists(transform({0}, (`lambda item`, `lambda index`) ->"
    " `lambda item` is null and " + _BIT + " <> 0), `lambda twice` -> `lambda twice`)),"
    " `lambda mask` -> transform({0}, (`lambda item`, `lambda index`) ->"
    " case when " + _BIT + " <> 0 then `lambda item` end)) end"
)

CUBE_EXPLODE = TableFunction(
    name="CUBE_EXPLODE",
    category="TABLE",
    description=(
        "One row for every combination of the values and null in their places: 2 to the number of values. A value that "
        f"is null gives no second row. At most {_CUBE_COLUMNS_MAX} values."
    ),
    signatures=signatures("values ARRAY<T> -> ARRAY<T>"),
    python=_cube,
    spark=_CUBE,
)

FUNCTIONS = (EXPLODE, CUBE_EXPLODE)
