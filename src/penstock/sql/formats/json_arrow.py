"""JSON objects parsed by Arrow's parser, many times faster than one by one, where it surely gives the same answer.

Arrow parses a text of many objects. That the n-th object is the n-th record is sure when every record begins with `{`
and ends with `}`, and there are as many objects as records: between `}` and `{` only whole objects can meet. Whatever
Arrow does not take (text where a number is declared, a name twice, broken JSON ...) makes it refuse the whole batch,
and so do we: the caller then reads one by one, with the full rules. The same goes for names: a column found under two
names (`id` and `ID`) is left to the slow way. After some refusals in a row it is not tried for a while.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from penstock.sql.formats.json_values import pick_names
from penstock.sql.schema import ColumnSchema
from penstock.sql.types import Scalar

_TYPES: Final[dict[str, Any]] = {
    "BOOLEAN": pa.bool_(),
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "STRING": pa.string(),
}

ROWS_MIN: Final = 32
"""Fewer records are read faster one by one."""
REFUSALS_MAX: Final = 3
REST_BATCHES: Final = 100
"""After so many refusals in a row, so many batches are left to the other way before the next try."""


class ArrowJson:
    """Remembers the names records were found to have, so that the next batch is parsed in one go."""

    def __init__(self, columns: Sequence[ColumnSchema]) -> None:
        self._names = [column.name for column in columns]
        self._types = [_TYPES[str(column.type)] for column in columns]
        self._spelled: list[str] = list(self._names)
        self._refusals = 0
        self._resting = 0

    @staticmethod
    def takes(columns: Sequence[ColumnSchema]) -> bool:
        return bool(columns) and all(
            isinstance(column.type, Scalar) and column.type.name in _TYPES for column in columns
        )

    def read(self, data: pa.Array) -> list[pa.Array] | None:
        """None: read them another way."""
        if len(data) < ROWS_MIN or data.null_count:
            return None
        if self._resting:
            self._resting -= 1
            return None
        text = _joined(data)
        arrays = None if text is None else self._parse(text, len(data), may_learn=True)
        self._refusals = 0 if arrays is not None else self._refusals + 1
        if self._refusals >= REFUSALS_MAX:
            self._refusals, self._resting = 0, REST_BATCHES
        return arrays

    def _parse(self, text: pa.Buffer, count: int, *, may_learn: bool) -> list[pa.Array] | None:
        fields = [pa.field(name, kind) for name, kind in zip(self._spelled, self._types, strict=True)]
        try:
            table = pyarrow.json.read_json(
                pa.BufferReader(text),
                read_options=pyarrow.json.ReadOptions(use_threads=False, block_size=max(text.size, 1)),
                parse_options=pyarrow.json.ParseOptions(
                    explicit_schema=pa.schema(fields), newlines_in_values=True, unexpected_field_behavior="infer"
                ),
            )
        except pa.ArrowException:
            return None
        if table.num_rows != count:
            return None
        return self._columns(table, text, may_learn=may_learn)

    def _columns(self, table: pa.Table, text: pa.Buffer, *, may_learn: bool) -> list[pa.Array] | None:
        extra = [name for name in table.column_names if name not in self._spelled]
        wanted = set(self._names)
        if not any(name.upper() in wanted for name in extra):
            return [table.column(index).combine_chunks() for index in range(len(self._spelled))]
        spelled = [
            name if found is None else found
            for name, found in zip(self._names, pick_names(self._names, extra), strict=True)
        ]
        if not may_learn or not self._are_absent(table, spelled):
            return None
        self._spelled = spelled
        return self._parse(text, table.num_rows, may_learn=False)

    def _are_absent(self, table: pa.Table, spelled: list[str]) -> bool:
        """Whether the spelling known so far of those columns that have another one is in no record."""
        return all(
            known == new or table.column(index).null_count == table.num_rows
            for index, (known, new) in enumerate(zip(self._spelled, spelled, strict=True))
        )


def _joined(data: pa.Array) -> pa.Buffer | None:
    """All records in one text, a line feed between them; None unless each looks like an object in UTF-8."""
    try:
        text = data.cast(pa.string())
    except pa.ArrowException:
        return None
    if not pc.all(pc.and_(pc.starts_with(text, "{"), pc.ends_with(text, "}"))).as_py():
        return None
    lines = pc.binary_join(pa.ListArray.from_arrays(pa.array([0, len(text)], pa.int32()), text), "\n")
    return lines.buffers()[2]
