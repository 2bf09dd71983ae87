"""One table in one SQLite file.

    rows      the key columns in storage form, the window's bounds, time and place of the record, and the packed row
    position  per partition the offset after the last record that was applied
    about     the source as JSON and the id of the topic: what the file was built from

One writer (the follower), any number of readers in this and other processes (WAL). Waiting readers are woken by
`applied`.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import ROWOFFSET, ROWPARTITION, ROWTIME, WINDOWEND, WINDOWSTART
from penstock.sql.stores.values import RowPacker, as_it_is, is_ordered, storage_form

_BUSY_TIMEOUT_S = 30
_decode_source = msgspec.json.Decoder(SourceNode).decode
"""Made here once: two threads that make the decoder of a recursive type at the same time crash msgspec."""
_KEYS_AT_ONCE = 500
"""Keys in one SELECT, below SQLite's limit of variables."""


class Bounds(NamedTuple):
    """An inclusive interval; None is open."""

    low: Any = None
    high: Any = None


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """Which rows to read: a superset of what a predicate wants, that SQLite finds by its index."""

    keys: tuple[tuple[Any, ...], ...] | None = None
    key_bounds: Bounds = Bounds()
    window_start: Bounds = Bounds()
    window_end: Bounds = Bounds()


class Change(NamedTuple):
    """A row of the table, or its deletion (`values` None)."""

    key: tuple[Any, ...]
    window: tuple[int, int] | None
    values: tuple[Any, ...] | None
    rowtime: int
    partition: int
    offset: int


class TableLayout:
    """The columns of a table in their order, and the SQL that reads and writes them."""

    def __init__(self, source: SourceNode) -> None:
        schema = source.schema
        self.names = [column.name for column in schema.columns]
        self.key_types = [column.type for column in schema.key]
        self.windowed = source.windowed is not None
        self.packer = RowPacker([column.type for column in schema.columns])
        forms = [storage_form(sql_type) for sql_type in self.key_types]
        self._forms = None if all(form is as_it_is for form in forms) else forms

    @cached_property
    def key_columns(self) -> list[str]:
        return [f"k{index}" for index in range(len(self.key_types))]

    @cached_property
    def identity(self) -> list[str]:
        """The columns that tell rows apart."""
        return [*self.key_columns, "window_start", "window_end"] if self.windowed else self.key_columns

    def identify(self, key: Sequence[Any], window: tuple[int, int] | None) -> tuple[Any, ...]:
        if self._forms is not None:
            key = [form(value) for form, value in zip(self._forms, key, strict=True)]
        return (*key, *window) if window is not None else tuple(key)

    def row(self, stored: tuple[Any, ...]) -> dict[str, Any]:
        packed, rowtime, partition, offset, *window = stored
        row = dict(zip(self.names, self.packer.unpack(packed), strict=True))
        row[ROWTIME], row[ROWPARTITION], row[ROWOFFSET] = rowtime, partition, offset
        if window:
            row[WINDOWSTART], row[WINDOWEND] = window
        return row

    @cached_property
    def select(self) -> str:
        window = ", window_start, window_end" if self.windowed else ""
        return f'SELECT packed, rowtime, partition, "offset"{window} FROM rows'

    @cached_property
    def select_with_key(self) -> str:
        return self.select.replace("packed", ", ".join([*self.key_columns, "packed"]), 1)

    def conditions(self, selection: Selection) -> tuple[list[str], list[Any]]:
        ordered = len(self.key_types) == 1 and is_ordered(self.key_types[0])
        wanted = [("k0", self._key_bounds(selection.key_bounds) if ordered else Bounds())]
        if self.windowed:
            wanted += [("window_start", selection.window_start), ("window_end", selection.window_end)]
        texts, values = [], []
        for column, bounds in wanted:
            for operator, bound in ((">=", bounds.low), ("<=", bounds.high)):
                if bound is not None:
                    texts.append(f"{column} {operator} ?")
                    values.append(bound)
        return texts, values

    def _key_bounds(self, bounds: Bounds) -> Bounds:
        form = storage_form(self.key_types[0])
        return Bounds(*(None if bound is None else form(bound) for bound in bounds))


