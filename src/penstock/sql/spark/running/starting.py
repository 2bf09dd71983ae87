"""Queries start one after the other.

Spark starts a Python process for the source of every query, and gives it ten seconds to report. Many at once on a small
machine would all be too slow; one by one they are quick.
"""

from __future__ import annotations

import threading
import time
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.sql.spark.building import Built

_INITIALIZING = "Initializing sources"
_TOO_SLOW = "worker failed to connect back"
_ATTEMPTS_MAX = 4
_LOOK_S = 0.05
_WAIT_MAX_S = 20.0

_starting = threading.Lock()


def stream_writer(built: Built, query_id: str) -> DataStreamWriter:
    """The query's writer, for the calling thread: that is where Spark looks for the pool, and for settings too."""
    classes: Any = SparkSession
    session: Any = built.session
    classes._get_j_spark_session_class(session._jvm).setActiveSession(session._jsparkSession)
    session.sparkContext.setLocalProperty("spark.scheduler.pool", query_id)
    return built.query.frame.writeStream.queryName(query_id).outputMode(built.query.output_mode)


def start_one_by_one(writer: DataStreamWriter) -> Any:
    """The started query, once its sources are there or have failed."""
    with _starting:
        for _ in range(_ATTEMPTS_MAX - 1):
            query = _start(writer)
            if not _was_too_slow(query):
                return query
        return _start(writer)


def _start(writer: DataStreamWriter) -> Any:
    query = writer.start()
    deadline = time.monotonic() + _WAIT_MAX_S
    while query.isActive and query.status["message"] == _INITIALIZING and time.monotonic() < deadline:
        time.sleep(_LOOK_S)
    return query


def _was_too_slow(query: Any) -> bool:
    return not query.isActive and _TOO_SLOW in str(query.exception())
