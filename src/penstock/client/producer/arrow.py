"""Arrow tables and record batches as rows for `send_many`: columns go into batches without a Python object per row.

Columns, by name: `value` and `key` (binary or text, any layout), `timestamp` (timestamp, or integers that are
milliseconds), `headers` (list of struct of key and value), `partition` (integers; null leaves the choice to the key).
`pyarrow` is imported here, when it is needed, and nowhere else in the producer.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

from penstock.client.errors import ArrowMissing
from penstock.records.columns import BinaryColumn, HeaderColumn, LongColumn
from penstock.records.kernel import BatchWriter, encode_columns, partition_column

COLUMNS: Final = ("key", "value", "timestamp", "headers", "partition")


def is_arrow(data: object) -> bool:
    """Whether this is a table or record batch of `pyarrow`, or offers itself as Arrow, without importing it.

    TypeError for a column alone.
    """
    if _is_pyarrow(data) and hasattr(data, "schema"):
        return True
    if _is_pyarrow(data) and not hasattr(data, "__arrow_c_stream__") and hasattr(data, "__arrow_c_array__"):
        raise _no_table(data)
    return hasattr(data, "__arrow_c_stream__")


def _is_pyarrow(data: object) -> bool:
    module = type(data).__module__
    return module == "pyarrow" or module.startswith("pyarrow.")


def _no_table(data: object) -> TypeError:
    return TypeError(
        f"send_many() takes a table with the column value, and {type(data).__name__} is a column alone: make it one,"
        " such as with pyarrow.table({'value': column})"
    )


def record_batches(data: Any) -> Iterator[Any]:
    """The record batches of a table, a record batch, a reader of them, or a frame that offers itself as Arrow."""
    if not hasattr(data, "schema") or not _is_pyarrow(data):
        pyarrow = _pyarrow()
        try:
            data = pyarrow.RecordBatchReader.from_stream(data)
        except pyarrow.ArrowInvalid as error:
            raise _no_table(data) from error
    if hasattr(data, "to_batches"):
        yield from data.to_batches()
    elif hasattr(data, "num_rows"):
        yield data
    else:
        yield from data


class ArrowRows:
    """One record batch."""

    def __init__(self, batch: Any, timestamp: int, *, by_key: bool = True) -> None:
        self.count = batch.num_rows
        self._timestamp = timestamp
        self._by_key = by_key
        columns = _columns(batch)
        self._keys = _binary(columns.get("key"), "key")
        self._values = _binary(columns.get("value"), "value")
        self._timestamps = _longs(columns.get("timestamp"))
        self._headers = _headers(columns.get("headers"))
        self._partitions = columns.get("partition")

    def partitions(self, count: int) -> array[int] | None:
        hashed = None
        if self._keys is not None and self._by_key:
            hashed = partition_column(self._keys, count)
        if self._partitions is None:
            return hashed
        hashed = array("i", [-1]) * self.count if hashed is None else hashed
        for row, chosen in enumerate(self._partitions.to_pylist()):
            if chosen is not None:
                if not 0 <= chosen < count:
                    raise ValueError(f"row {row}: there is no partition {chosen}, the topic has {count}")
                hashed[row] = chosen
        return hashed

    def fill(self, writer: BatchWriter, start: int, stop: int, order: Any) -> int:
        return encode_columns(
            writer, self._keys, self._values, self._timestamps, self._headers, start, stop, self._timestamp, order
        )


def _pyarrow() -> Any:
    try:
        import pyarrow  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise ArrowMissing("Arrow tables need pyarrow: pip install 'penstock[arrow]'") from error
    return pyarrow


def _columns(batch: Any) -> dict[str, Any]:
    names = batch.schema.names
    unknown = [name for name in names if name not in COLUMNS]
    if unknown or "value" not in names:
        raise ValueError(
            f"send_many() takes a table with the column value, and key, timestamp, headers and partition if there are;"
            f" this one has {', '.join(names)}: rename or drop columns"
        )
    return {name: batch.column(index) for index, name in enumerate(names)}


def _binary(column: Any, name: str) -> BinaryColumn | None:
    if column is None or column.type == _pyarrow().null():
        return None
    plain, wide = _as_binary(column, name)
    validity, offsets, data = plain.buffers()
    return BinaryColumn(
        length=len(plain),
        offset=plain.offset,
        offsets=offsets if offsets is not None else b"\x00" * 8,
        data=data,
        validity=validity,
        wide=wide,
        null_count=plain.null_count,
    )


def _as_binary(column: Any, name: str) -> tuple[Any, bool]:
    types = _pyarrow().types
    kind = column.type
    if types.is_binary(kind) or types.is_string(kind):
        return column, False
    if types.is_large_binary(kind) or types.is_large_string(kind):
        return column, True
    if types.is_dictionary(kind):
        return _as_binary(column.dictionary_decode(), name)
    try:
        return column.cast(_pyarrow().large_binary()), True
    except _pyarrow().ArrowException as error:
        raise TypeError(f"column {name} must hold binary or text, not {kind}: cast it first") from error


def _longs(column: Any) -> LongColumn | None:
    if column is None:
        return None
    pyarrow = _pyarrow()
    if pyarrow.types.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("ms", column.type.tz), safe=False)
    elif pyarrow.types.is_integer(column.type):
        column = column.cast(pyarrow.int64())
    else:
        raise TypeError(f"column timestamp must hold timestamps or integers (milliseconds), not {column.type}")
    validity, data = column.buffers()
    return LongColumn(length=len(column), offset=column.offset, data=data, validity=validity)


def _headers(column: Any) -> HeaderColumn | None:
    if column is None:
        return None
    pyarrow = _pyarrow()
    kind = column.type
    is_list = pyarrow.types.is_list(kind) or pyarrow.types.is_large_list(kind)
    if not is_list or not pyarrow.types.is_struct(kind.value_type) or kind.value_type.num_fields != 2:
        raise TypeError(f"column headers must hold lists of structs of a key and a value, not {kind}")
    validity, offsets = column.buffers()[:2]
    pairs = column.values
    keys = _binary(pairs.field(0), "headers.key")
    values = _binary(pairs.field(1), "headers.value")
    assert keys is not None
    return HeaderColumn(
        length=len(column),
        offset=column.offset,
        offsets=offsets,
        validity=validity,
        keys=keys,
        values=values if values is not None else _nulls(len(pairs)),
        wide=pyarrow.types.is_large_list(kind),
    )


def _nulls(length: int) -> BinaryColumn:
    return BinaryColumn(
        length=length, offsets=bytes(4 * (length + 1)), validity=bytes((length + 7) // 8), null_count=length
    )