class TableReader:
    """Reads a table file; for one thread."""

    def __init__(self, connection: sqlite3.Connection, layout: TableLayout) -> None:
        self._connection = connection
        self._layout = layout

    def rows(self, selection: Selection) -> Iterator[dict[str, Any]]:
        """Rows in the order of their keys."""
        if selection.keys is None:
            yield from self._select(*self._layout.conditions(selection))
            return
        for key in dict.fromkeys(selection.keys):
            texts, values = self._layout.conditions(selection)
            texts += [f"{column} = ?" for column in self._layout.key_columns]
            yield from self._select(texts, [*values, *self._layout.identify(key, None)])

    def _select(self, texts: list[str], values: list[Any]) -> Iterator[dict[str, Any]]:
        where = f" WHERE {' AND '.join(texts)}" if texts else ""
        order = f" ORDER BY {', '.join(self._layout.identity)}"
        for stored in self._connection.execute(self._layout.select + where + order, values):
            yield self._layout.row(stored)

    def find(self, keys: Sequence[tuple[Any, ...]]) -> list[dict[str, Any] | None]:
        """The row of each key of an unwindowed table, or None."""
        layout = self._layout
        forms = [None if None in key else layout.identify(key, None) for key in keys]
        found: dict[tuple[Any, ...], dict[str, Any]] = {}
        wanted = [form for form in dict.fromkeys(forms) if form is not None]
        columns = ", ".join(layout.key_columns)
        marks = "(" + ", ".join("?" * len(layout.key_columns)) + ")"
        for start in range(0, len(wanted), _KEYS_AT_ONCE):
            some = wanted[start : start + _KEYS_AT_ONCE]
            text = f"{layout.select_with_key} WHERE ({columns}) IN (VALUES {', '.join([marks] * len(some))})"
            for stored in self._connection.execute(text, [value for form in some for value in form]):
                found[stored[: len(layout.key_columns)]] = layout.row(stored[len(layout.key_columns) :])
        return [None if form is None else found.get(form) for form in forms]


