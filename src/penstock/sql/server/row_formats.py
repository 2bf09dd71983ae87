"""Rows on the wire: what each becomes (a shape) and how the pieces are strung together (a framing).

Shapes: `QueryShape` is that of /query, `StreamShape` that of /query-stream, `PrintShape` the plain lines of PRINT.
Framings: one JSON array, or a line for each piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

from penstock.sql.expressions.text import format_type
from penstock.sql.server.errors import describe_error
from penstock.sql.server.ports import Row, RunningQuery
from penstock.sql.server.values import encode, show_row


class Shape(Protocol):
    def head(self) -> list[bytes]: ...

    def rows(self, rows: Iterable[Row]) -> list[bytes]: ...

    def end(self) -> list[bytes]: ...

    def failure(self, error: Exception) -> list[bytes]: ...


class QueryShape:
    """`limit` is the query's LIMIT: whether it was reached is the last thing told."""

    def __init__(self, query: RunningQuery, limit: int | None = None) -> None:
        self._query = query
        self._left = limit
        self._show = show_row([sql_type for _, sql_type in query.columns])

    def head(self) -> list[bytes]:
        keys = self._query.key_columns
        schema = ", ".join(
            f"{_quoted(name)} {format_type(sql_type)}{' KEY' if name in keys else ''}"
            for name, sql_type in self._query.columns
        )
        return [encode({"header": {"queryId": self._query.query_id, "schema": schema}})]

    def rows(self, rows: Iterable[Row]) -> list[bytes]:
        pieces = [encode({"row": self._row(row)}) for row in rows]
        self._left = None if self._left is None else self._left - len(pieces)
        return pieces

    def _row(self, row: Row) -> dict[str, Any]:
        shown: dict[str, Any] = {"columns": self._show(row.columns)}
        return shown | {"tombstone": True} if row.tombstone else shown

    def end(self) -> list[bytes]:
        if self._query.kind == "PULL":
            return []
        return [encode({"finalMessage": "Limit Reached" if self._left == 0 else "Query Completed"})]

    def failure(self, error: Exception) -> list[bytes]:
        return [encode({"errorMessage": describe_error(error)})]


class StreamShape:
    def __init__(self, query: RunningQuery) -> None:
        self._query = query
        self._show = show_row([sql_type for _, sql_type in query.columns])

    def head(self) -> list[bytes]:
        names = [name for name, _ in self._query.columns]
        types = [format_type(sql_type) for _, sql_type in self._query.columns]
        return [encode({"queryId": self._query.query_id, "columnNames": names, "columnTypes": types})]

    def rows(self, rows: Iterable[Row]) -> list[bytes]:
        return [encode(self._show(row.columns)) for row in rows]

    def end(self) -> list[bytes]:
        return []

    def failure(self, error: Exception) -> list[bytes]:
        return [encode({"status": "error", **describe_error(error)})]


class PrintShape:
    """Lines of text as they are."""

    def head(self) -> list[bytes]:
        return []

    def rows(self, rows: Iterable[Row]) -> list[bytes]:
        return [str(row.columns[0]).encode() for row in rows]

    def end(self) -> list[bytes]:
        return []

    def failure(self, error: Exception) -> list[bytes]:
        return [encode(describe_error(error))]


class Framing(Protocol):
    """Makes of each piece the bytes that are sent for it, so that they can be sent one by one."""

    def more(self, pieces: Sequence[bytes]) -> list[bytes]: ...

    def last(self, pieces: Sequence[bytes]) -> list[bytes]:
        """As `more`, for the pieces after which nothing comes."""


class Lines:
    def more(self, pieces: Sequence[bytes]) -> list[bytes]:
        return [piece + b"\n" for piece in pieces]

    def last(self, pieces: Sequence[bytes]) -> list[bytes]:
        return self.more(pieces)


class OneArray:
    """An array that is whole at its end only, and in which a piece is sent as soon as it is there."""

    def __init__(self) -> None:
        self._separator = b"["

    def more(self, pieces: Sequence[bytes]) -> list[bytes]:
        return [self._next_separator() + piece for piece in pieces]

    def last(self, pieces: Sequence[bytes]) -> list[bytes]:
        end = b"[]\n" if self._separator == b"[" and not pieces else b"]\n"
        return [*self.more(pieces), end]

    def _next_separator(self) -> bytes:
        separator, self._separator = self._separator, b",\n"
        return separator


class ArrayOfLines:
    """An array whose pieces have a line each, with the comma at its end: clients of /query read it line by line.

    A comma is only written when a piece is known to follow. `is_ended_by_word`: the last piece is not one of the rows,
    so that something follows each of them; otherwise the newest row waits for its successor.
    """

    def __init__(self, *, is_ended_by_word: bool) -> None:
        self._opening = b"["
        self._waiting: list[bytes] = []
        self._waits = not is_ended_by_word

    def more(self, pieces: Sequence[bytes]) -> list[bytes]:
        ready = [*self._waiting, *pieces]
        self._waiting = ready[-1:] if self._waits else []
        return self._opened([piece + b",\n" for piece in (ready[:-1] if self._waits else ready)])

    def last(self, pieces: Sequence[bytes]) -> list[bytes]:
        *before, end = [*self._waiting, *pieces] or [b""]
        return self._opened([*(piece + b",\n" for piece in before), end + b"]\n"])

    def _opened(self, chunks: list[bytes]) -> list[bytes]:
        if chunks:
            chunks[0] = self._opening + chunks[0]
            self._opening = b""
        return chunks


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
