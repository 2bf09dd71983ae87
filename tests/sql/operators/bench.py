"""Runs one statement on a real Spark, batch by batch.

Each source is a folder of Parquet files, one per batch, read one at a time: a batch has exactly the rows the test gave
it, and its result is what Spark gave for it. Parser, planner and operators are the real ones; topics are not needed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.catalog.declaring import declare_source
from penstock.sql.catalog.properties import read_properties
from penstock.sql.formats.decoding import DELETED
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.parser import parse
from penstock.sql.plan.nodes import QueryPlan, SourceNode
from penstock.sql.plan.planner import SinkRequest, plan_query
from penstock.sql.schema import PSEUDO_COLUMNS, ROWOFFSET, ROWPARTITION, ROWTIME, WINDOW_COLUMNS
from penstock.sql.spark.operators import BuildContext, BuiltQuery, build
from penstock.sql.spark.types import source_schema
from penstock.sql.spark.values import arrow_array
from penstock.sql.spark.worker_log import WorkerLog
from penstock.sql.statements import CreateAsSelect, CreateSource, SelectStatement
from penstock.sql.types import BOOLEAN, SqlType

Row = dict[str, Any]
Batch = Mapping[str, Sequence[Row]]
"""Rows by the name of their source."""


def row(time_ms: int, **columns: Any) -> Row:
    """A row with this ROWTIME; columns that are left out are null."""
    return {ROWTIME: time_ms, **columns}


def gone(time_ms: int, **key: Any) -> Row:
    """A deletion from a table."""
    return {ROWTIME: time_ms, DELETED: True, **key}


@dataclass
class Bench:
    spark: SparkSession
    folder: Path
    functions: FunctionRegistry = field(default_factory=FunctionRegistry.builtin)
    catalog: Catalog = field(default_factory=Catalog)
    stores: dict[str, str] = field(default_factory=dict)
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def declare(self, statements: str) -> None:
        """CREATE STREAM and CREATE TABLE; what follows WITH may be left out."""
        with_ = " WITH (KAFKA_TOPIC='t', FORMAT='JSON')"
        for text in filter(str.strip, statements.split(";")):
            whole = text if " WITH " in text.upper() else text.rstrip() + with_
            [parsed] = parse(whole + ";")
            assert isinstance(parsed.statement, CreateSource)
            self.catalog = self.catalog.with_source(declare_source(parsed.statement, whole))

    def plan(self, text: str) -> QueryPlan:
        [parsed] = parse(text if text.endswith(";") else text + ";")
        match parsed.statement:
            case SelectStatement(query=query):
                return plan_query(query, self.catalog, self.functions, query_id="q", text=text).plan
            case CreateAsSelect(query=query, name=name, kind=kind, properties=given):
                sink = SinkRequest(name=name, kind=kind, properties=read_properties(given, of_query=True))
                return plan_query(query, self.catalog, self.functions, query_id="q", text=text, sink=sink).plan
        raise AssertionError(f"not a query: {text}")

    def build(self, text: str, batches: Sequence[Batch] = ()) -> BuiltQuery:
        folders = {name: self._write(name, batches) for name in self.catalog.sources}
        session = self.spark.newSession()
        session.conf.set("spark.sql.shuffle.partitions", 2)
        context = BuildContext(
            spark=session,
            functions=self.functions,
            source_frame=lambda node: _read(session, folders[node.name], node),
            store_path=lambda node: self.stores[node.name],
            log=WorkerLog(client={}, topic=None, logger="processing.q"),
        )
        return build(self.plan(text), context)

    def run(self, text: str, *batches: Batch) -> list[list[Row]]:
        """What each batch gives, one list per batch that was given."""
        results = self.run_all(text, *batches)
        assert not any(results[len(batches) :]), "rows after the last batch: use run_all"
        return results[: len(batches)]

    def run_all(self, text: str, *batches: Batch) -> list[list[Row]]:
        """The same, and what batches without input give afterwards."""
        built = self.build(text, batches)
        results: dict[int, list[Row]] = {}

        def take(frame: DataFrame, number: int) -> None:
            results[number] = frame.toArrow().to_pylist()

        query = (
            built.frame.writeStream.outputMode(built.output_mode)
            .option("checkpointLocation", str(self.folder / f"checkpoint-{next(self._numbers)}"))
            .trigger(availableNow=True)
            .foreachBatch(take)
            .start()
        )
        query.awaitTermination()
        return [results[number] for number in sorted(results)]

    def _write(self, name: str, batches: Sequence[Batch]) -> Path:
        folder = self.folder / f"{name}-{next(self._numbers)}"
        folder.mkdir(parents=True)
        node = self.catalog.sources[name].node()
        offsets = itertools.count()
        for number, batch in enumerate(batches):
            rows = [{ROWPARTITION: 0, ROWOFFSET: next(offsets), DELETED: False, **each} for each in batch.get(name, ())]
            path = folder / f"{number:04}.parquet"
            pq.write_table(_table(node, rows), path)
            os.utime(path, (number + 1, number + 1))
        return folder


def columns_of(node: SourceNode) -> dict[str, SqlType]:
    columns: dict[str, SqlType] = {each.name: each.type for each in (*node.schema.columns, *node.schema.headers)}
    columns |= PSEUDO_COLUMNS if node.windowed is None else PSEUDO_COLUMNS | WINDOW_COLUMNS
    return {**columns, DELETED: BOOLEAN}


def _table(node: SourceNode, rows: Sequence[Row]) -> pa.Table:
    columns = columns_of(node)
    unknown = {name for each in rows for name in each} - columns.keys() - {DELETED}
    assert not unknown, f"{node.name} has no column {unknown}"
    arrays = [arrow_array([each.get(name) for each in rows], sql_type) for name, sql_type in columns.items()]
    return pa.Table.from_arrays(arrays, names=list(columns))


def _read(session: SparkSession, folder: Path, node: SourceNode) -> DataFrame:
    unprefixed = msgspec.structs.replace(node, prefix="")
    frame = session.readStream.schema(source_schema(unprefixed)).option("maxFilesPerTrigger", 1).parquet(str(folder))
    return frame.toDF(*source_schema(node).names)
