"""Fetched batches as Arrow record batches: no Python object per record.

Columns: topic (dictionary), partition, offset, timestamp (milliseconds, UTC), timestamp_type (0 set by the producer, 1
by the broker), key and value (binary), and on request headers (a list of key and value per record).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from penstock.client.consumer.fetching.buffer import FetchBuffer
from penstock.client.errors import ArrowMissing
from penstock.records.columns import BinaryColumn, HeaderColumn, RecordColumns
from penstock.records.kernel import ColumnFiller

if TYPE_CHECKING:
    import pyarrow

ROWS_MAX: Final = 100_000
"""Rows of a record batch unless the caller asks for another number."""


def load_pyarrow() -> Any:
    try:
        import pyarrow
    except ImportError as error:
        raise ArrowMissing(
            "consume_arrow() needs pyarrow, which is not installed: pip install 'penstock[arrow]'"
        ) from error
    return pyarrow


class ArrowTaker:
    """Fills columns from the buffer; positions move behind what was taken."""

    def __init__(self) -> None:
        self._pyarrow = load_pyarrow()
        self._schemas: dict[bool, Any] = {}

    def take(self, buffer: FetchBuffer, rows_max: int, headers: bool) -> pyarrow.RecordBatch | None:
        """None when there is nothing to take."""
        filler = ColumnFiller(rows_max, headers=headers)
        topics: dict[str, int] = {}
        buffer.fill(filler, lambda topic: topics.setdefault(topic, len(topics)))
        return self._record_batch(filler.take(), list(topics)) if filler.rows else None

    def empty(self, headers: bool) -> pyarrow.RecordBatch:
        """No rows, the same columns."""
        return self._record_batch(ColumnFiller(0, headers=headers).take(), [])

    def _record_batch(self, columns: RecordColumns, topics: list[str]) -> pyarrow.RecordBatch:
        pa = self._pyarrow
        rows = columns.rows

        def numbers(kind: Any, buffer: bytearray) -> Any:
            return pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(buffer)])

        arrays = [
            pa.DictionaryArray.from_arrays(numbers(pa.int32(), columns.topics), pa.array(topics, pa.string())),
            numbers(pa.int32(), columns.partitions),
            numbers(pa.int64(), columns.offsets),
            numbers(pa.timestamp("ms", "UTC"), columns.timestamps),
            numbers(pa.int8(), columns.timestamp_types),
            _binary(pa, pa.binary(), columns.keys),
            _binary(pa, pa.binary(), columns.values),
        ]
        if columns.headers is not None:
            arrays.append(_headers(pa, columns.headers))
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema(columns.headers is not None))

    def _schema(self, headers: bool) -> Any:
        schema = self._schemas.get(headers)
        if schema is None:
            schema = self._schemas[headers] = record_schema(self._pyarrow, headers=headers)
        return schema


def record_schema(pa: Any, *, headers: bool) -> Any:
    fields = [
        pa.field("topic", pa.dictionary(pa.int32(), pa.string()), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("timestamp_type", pa.int8(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
    ]
    if headers:
        header = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
        fields.append(pa.field("headers", pa.list_(header), nullable=False))
    return pa.schema(fields)


def _binary(pa: Any, kind: Any, column: BinaryColumn) -> Any:
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    data = pa.py_buffer(b"" if column.data is None else column.data)
    return pa.Array.from_buffers(kind, column.length, [validity, pa.py_buffer(column.offsets), data], column.null_count)


def _headers(pa: Any, column: HeaderColumn) -> Any:
    keys = _binary(pa, pa.string(), column.keys)
    values = _binary(pa, pa.binary(), column.values)
    kind = pa.struct([pa.field("key", pa.string(), nullable=False), pa.field("value", pa.binary())])
    entries = pa.StructArray.from_buffers(kind, column.keys.length, [None], children=[keys, values])
    return pa.ListArray.from_buffers(
        pa.list_(kind), column.length, [None, pa.py_buffer(column.offsets)], children=[entries]
    )