class TableStore:
    """The table of one source. Opens the file, or makes it anew when it was built from something else."""

    def __init__(self, path: Path, source: SourceNode, topic_id: str, retention_ms: int | None = None) -> None:
        self.path = path
        self.source = source
        self.layout = TableLayout(source)
        self._retention_ms = retention_ms
        self._readers = threading.local()
        self._changed = threading.Condition()
        self._writing = threading.Lock()
        self._stream_time = 0
        self.failure: Exception | None = None
        self._writer = self._open(msgspec.json.encode(source).decode(), topic_id)
        self._position = dict(self._writer.execute('SELECT partition, "offset" FROM position'))

    def _open(self, about: str, topic_id: str) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        connection = _built_from(self.path, (about, topic_id))
        if connection is None:
            remove(self.path)
            connection = _connect(self.path)
            self._create(connection, about, topic_id)
        return connection

    def _create(self, connection: sqlite3.Connection, about: str, topic_id: str) -> None:
        keys = ", ".join(self.layout.key_columns)
        window = ", window_start INTEGER, window_end INTEGER" if self.layout.windowed else ""
        identity = ", ".join(self.layout.identity)
        with connection:
            connection.execute("CREATE TABLE about (source TEXT, topic_id TEXT)")
            connection.execute('CREATE TABLE position (partition INTEGER PRIMARY KEY, "offset" INTEGER)')
            connection.execute(
                f"CREATE TABLE rows ({keys}{window}, rowtime INTEGER, partition INTEGER, "
                f'"offset" INTEGER, packed BLOB, PRIMARY KEY ({identity})) WITHOUT ROWID'
            )
            connection.execute("INSERT INTO about VALUES (?, ?)", (about, topic_id))

    @property
    def position(self) -> Mapping[int, int]:
        return self._position

    @property
    def reader(self) -> TableReader:
        """The reader of the calling thread."""
        reader: TableReader | None = getattr(self._readers, "reader", None)
        if reader is None:
            reader = self._readers.reader = TableReader(_connect(self.path), self.layout)
        return reader

    def apply(self, changes: Iterable[Change], position: Mapping[int, int]) -> None:
        """Take over changes and the position after them, both or neither. Of a key the last change counts."""
        identify = self.layout.identify
        last = {identify(change.key, change.window): change for change in changes}
        gone = [identity for identity, change in last.items() if change.values is None]
        with self._writing, self._writer:
            self._delete(gone)
            self._insert([(identity, change) for identity, change in last.items() if change.values is not None])
            self._purge(max((change.rowtime for change in last.values()), default=0))
            self._writer.executemany("INSERT OR REPLACE INTO position VALUES (?, ?)", position.items())
        with self._changed:
            self._position = {**self._position, **position}
            self._changed.notify_all()

    def _delete(self, identities: list[tuple[Any, ...]]) -> None:
        condition = " AND ".join(f"{column} = ?" for column in self.layout.identity)
        self._writer.executemany(f"DELETE FROM rows WHERE {condition}", identities)

    def _insert(self, changes: list[tuple[tuple[Any, ...], Change]]) -> None:
        pack = self.layout.packer.pack
        rows = [
            (*identity, change.rowtime, change.partition, change.offset, pack(change.values or ()))
            for identity, change in changes
        ]
        marks = ", ".join("?" * (len(self.layout.identity) + 4))
        self._writer.executemany(f"INSERT OR REPLACE INTO rows VALUES ({marks})", rows)

    def _purge(self, newest_ms: int) -> None:
        """Windows that ended longer ago than their retention are not served any more."""
        self._stream_time = max(self._stream_time, newest_ms)
        if self._retention_ms is not None and self.layout.windowed:
            self._writer.execute("DELETE FROM rows WHERE window_end < ?", (self._stream_time - self._retention_ms,))

    def contains(self, identities: Sequence[tuple[tuple[Any, ...], tuple[int, int] | None]]) -> list[bool]:
        """Which of these rows (key and window) are there."""
        condition = " AND ".join(f"{column} = ?" for column in self.layout.identity)
        text = f"SELECT 1 FROM rows WHERE {condition}"
        execute = self.reader._connection.execute
        return [
            None not in key and execute(text, self.layout.identify(key, window)).fetchone() is not None
            for key, window in identities
        ]

    def wait_for(self, position: Mapping[int, int], timeout_s: float) -> bool:
        """Whether the store reached these offsets within the time-out. Raises what stopped its follower."""
        with self._changed:
            return self._changed.wait_for(lambda: self._reached(position), timeout_s)

    def _reached(self, position: Mapping[int, int]) -> bool:
        if self.failure is not None:
            raise self.failure
        return all(self._position.get(partition, 0) >= offset for partition, offset in position.items())

    def fail(self, failure: Exception) -> None:
        """Tell whoever waits that no more changes will come."""
        with self._changed:
            self.failure = failure
            self._changed.notify_all()

    def close(self) -> None:
        with self._writing:
            self._writer.close()


def _built_from(path: Path, about: tuple[str, str]) -> sqlite3.Connection | None:
    """The file, if there is a sound one that was built from this."""
    try:
        connection = _connect(path)
        if connection.execute("SELECT source, topic_id FROM about").fetchone() == about:
            return connection
        connection.close()
    except sqlite3.DatabaseError:
        pass
    return None


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=OFF")  # a store that a crash of the machine damages is built again
    return connection


def remove(path: Path) -> None:
    """Delete a store's files."""
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


_open_readers: dict[str, tuple[int, TableReader]] = {}
"""By path, with the number of the file: a store that was built again is another file under the same name.

Of a worker process, which has one thread and reads the same few tables for its whole life.
"""


def read_rows(path: str, keys: Sequence[tuple[Any, ...]]) -> list[dict[str, Any] | None]:
    """The row of each key, or None: for worker processes on the machine that has the file."""
    number = os.stat(path).st_ino
    known, reader = _open_readers.get(path, (None, None))
    if reader is None or known != number:
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=_BUSY_TIMEOUT_S, check_same_thread=False)
        source = _decode_source(connection.execute("SELECT source FROM about").fetchone()[0])
        reader = TableReader(connection, TableLayout(source))
        _open_readers[path] = number, reader
    return reader.find(keys)
