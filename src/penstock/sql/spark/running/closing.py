"""The door between a query's batches and whoever stops the query.

A batch that begins while the query is closing must raise: returning would tell Spark that it is done. Stopping Spark
inside a running batch prints a long error of its own, so the one who stops waits for the batch first.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class QueryClosingError(Exception):
    """The query is being stopped; the batch will be repeated when it starts again."""


class BatchDoor:
    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = False
        self._closing = False

    @contextmanager
    def batch(self) -> Iterator[None]:
        with self._changed:
            if self._closing:
                raise QueryClosingError("The query is being stopped")
            self._running = True
        try:
            yield
        finally:
            with self._changed:
                self._running = False
                self._changed.notify_all()

    @property
    def closing(self) -> bool:
        return self._closing

    def close(self, timeout_s: float) -> bool:
        """Let no batch begin any more; whether the one that ran is over within the time-out."""
        with self._changed:
            self._closing = True
            return self._changed.wait_for(lambda: not self._running, timeout_s)
