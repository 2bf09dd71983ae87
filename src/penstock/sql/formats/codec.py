"""What a format does, and what can be wrong with a record.

A codec is made for the columns of one side (key or value) of a source or sink. It reads a column of bytes into one
Arrow array per SQL column, and writes Python values into bytes. Values on the way from bytes to Arrow are in the form
Arrow takes fastest: times as whole numbers of the unit of their Arrow type, maps as lists of pairs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from penstock.sql.formats.arrow_types import arrow_type
from penstock.sql.schema import ColumnSchema


class BadValueError(ValueError):
    """Bytes that are not what the declaration says; the message names the column and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """One array per column of the codec, all as long as the input; `errors` by row, whose values count for nothing."""

    arrays: list[pa.Array]
    errors: Mapping[int, str] = field(default_factory=dict)


class Codec(Protocol):
    """One side of records in one format."""

    def read(self, data: pa.Array) -> Columns:
        """The columns of a binary array; null stays null in all of them."""

    def write(self, columns: Sequence[Sequence[Any]], count: int) -> list[bytes | None]:
        """The bytes of `count` rows, given as columns of Python values; raises BadValueError for what does not fit."""


def read_rows(values: Sequence[bytes | None], columns: Sequence[ColumnSchema], read_row: Any) -> Columns:
    """Row by row with `read_row(bytes) -> values in column order`, for formats without a faster way."""
    errors: dict[int, str] = {}
    nothing = (None,) * len(columns)
    rows: list[Sequence[Any]] = []
    for index, value in enumerate(values):
        try:
            rows.append(nothing if value is None else read_row(value))
        except BadValueError as error:
            errors[index] = str(error)
            rows.append(nothing)
    transposed = list(zip(*rows, strict=True)) if rows else [()] * len(columns)
    return build_columns(columns, transposed, errors)


def build_columns(columns: Sequence[ColumnSchema], values: Sequence[Sequence[Any]], errors: dict[int, str]) -> Columns:
    arrays = [_build(column, list(each), errors) for column, each in zip(columns, values, strict=True)]
    return Columns(arrays=arrays, errors=errors)


_ARROW_REFUSES = (pa.ArrowException, OverflowError, UnicodeError, TypeError, ValueError)


def _build(column: ColumnSchema, values: list[Any], errors: dict[int, str]) -> pa.Array:
    kind = arrow_type(column.type)
    try:
        return pa.array(values, kind)
    except _ARROW_REFUSES:
        # The readers check what they give; what is left is text that is no Unicode, found one by one.
        for index, value in enumerate(values):
            try:
                pa.array([value], kind)
            except _ARROW_REFUSES as error:
                errors.setdefault(index, f"column {column.name}: {error}")
                values[index] = None
        return pa.array(values, kind)
