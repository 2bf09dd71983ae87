"""From a plan to a Spark frame that is ready to start: sources, look-ups and settings filled in."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from pyspark.sql import DataFrame, SparkSession

from penstock.sql import processing_log
from penstock.sql.engine.properties import FAIL_ON_DATA_LOSS, ROWS_PER_BATCH, is_read_from_beginning
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.kafka import KafkaAccess, query_group
from penstock.sql.plan.nodes import AggregateNode, QueryPlan, SourceNode
from penstock.sql.plan.walk import nodes
from penstock.sql.spark.lookup import rows_url
from penstock.sql.spark.operators import BuildContext, BuiltQuery, build
from penstock.sql.spark.operators.facts import used_columns
from penstock.sql.spark.source.frame import SourceOptions, source_frame
from penstock.sql.spark.worker_log import WorkerLog
from penstock.sql.stores.stores import OpenTable, Stores
from penstock.sql.types import BYTES, STRING, Decimal, Scalar

_ROWS_MAX: Final = 200_000
_COUNTED_ROWS_MAX: Final = 1_000_000
"""Of a query that folds its rows into numbers and times: what it holds and gives is small."""
_LARGE: Final = (STRING, BYTES)
_OPTIONS: Final = re.compile(r"StreamingRelationV2 \S+ (\w+), \S+ \[.*\], (\[[^\[\]]*#[^\[\]]*\]).*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """A frame in its own session, and the tables that must be current before each of its batches."""

    session: SparkSession
    query: BuiltQuery
    looked_up: tuple[OpenTable, ...]


class Builder:
    def __init__(
        self,
        spark: SparkSession,
        kafka: KafkaAccess,
        stores: Stores,
        functions: FunctionRegistry,
        shuffle_partitions: int,
        lookup_url: str | None = None,
    ) -> None:
        self.spark = spark
        self._kafka = kafka
        self._stores = stores
        self._functions = functions
        self._shuffle_partitions = shuffle_partitions
        self._lookup_url = lookup_url
        self._checked: tuple[QueryPlan, Built] | None = None

    def check(self, plan: QueryPlan) -> None:
        """Build, and keep the result for whoever starts this plan next."""
        self._checked = (plan, self._build(plan))

    def build(self, plan: QueryPlan) -> Built:
        checked, self._checked = self._checked, None
        return checked[1] if checked is not None and checked[0] == plan else self._build(plan)

    def _build(self, plan: QueryPlan) -> Built:
        """The plan as a streaming frame. Its session is its own, so that settings of queries do not meet."""
        session = self.spark.newSession()
        session.conf.set("spark.sql.shuffle.partitions", self._shuffle_partitions)
        context = BuildContext(
            spark=session,
            functions=self._functions,
            source_frame=lambda node: self._source_frame(session, plan, node),
            store_path=self._store_path,
            log=self._log(plan),
            shuffle_partitions=self._shuffle_partitions,
        )
        query = build(plan, context)
        return Built(session=session, query=query, looked_up=tuple(self._table(node) for node in query.tables))

    def explain(self, plan: QueryPlan) -> str:
        """The plan as Spark understands it. How it is run is decided batch by batch: only a running query has that."""
        frame: Any = self.build(plan).query.frame
        return without_options(frame._jdf.queryExecution().analyzed().toString())

    def _source_frame(self, session: SparkSession, plan: QueryPlan, node: SourceNode) -> DataFrame:
        log = self._log(plan)
        options = SourceOptions(
            bootstrap_servers=self._kafka.bootstrap_servers,
            client_properties=dict(self._kafka.properties),
            starting=_starting(plan, node),
            group_id=query_group(self._kafka.service_id, plan.query_id),
            processing_log=log.topic,
            logger=log.logger,
            max_rows_per_trigger=_rows_per_batch(plan),
            used=used_columns(plan.root) | {each.name for each in plan.schema.columns},
            fail_on_data_loss=str(plan.properties.get(FAIL_ON_DATA_LOSS, "true")).lower() != "false",
        )
        return source_frame(session, node, options)

    def _log(self, plan: QueryPlan) -> WorkerLog:
        client = {name: str(value) for name, value in self._kafka.properties.items()}
        return WorkerLog(
            client=client | {"bootstrap.servers": self._kafka.bootstrap_servers},
            topic=processing_log.topic_name(self._kafka.service_id),
            logger=f"processing.{plan.query_id}",
        )

    def _store_path(self, node: SourceNode) -> str:
        """Where Spark's workers find the rows of a table: its file, or this server when they may be elsewhere."""
        path = self._table(node).store.path
        return str(path) if self._lookup_url is None else rows_url(self._lookup_url, node.name)

    def _table(self, node: SourceNode) -> OpenTable:
        return self._stores.open(unprefixed(node))


def _rows_per_batch(plan: QueryPlan) -> int:
    results = [each.type for node in nodes(plan.root) if isinstance(node, AggregateNode) for each in node.aggregations]
    is_counted = bool(results) and all(isinstance(each, Scalar | Decimal) and each not in _LARGE for each in results)
    return int(plan.properties.get(ROWS_PER_BATCH, _COUNTED_ROWS_MAX if is_counted else _ROWS_MAX))


def _starting(plan: QueryPlan, node: SourceNode) -> str:
    """In the words of the source's option. A topic that was not there with the statement is read from its end."""
    if is_read_from_beginning(node, plan.properties):
        return "earliest"
    starts = plan.starts.get(node.topic)
    return "latest" if starts is None else json.dumps({node.topic: starts})


def without_options(spark_plan: str) -> str:
    """A plan without the options of its sources, which are long and may hold passwords."""
    return _OPTIONS.sub(r"StreamingRelationV2 \1 \2", spark_plan)


def unprefixed(node: SourceNode) -> SourceNode:
    """The source as its table is stored: the same for every query that reads it."""
    return SourceNode(
        name=node.name,
        kind=node.kind,
        topic=node.topic,
        schema=node.schema,
        key_format=node.key_format,
        value_format=node.value_format,
        timestamp=node.timestamp,
        windowed=node.windowed,
    )
