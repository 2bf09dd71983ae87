"""Fetched records to rows of a source.

Records that cannot be read are left out and told with their place and bytes. A stream has no row for a record without a
value, unless it is to go on; a table has one that says the key is deleted. Columns, each with the source's prefix: key,
value, headers, ROWTIME, ROWPARTITION, ROWOFFSET, WINDOWSTART and WINDOWEND if windowed, `__DELETED` where rows may have
no value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from penstock.sql.formats.arrow_types import arrow_type
from penstock.sql.formats.bad_records import BadRecord
from penstock.sql.formats.codecs import key_codec, value_codec
from penstock.sql.formats.row_time import row_times
from penstock.sql.formats.windows import WindowedKeys, split_windows
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ROWOFFSET, ROWPARTITION, ROWTIME, WINDOWEND, WINDOWSTART, HeaderColumn

__all__ = ["DELETED", "BadRecord", "Decoded", "RowDecoder", "row_schema"]

DELETED: Final = "__DELETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    batch: pa.RecordBatch
    errors: list[BadRecord]


def row_schema(source: SourceNode) -> pa.Schema:
    """The columns `RowDecoder` gives for this source."""
    schema = source.schema
    fields = [(column.name, arrow_type(column.type)) for column in (*schema.key, *schema.value)]
    fields += [(header.name, arrow_type(header.type)) for header in schema.headers]
    fields += [(ROWTIME, pa.int64()), (ROWPARTITION, pa.int32()), (ROWOFFSET, pa.int64())]
    if source.windowed is not None:
        fields += [(WINDOWSTART, pa.int64()), (WINDOWEND, pa.int64())]
    if source.marks_deletions:
        fields.append((DELETED, pa.bool_()))
    return pa.schema([pa.field(source.prefix + name, kind) for name, kind in fields])


class RowDecoder:
    """For the records of one source."""

    def __init__(self, source: SourceNode) -> None:
        self._source = source
        self._key = key_codec(source.key_format, source.schema.key)
        self._value = value_codec(source.value_format, source.schema.value)
        self.schema = row_schema(source)

    @property
    def needs_headers(self) -> bool:
        return bool(self._source.schema.headers)

    def decode(self, raw: pa.RecordBatch) -> Decoded:
        """`raw` has the columns of `Consumer.consume_arrow`; headers only if some are declared."""
        errors = _Errors(raw)
        keys, windows = self._split(raw.column("key"), errors)
        values = self._as_values(raw.column("value"))
        key = errors.noting("key", self._key.read(keys))
        value = errors.noting("value", self._value.read(values))
        headers = [_header(column, raw) for column in self._source.schema.headers]
        times = self._times(raw, key, value, values, errors)
        arrays = [*key, *value, *headers, times, raw.column("partition"), raw.column("offset")]
        if windows is not None:
            arrays += [windows.starts, windows.ends]
        return self._finish(arrays, keys, values, errors)

    def _split(self, keys: pa.Array, errors: _Errors) -> tuple[pa.Array, WindowedKeys | None]:
        if self._source.windowed is None:
            return keys, None
        windows = split_windows(keys, self._source.windowed)
        errors.note("key", windows.errors)
        return windows.keys, windows

    def _as_values(self, values: pa.Array) -> pa.Array:
        """The JSON text `null` is no value."""
        if self._source.value_format.name != "JSON":
            return values
        literal = pc.fill_null(pc.equal(values, b"null"), False)
        return pc.if_else(literal, None, values) if pc.any(literal).as_py() else values

    def _times(
        self, raw: pa.RecordBatch, key: list[pa.Array], value: list[pa.Array], values: pa.Array, errors: _Errors
    ) -> pa.Array:
        column = self._source.timestamp
        given = raw.column("timestamp").cast(pa.timestamp("ms", "UTC"), safe=False).cast(pa.int64())
        if column is None:
            return given
        schema = self._source.schema
        names = [each.name for each in (*schema.key, *schema.value)]
        problems: dict[int, str] = {}
        times = row_times([*key, *value][names.index(column.column)], column, problems)
        # A record without a value has no columns to take a time from: its own time stands.
        for row in [row for row in problems if not values[row].is_valid]:
            del problems[row]
        errors.note("value", problems)
        return pc.if_else(pc.is_valid(values), times, given)

    def _finish(self, arrays: list[pa.Array], keys: pa.Array, values: pa.Array, errors: _Errors) -> Decoded:
        gone = pc.is_null(values)
        if self._source.kind == "TABLE":
            errors.note("key", dict.fromkeys(_rows_where(pc.is_null(keys)), "the primary key is null"))
        if self._source.marks_deletions:
            arrays.append(gone)
            kept = None
        else:
            kept = pc.invert(gone) if values.null_count else None
        batch = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
        return Decoded(batch=errors.without_bad(batch, kept), errors=errors.records())


def _rows_where(mask: pa.Array) -> list[int]:
    rows: list[int] = pc.indices_nonzero(mask).to_pylist()
    return rows


class _Errors:
    """What is wrong with which row; the first finding counts."""

    def __init__(self, raw: pa.RecordBatch) -> None:
        self._raw = raw
        self._found: dict[int, tuple[str, str]] = {}

    def note(self, target: str, errors: Mapping[int, str]) -> None:
        for row, message in errors.items():
            self._found.setdefault(row, (target, message))

    def noting(self, target: str, columns: Any) -> list[pa.Array]:
        self.note(target, columns.errors)
        arrays: list[pa.Array] = columns.arrays
        return arrays

    def without_bad(self, batch: pa.RecordBatch, kept: pa.Array | None) -> pa.RecordBatch:
        if self._found:
            good = pa.array([row not in self._found for row in range(batch.num_rows)], pa.bool_())
            kept = good if kept is None else pc.and_(kept, good)
        return batch if kept is None else batch.filter(kept)

    def records(self) -> list[BadRecord]:
        return [self._record(row, *self._found[row]) for row in sorted(self._found)]

    def _record(self, row: int, target: str, message: str) -> BadRecord:
        at = {name: self._raw.column(name)[row].as_py() for name in ("topic", "partition", "offset", "key", "value")}
        return BadRecord(target=target, message=message, **at)


def _header(column: HeaderColumn, raw: pa.RecordBatch) -> pa.Array:
    headers: Sequence[Any] = raw.column("headers").to_pylist()
    rows = [[{"KEY": each["key"], "VALUE": each["value"]} for each in row or ()] for row in headers]
    if column.key is not None:
        return pa.array([_last(row, column.key) for row in rows], pa.binary())
    return pa.array(rows, arrow_type(column.type))


def _last(headers: Sequence[dict[str, Any]], key: str) -> bytes | None:
    return next((each["VALUE"] for each in reversed(headers) if each["KEY"] == key), None)
