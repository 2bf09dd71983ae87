"""Finds rows of a table for a batch of keys, inside Spark's workers.

The table's store is a SQLite file of the SQL server. A worker on the same machine opens it for reading. One elsewhere
is given a URL and asks the server: it posts the keys as one Arrow column (IPC stream), and gets the rows in the same
order, with a column `__FOUND` that says for which keys there is one (`answer`).
"""

from __future__ import annotations

import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote

import msgspec
import pyarrow as pa

from penstock.sql.errors import EngineError
from penstock.sql.formats.python_values import to_python
from penstock.sql.schema import PSEUDO_COLUMNS
from penstock.sql.spark.values import arrow_array
from penstock.sql.stores.table_store import TableStore, read_rows
from penstock.sql.types import SqlType

FOUND = "__FOUND"
_KEY = "key"
_COLUMNS = b"columns"
_TIMEOUT_S = 60.0
_NOT_READY_PAUSE_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The function for `mapInArrow`: adds the table's columns to each row of the stream and drops the key column.

    `place` is the path of the store or a URL. `columns` are (name in the result, name in the table, type).
    `inner`: rows without a partner are dropped.
    """

    place: str
    key: str
    key_type: SqlType
    columns: tuple[tuple[str, str, SqlType], ...]
    inner: bool

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield self._joined(batch)

    def _joined(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        position = batch.schema.get_field_index(self.key)
        found = self._find(batch.column(position))
        arrays = [column for index, column in enumerate(batch.columns) if index != position]
        names = [name for index, name in enumerate(batch.schema.names) if index != position]
        joined = pa.RecordBatch.from_arrays(
            [*arrays, *(found.column(name) for _, name, _ in self.columns)],
            [*names, *(name for name, _, _ in self.columns)],
        )
        return joined.filter(found.column(FOUND)) if self.inner else joined

    def _find(self, keys: pa.Array) -> pa.RecordBatch:
        columns = tuple((name, sql_type) for _, name, sql_type in self.columns)
        if self.place.startswith(("http://", "https://")):
            return _ask(self.place, keys, [name for name, _ in columns])
        rows = read_rows(self.place, [(key,) for key in to_python(keys, self.key_type)])
        return found_batch(rows, columns)


def found_batch(rows: Sequence[dict[str, Any] | None], columns: Sequence[tuple[str, SqlType]]) -> pa.RecordBatch:
    """Rows of a store as Arrow columns; a key without a row has nulls."""
    arrays = [pa.array([row is not None for row in rows], pa.bool_())]
    for name, sql_type in columns:
        arrays.append(arrow_array([None if row is None else row[name] for row in rows], sql_type))
    return pa.RecordBatch.from_arrays(arrays, [FOUND, *(name for name, _ in columns)])


def rows_url(server: str, table: str) -> str:
    """Where the server at this address answers for a table."""
    return f"{server.rstrip('/')}/internal/tables/{quote(table, safe='')}/rows"


def _ask(url: str, keys: pa.Array, names: Sequence[str]) -> pa.RecordBatch:
    question = to_ipc(keys_batch(keys, names))
    deadline = time.monotonic() + _TIMEOUT_S
    while True:
        request = urllib.request.Request(url, data=question, method="POST")
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:
                return from_ipc(answer.read())
        except HTTPError as error:
            # A server that starts runs its queries before it answers.
            if error.code != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                raise EngineError(f"The SQL server refused rows of a table at {url}: {error}") from None
            time.sleep(_NOT_READY_PAUSE_S)
        except URLError as error:
            raise EngineError(
                f"The SQL server cannot be asked for rows of a table at {url}: {error.reason}.",
                hint="Set ksql.advertised.listener to an address of the server that Spark's executors reach.",
            ) from None


def keys_batch(keys: pa.Array, names: Sequence[str]) -> pa.RecordBatch:
    """A question: the keys, and in the schema's metadata the columns that are wanted."""
    schema = pa.schema([pa.field(_KEY, keys.type)], metadata={_COLUMNS: msgspec.json.encode(names)})
    return pa.RecordBatch.from_arrays([keys], schema=schema)


def answer(question: bytes, store: TableStore) -> bytes:
    """The server's end: the answer to a posted question, from the store of the table."""
    batch = from_ipc(question)
    names = msgspec.json.decode(batch.schema.metadata[_COLUMNS], type=list[str])
    types: dict[str, SqlType] = {each.name: each.type for each in store.source.schema.columns} | PSEUDO_COLUMNS
    (key,) = store.source.schema.key
    rows = store.reader.find([(value,) for value in to_python(batch.column(0), key.type)])
    return to_ipc(found_batch(rows, [(name, types[name]) for name in names]))


def to_ipc(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def from_ipc(data: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(data) as reader:
        return reader.read_next_batch()
