"""`format("penstock")`: what Spark finds, and the readers it gets."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
)
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from penstock.sql.spark.source.fetching import read_ranges
from penstock.sql.spark.source.offsets import from_json, to_json
from penstock.sql.spark.source.options import ReadOptions, read_options, write_options
from penstock.sql.spark.source.planning import Planner
from penstock.sql.spark.source.ranges import OffsetRange, RangesPartition, tasks_for
from penstock.sql.spark.source.records import as_rows, record_schema
from penstock.sql.spark.source.typed import TypedRows, Wanted
from penstock.sql.spark.source.writing import TopicStreamWriter, TopicWriter, check_columns
from penstock.sql.spark.worker_log import WorkerLog


class PenstockDataSource(DataSource):
    """Topics of Penstock and of any Kafka, with the options of Spark's Kafka connector."""

    @classmethod
    def name(cls) -> str:
        return "penstock"

    def schema(self) -> StructType:
        typed = self.options.get("penstock.source")
        if typed is not None:
            return Wanted.from_json(typed).schema
        return record_schema(headers=self.options.get("includeHeaders", "false").lower() == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        return TopicReader(read_options(self.options, streaming=False))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        return TopicStreamReader(read_options(self.options, streaming=True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        if overwrite:
            raise ValueError("a topic cannot be overwritten: use mode append")
        options = write_options(self.options)
        check_columns(schema, options)
        return TopicWriter(options)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        if overwrite:
            raise ValueError("a topic cannot be overwritten: use output mode append or update")
        options = write_options(self.options)
        check_columns(schema, options)
        return TopicStreamWriter(options)


def _read(partition: InputPartition, options: ReadOptions) -> Iterator[pa.RecordBatch]:
    if not isinstance(partition, RangesPartition):
        # Spark makes one of its own when there are none.
        return iter(())
    return itertools.chain(_rows(partition.ranges, options), _settled())


def _rows(ranges: Sequence[OffsetRange], options: ReadOptions) -> Iterator[pa.RecordBatch]:
    if options.typed is None:
        raw = read_ranges(ranges, options, headers=options.include_headers)
        return as_rows(raw, headers=options.include_headers)
    rows = TypedRows(
        options.typed, WorkerLog(client=options.client, topic=options.processing_log, logger=options.logger)
    )
    return rows.decode(read_ranges(ranges, options, headers=rows.needs_headers))


def _settled() -> Iterator[pa.RecordBatch]:
    """No rows. By the end of a task this process has imported what it needs.

    Spark's workers collect garbage after every task, which takes longer than most tasks while there are modules to look
    through.
    """
    if not gc.get_freeze_count():
        gc.collect()
        gc.freeze()
    yield from ()


class TopicReader(DataSourceReader):
    """A batch read: from where to where is settled when it is planned."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options

    def partitions(self) -> Sequence[InputPartition]:
        planner = Planner(self._options)
        try:
            ranges = planner.ranges(planner.initial(), planner.final())
        finally:
            planner.close()
        options = self._options
        return list(
            tasks_for(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition, self._options)


class TopicStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """In the planner's process it has a planner from the first question on; what travels to tasks has none."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._opened: Planner | None = None

    @property
    def _planner(self) -> Planner:
        if self._opened is None:
            self._opened = Planner(self._options)
        return self._opened

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return to_json(self._planner.initial())

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._options.rows_per_trigger_max)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        rows_max = None if isinstance(limit, ReadAllAvailable) else self._options.rows_per_trigger_max
        if isinstance(limit, ReadMaxRows):
            rows_max = limit.max_rows
        return to_json(self._planner.latest(from_json(start), rows_max))

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        return to_json(self._planner.reported()) or None

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._planner.stop_at_present()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        ranges = self._planner.ranges(from_json(start), from_json(end))
        options = self._options
        return list(
            tasks_for(ranges, min_partitions=options.min_partitions, max_records=options.max_records_per_partition)
        )

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return _read(partition, self._options)

    def commit(self, end: dict[str, Any]) -> None:
        """Comes only when the next batch is made, which may be never: the planner shows progress before."""

    def stop(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None
