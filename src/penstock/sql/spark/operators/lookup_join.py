"""Stream-table joins: each row of the stream finds the row the table has for it now."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import functions as sf
from pyspark.sql.types import StructField, StructType

from penstock.sql.plan.nodes import SourceNode, StreamTableJoinNode
from penstock.sql.schema import PSEUDO_COLUMNS, ROWTIME
from penstock.sql.spark.lookup import Lookup
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.expressions import spark_text
from penstock.sql.spark.operators.rows import EVENT_TIME, Rows, column, marked_event_time
from penstock.sql.spark.types import spark_type
from penstock.sql.types import BIGINT, SqlType

_KEY = "__KEY"


def lookup_join_rows(query: Query, node: StreamTableJoinNode, stream: Rows) -> Rows:
    (key,) = node.table.schema.key
    found = _table_columns(query, node.table)
    carried, after = stream.carried()
    kept = [name for name in stream.columns if name in query.used_columns and name != ROWTIME]
    text = spark_text(query, node.stream_key, stream.columns, key.type)
    frame = stream.frame.select(*map(column, kept), *carried, sf.expr(text).alias(_KEY))
    lookup = Lookup(
        place=query.context.store_path(node.table),
        key=_KEY,
        key_type=key.type,
        columns=tuple((node.table.prefix + name, name, sql_type) for name, sql_type in found.items()),
        inner=node.kind == "INNER",
    )
    given = [field for field in frame.schema.fields if field.name != _KEY]
    added = [StructField(node.table.prefix + name, spark_type(sql_type)) for name, sql_type in found.items()]
    joined = frame.mapInArrow(lookup, StructType([*given, *added]))
    if after.event_time is not None:
        names = [name for name in joined.columns if name != EVENT_TIME]
        joined = joined.select(*map(column, names), marked_event_time(query, column(EVENT_TIME)))
    columns = {**stream.columns, **{node.table.prefix + name: each for name, each in found.items()}}
    return replace(after, frame=joined, columns={**columns, ROWTIME: BIGINT})


def _table_columns(query: Query, table: SourceNode) -> dict[str, SqlType]:
    """The columns of the table that something above names."""
    columns: dict[str, SqlType] = {each.name: each.type for each in table.schema.columns}
    columns |= PSEUDO_COLUMNS
    return {name: sql_type for name, sql_type in columns.items() if table.prefix + name in query.used_columns}
