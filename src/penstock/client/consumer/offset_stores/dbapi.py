"""Offsets in a table of a SQL database, through any driver of Python's DB-API (PEP 249).

The SQL is plain: CREATE TABLE IF NOT EXISTS, SELECT, UPDATE, and INSERT when the update found no row. So the same
statements serve SQLite, PostgreSQL, MySQL and others; only the marks for parameters differ, which the driver's module
says (`paramstyle`).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from penstock.base.types import TopicPartition
from penstock.client.core.types import OffsetAndMetadata

_MARKS: Final[Mapping[str, Callable[[int], str]]] = {
    "qmark": lambda number: "?",
    "format": lambda number: "%s",
    "pyformat": lambda number: f"%(p{number})s",
    "numeric": lambda number: f":{number}",
    "named": lambda number: f":p{number}",
}
_NAMED: Final = frozenset({"pyformat", "named"})
_TABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)?")

_CREATE: Final = """CREATE TABLE IF NOT EXISTS {table} (
    consumer_group VARCHAR(255) NOT NULL, topic VARCHAR(255) NOT NULL, partition_id INTEGER NOT NULL,
    next_offset BIGINT NOT NULL, leader_epoch INTEGER NOT NULL, metadata VARCHAR(4096) NOT NULL,
    PRIMARY KEY (consumer_group, topic, partition_id))"""
_SELECT: Final = (
    "SELECT next_offset, metadata, leader_epoch FROM {table} "
    "WHERE consumer_group = {} AND topic = {} AND partition_id = {}"
)
_UPDATE: Final = (
    "UPDATE {table} SET next_offset = {}, leader_epoch = {}, metadata = {} "
    "WHERE consumer_group = {} AND topic = {} AND partition_id = {}"
)
_INSERT: Final = (
    "INSERT INTO {table} (next_offset, leader_epoch, metadata, consumer_group, topic, partition_id) "
    "VALUES ({}, {}, {}, {}, {}, {})"
)


class DbApiOffsetStore:
    """`connect` is a function that makes a connection (used and closed for each call), or an open connection.

    With `save(..., connection=yours)` the rows become part of the transaction that is open there: nothing is committed
    here. Otherwise the store commits by itself. The table is made at the first use; where that would end an open
    transaction (MySQL), call `create_table()` beforehand and give `create=False`.
    """

    def __init__(
        self,
        connect: Any,
        *,
        table: str = "penstock_offsets",
        paramstyle: str | None = None,
        create: bool = True,
    ) -> None:
        if not _TABLE.fullmatch(table):
            raise ValueError(f"{table!r} is not a plain name for a table: letters, digits, underscores, one dot")
        if paramstyle is not None and paramstyle not in _MARKS:
            raise ValueError(f"paramstyle {paramstyle!r} is not one of {', '.join(_MARKS)}")
        self._connect = connect
        self._table = table
        self._paramstyle = paramstyle
        self._must_create = create

    def create_table(self, connection: Any = None) -> None:
        """Make the table unless it exists. Some databases commit what is open when a table is made."""
        with self._using(connection) as (cursor, _):
            cursor.execute(_CREATE.format(table=self._table))
        # Made in the user's transaction it may be rolled back.
        self._must_create = self._must_create and connection is not None

    def load(
        self, group: str, partitions: Iterable[TopicPartition], *, connection: Any = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Offsets of these partitions, as far as there are any."""
        self._ensure_table(connection)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        with self._using(connection) as (cursor, style):
            for topic, partition in partitions:
                self._execute(cursor, style, _SELECT, (group, topic, partition))
                row = cursor.fetchone()
                if row is not None:
                    found[TopicPartition(topic, partition)] = OffsetAndMetadata(int(row[0]), row[1], int(row[2]))
        return found

    def save(self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata], *, connection: Any = None) -> None:
        """Keep the offsets; with a `connection`, inside its open transaction."""
        self._ensure_table(connection)
        with self._using(connection) as (cursor, style):
            for (topic, partition), offset in sorted(offsets.items()):
                row = (offset.offset, offset.leader_epoch, offset.metadata, group, topic, partition)
                self._execute(cursor, style, _UPDATE, row)
                if cursor.rowcount == 0:
                    self._execute(cursor, style, _INSERT, row)

    def _ensure_table(self, connection: Any) -> None:
        # Where the user's transaction is open: another connection might have to wait for its end.
        if self._must_create:
            self.create_table(connection)

    @contextmanager
    def _using(self, connection: Any) -> Iterator[tuple[Any, str]]:
        """A cursor in the user's transaction, or in one of our own which ends here."""
        if connection is not None:
            with _cursor(connection) as cursor:
                yield cursor, self._style_of(connection)
            return
        made = not hasattr(self._connect, "cursor")
        ours = self._connect() if made else self._connect
        try:
            with _cursor(ours) as cursor:
                yield cursor, self._style_of(ours)
            ours.commit()
        except BaseException:
            ours.rollback()
            raise
        finally:
            if made:
                ours.close()

    def _style_of(self, connection: Any) -> str:
        return self._paramstyle or paramstyle_of(connection)

    def _execute(self, cursor: Any, style: str, statement: str, values: Sequence[object]) -> None:
        mark = _MARKS[style]
        text = statement.format(*(mark(number) for number in range(1, len(values) + 1)), table=self._table)
        if style in _NAMED:
            cursor.execute(text, {f"p{number}": value for number, value in enumerate(values, 1)})
        else:
            cursor.execute(text, tuple(values))


@contextmanager
def _cursor(connection: Any) -> Iterator[Any]:
    cursor = connection.cursor()
    try:
        yield cursor
    finally:
        cursor.close()


def paramstyle_of(connection: Any) -> str:
    """What the driver's module says; qmark for SQLite and for modules that say nothing."""
    parts = type(connection).__module__.split(".")
    for length in range(len(parts), 0, -1):
        style = getattr(sys.modules.get(".".join(parts[:length])), "paramstyle", None)
        if style in _MARKS:
            return str(style)
    return "qmark"
