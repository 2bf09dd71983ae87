"""COALESCE, IFNULL, NULLIF and AS_VALUE."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from penstock.sql.expressions.spark_types import without_maps
from penstock.sql.functions.scalar.declaring import scalar
from penstock.sql.types import SqlType

_conditional = partial(scalar, "CONDITIONAL", strict=False)


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _spark_null_if(arguments: Sequence[str], types: Sequence[SqlType]) -> str:
    left, right = (without_maps(text, types[0]) for text in arguments)
    return f"case when not ({left} <=> {right}) then {arguments[0]} end"


FUNCTIONS = (
    scalar(
        "OTHER",
        "AS_VALUE",
        "The same value: makes a copy of a key column in the value of a result.",
        "value T -> T",
        python=lambda value: value,
        spark="{0}",
        strict=False,
    ),
    _conditional(
        "COALESCE",
        "The first argument that is not null.",
        "value T, others T... -> T",
        python=_first,
        spark=lambda arguments, _types: f"coalesce({', '.join(arguments)})",
    ),
    _conditional(
        "IFNULL",
        "The value, or the other one when it is null.",
        "value T, other T -> T",
        python=_first,
        spark="coalesce({0}, {1})",
    ),
    _conditional(
        "NULLIF",
        "Null when both are equal, else the first.",
        "value T, other T -> T",
        python=lambda value, other: None if value == other else value,
        spark=_spark_null_if,
    ),
)
