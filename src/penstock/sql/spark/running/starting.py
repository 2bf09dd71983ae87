"""Few queries start at once.

Spark starts a Python process for the source of every query, and gives it ten seconds to report. Many at once on a small
machine would all be too slow; a few are quick, and quicker together than one after the other, because a start waits
most of its time. How many a machine bears at a moment is found out: they start one by one, each that was quick lets one
more start beside it, and after one that was too slow they start one by one again. What is done before and after that
does not count.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.sql.spark.building import Built

STARTS_AT_ONCE: Final = max(2, min(4, os.cpu_count() or 1))
"""A start takes about a second of a processor, in Java and in the process of its source."""

_INITIALIZING: Final = "Initializing sources"
_TOO_SLOW: Final = "worker failed to connect back"
_ATTEMPTS_MAX: Final = 4
_LOOK_S: Final = 0.05
_WAIT_MAX_S: Final = 20.0
_QUICK_S: Final = 3.0


class StartBrokenOffError(Exception):
    """The query was stopped before Spark had started it."""


class Turns:
    """Who may start now: at most `count_max`, fewer while the machine is too busy for that."""

    def __init__(self, count_max: int) -> None:
        self.limit = 1
        self._count_max = count_max
        self._count = 0
        self._changed = threading.Condition()

    @contextmanager
    def turn(self, broken_off: Callable[[], bool]) -> Iterator[None]:
        with self._changed:
            while not broken_off() and self._count >= self.limit:
                self._changed.wait(_LOOK_S)
            if broken_off():
                raise StartBrokenOffError
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def was_too_slow(self) -> None:
        with self._changed:
            self.limit = 1

    def was_quick(self) -> None:
        with self._changed:
            self.limit = min(self.limit + 1, self._count_max)
            self._changed.notify_all()


_turns = Turns(STARTS_AT_ONCE)


def stream_writer(built: Built, query_id: str) -> DataStreamWriter:
    """The query's writer, for the calling thread: that is where Spark looks for the pool, and for settings too."""
    classes: Any = SparkSession
    session: Any = built.session
    classes._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
    session.sparkContext.setLocalProperty("spark.scheduler.pool", query_id)
    return built.query.frame.writeStream.queryName(query_id).outputMode(built.query.output_mode)


def start_few_at_once(writer: DataStreamWriter, broken_off: Callable[[], bool] = lambda: False) -> Any:
    """The started query, once its sources are there or have failed. Raises StartBrokenOffError before it has begun."""
    for _ in range(_ATTEMPTS_MAX - 1):
        query = _start(writer, broken_off)
        if not _was_too_slow(query):
            return query
        _turns.was_too_slow()
    return _start(writer, broken_off)


def is_initializing(query: Any) -> bool:
    """Whether Spark still looks for the query's sources."""
    return bool(query.isActive and query.status["message"] == _INITIALIZING)


def _start(writer: DataStreamWriter, broken_off: Callable[[], bool]) -> Any:
    with _turns.turn(broken_off):
        began = time.monotonic()
        query = writer.start()
        while is_initializing(query) and time.monotonic() < began + _WAIT_MAX_S:
            time.sleep(_LOOK_S)
        if query.isActive and time.monotonic() < began + _QUICK_S:
            _turns.was_quick()
        return query


def _was_too_slow(query: Any) -> bool:
    return not query.isActive and _TOO_SLOW in str(query.exception())
