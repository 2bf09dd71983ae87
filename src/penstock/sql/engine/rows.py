"""Results on their way to the one who asked: a bounded queue, or an iterator that is read as it is asked.

A reader takes some rows at a time. One that does not read holds its query back, never the server's memory.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple, Protocol

ROWS_MAX = 10_000
"""Rows that wait for a slow reader."""


class Row(NamedTuple):
    columns: list[Any]
    tombstone: bool = False


class Rows(Protocol):
    """What a query gives, in order."""

    def take(self, count_max: int, timeout_s: float) -> list[Row] | None:
        """Rows that are there or come in time, perhaps none; None at the end. Raises what ended the query badly."""

    def close(self) -> None:
        """The reader has gone."""


class RowQueue:
    """Rows that are pushed. Ends after `limit` rows, if there is one."""

    def __init__(self, limit: int | None = None) -> None:
        self._rows: deque[Row] = deque()
        self._changed = threading.Condition()
        self._left = limit
        self._ended = limit == 0
        self._failure: Exception | None = None

    @property
    def ended(self) -> bool:
        """Whether more rows would be for nobody."""
        return self._ended

    @property
    def full(self) -> bool:
        return len(self._rows) >= ROWS_MAX

    def put(self, rows: Iterable[Row]) -> None:
        """Add rows; the one who adds looks at `full` before."""
        with self._changed:
            if self._ended:
                return
            added = list(rows if self._left is None else islice(rows, self._left))
            self._rows.extend(added)
            if self._left is not None:
                self._left -= len(added)
                self._ended = self._left == 0
            self._changed.notify_all()

    def wait_for_room(self, timeout_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: self._ended or not self.full, timeout_s)

    def end(self, failure: Exception | None = None) -> None:
        with self._changed:
            self._ended = True
            self._failure = self._failure or failure
            self._changed.notify_all()

    def take(self, count_max: int, timeout_s: float) -> list[Row] | None:
        with self._changed:
            self._changed.wait_for(lambda: self._rows or self._ended, timeout_s)
            taken = [self._rows.popleft() for _ in range(min(count_max, len(self._rows)))]
            self._changed.notify_all()
            if taken or not self._ended:
                return taken
            if self._failure is not None:
                raise self._failure
            return None

    def close(self) -> None:
        with self._changed:
            self._rows.clear()
        self.end()


class IteratedRows:
    """Rows that are read when they are asked for."""

    def __init__(self, rows: Iterator[Row], limit: int | None = None) -> None:
        self._rows = rows if limit is None else islice(rows, limit)

    def take(self, count_max: int, timeout_s: float) -> list[Row] | None:
        return list(islice(self._rows, count_max)) or None

    def close(self) -> None:
        self._rows = iter(())
