"""Rows of a result to records of a sink.

The columns are those of the sink's schema, ROWTIME, the window's bounds if windowed, and perhaps `__DELETED`, whose
true makes a record without a value. A row that cannot be written (a key that is null in a table, a value its format
does not hold) is left out and told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from penstock.sql.formats.codec import BadValueError, Codec
from penstock.sql.formats.codecs import key_codec, value_codec
from penstock.sql.formats.decoding import DELETED
from penstock.sql.formats.python_values import to_python
from penstock.sql.formats.row_time import row_times
from penstock.sql.formats.windows import append_window, append_windows
from penstock.sql.plan.nodes import Sink
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART, ColumnSchema
from penstock.sql.types import BIGINT


@dataclass(frozen=True, slots=True, kw_only=True)
class BadRow:
    """`row` counts in the table that was to be encoded."""

    row: int
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """Lists of one length, without the rows in `errors`. Timestamps are milliseconds."""

    keys: list[bytes | None]
    values: list[bytes | None]
    timestamps: list[int]
    errors: list[BadRow]


class RowEncoder:
    """For the rows of one sink."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._key = key_codec(sink.key_format, sink.schema.key)
        self._value = value_codec(sink.value_format, sink.schema.value)

    def encode(self, table: pa.Table) -> Encoded:
        errors: dict[int, str] = {}
        keys = self._keys(table, errors)
        values = _written(self._value, _python_columns(table, self._sink.schema.value), table.num_rows, errors)
        timestamps = self._times(table, errors)
        if self._sink.kind == "TABLE":
            errors.update({row: "the primary key is null" for row, key in enumerate(keys) if key is None})
        if DELETED in table.column_names:
            values = _emptied(values, table.column(DELETED).to_pylist())
        if errors:
            return _without_bad(keys, values, timestamps, errors)
        return Encoded(keys=keys, values=values, timestamps=timestamps, errors=[])

    def encode_row(
        self, key: Mapping[str, Any], value: Mapping[str, Any] | None, window: tuple[int, int] | None = None
    ) -> tuple[bytes | None, bytes | None]:
        """One record from Python values; columns that are not given are null. Raises BadValueError."""
        columns = self._sink.schema.key
        key_bytes = _write_row(self._key, columns, key)
        if columns:
            key_bytes = _key_or_none(key_bytes, *(key.get(column.name) for column in columns))
        if self._sink.windowed is not None and window is not None:
            key_bytes = append_window(key_bytes, *window, self._sink.windowed)
        return key_bytes, None if value is None else _write_row(self._value, self._sink.schema.value, value)

    def _keys(self, table: pa.Table, errors: dict[int, str]) -> list[bytes | None]:
        columns = _python_columns(table, self._sink.schema.key)
        keys = _written(self._key, columns, table.num_rows, errors)
        if columns:
            keys = [_key_or_none(*each) for each in zip(keys, *columns, strict=True)]
        if self._sink.windowed is None:
            return keys
        starts, ends = (to_python(table.column(name), BIGINT) for name in (WINDOWSTART, WINDOWEND))
        return append_windows(keys, starts, ends, self._sink.windowed)

    def _times(self, table: pa.Table, errors: dict[int, str]) -> list[int]:
        column = self._sink.timestamp
        if column is None:
            return to_python(table.column(ROWTIME), BIGINT)
        times = row_times(table.column(column.column).combine_chunks(), column, errors)
        values: list[int] = times.to_pylist()
        return values


def _emptied(values: list[bytes | None], deleted: list[bool | None]) -> list[bytes | None]:
    return [None if gone else value for gone, value in zip(deleted, values, strict=True)]


def _python_columns(table: pa.Table, columns: Sequence[ColumnSchema]) -> list[list[Any]]:
    return [to_python(table.column(column.name), column.type) for column in columns]


def _written(codec: Codec, columns: list[list[Any]], count: int, errors: dict[int, str]) -> list[bytes | None]:
    try:
        return codec.write(columns, count)
    except (BadValueError, UnicodeError):
        return [_written_row(codec, columns, row, errors) for row in range(count)]


def _written_row(codec: Codec, columns: list[list[Any]], row: int, errors: dict[int, str]) -> bytes | None:
    try:
        return codec.write([[values[row]] for values in columns], 1)[0]
    except (BadValueError, UnicodeError) as error:
        errors[row] = str(error)
        return None


def _write_row(codec: Codec, columns: Sequence[ColumnSchema], values: Mapping[str, Any]) -> bytes | None:
    return codec.write([[values.get(column.name)] for column in columns], 1)[0]


def _key_or_none(key: bytes | None, *parts: Any) -> bytes | None:
    """A key whose columns are all null is no key, whatever the format writes for nulls."""
    return None if all(part is None for part in parts) else key


def _without_bad(
    keys: list[bytes | None], values: list[bytes | None], timestamps: list[int], errors: dict[int, str]
) -> Encoded:
    kept = [row for row in range(len(keys)) if row not in errors]
    return Encoded(
        keys=[keys[row] for row in kept],
        values=[values[row] for row in kept],
        timestamps=[timestamps[row] for row in kept],
        errors=[BadRow(row=row, message=errors[row]) for row in sorted(errors)],
    )
