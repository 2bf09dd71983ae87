"""A push query that Spark computes: nothing is written, nothing is kept; its checkpoint lives as long as it does."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow
from pyspark.sql import DataFrame

from penstock.sql.engine.chains import result_columns
from penstock.sql.engine.rows import Row, RowQueue
from penstock.sql.errors import EngineError
from penstock.sql.formats.decoding import DELETED
from penstock.sql.formats.rows import python_rows
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.spark.building import Builder
from penstock.sql.spark.running.closing import BatchDoor, QueryClosingError
from penstock.sql.spark.running.java_end import is_java_gone
from penstock.sql.spark.running.reasons import reason_of
from penstock.sql.spark.running.starting import start_few_at_once, stream_writer
from penstock.sql.types import SqlType

_DOOR_TIMEOUT_S = 10.0
_ROOM_TIMEOUT_S = 1.0


class TransientQuery:
    def __init__(self, plan: QueryPlan, builder: Builder, queue: RowQueue, folder: Path) -> None:
        self._plan = plan
        self._builder = builder
        self._queue = queue
        self._folder = folder / quote(plan.query_id, safe="")
        self._columns = result_columns(plan)
        self._door = BatchDoor()
        self._looked_up: tuple[Any, ...] = ()
        self._streaming: Any = None

    def start(self) -> None:
        built = self._builder.build(self._plan)
        self._looked_up = built.looked_up
        writer = stream_writer(built, self._plan.query_id)
        self._folder.mkdir(parents=True)
        self._streaming = start_few_at_once(
            writer.option("checkpointLocation", str(self._folder)).foreachBatch(self._take)
        )
        threading.Thread(target=self._watch, name=f"watch-{self._plan.query_id}", daemon=True).start()

    def stop(self) -> None:
        self._queue.end()
        self._door.close(_DOOR_TIMEOUT_S)
        try:
            if self._streaming is not None:
                self._streaming.stop()
        except Exception as error:
            if not is_java_gone(error):
                raise
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)

    def _take(self, frame: DataFrame, batch_id: int) -> None:
        with self._door.batch():
            for table in self._looked_up:
                table.wait_until_current()
            rows = rows_of(frame.toArrow(), self._columns)
            while not self._queue.wait_for_room(_ROOM_TIMEOUT_S):
                if self._door.closing:
                    raise QueryClosingError("The query is being stopped")
            self._queue.put(rows)

    def _watch(self) -> None:
        """Tell the reader when Spark gives up."""
        try:
            self._streaming.awaitTermination()
        except Exception as error:  # noqa: BLE001 - whatever ended the query is told to the one who reads it
            self._queue.end(EngineError(reason_of(error)))
        self._queue.end()


def rows_of(table: pyarrow.Table, columns: Mapping[str, SqlType]) -> list[Row]:
    deleted = table[DELETED].to_pylist() if DELETED in table.column_names else [False] * table.num_rows
    return [Row(list(row), bool(gone)) for row, gone in zip(python_rows(table, columns), deleted, strict=True)]
