"""The walk over a plan, and the shape of what comes out."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as sf

from penstock.sql.errors import NotSupportedError
from penstock.sql.expressions.spark_types import spark_type
from penstock.sql.formats.decoding import DELETED
from penstock.sql.plan.nodes import (
    AggregateNode,
    FilterNode,
    FlatMapNode,
    PlanNode,
    ProjectNode,
    QueryPlan,
    SourceNode,
    StreamStreamJoinNode,
    StreamTableJoinNode,
    TableTableJoinNode,
)
from penstock.sql.plan.walk import nodes, source_nodes
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART
from penstock.sql.spark.operators.aggregate import aggregate_rows
from penstock.sql.spark.operators.context import BuildContext, BuiltQuery, Query
from penstock.sql.spark.operators.facts import output_mode, used_columns, watermark_delay_ms
from penstock.sql.spark.operators.lookup_join import lookup_join_rows
from penstock.sql.spark.operators.rows import Rows, column
from penstock.sql.spark.operators.stateless import filter_rows, flat_map_rows, project_rows, source_rows
from penstock.sql.spark.operators.stream_join import stream_join_rows
from penstock.sql.spark.operators.table_join import table_join_rows


def build(plan: QueryPlan, context: BuildContext) -> BuiltQuery:
    _check_one_changing_result(plan.root)
    query = Query(
        context=context,
        output_mode=output_mode(plan.root),
        watermark_delay_ms=watermark_delay_ms(plan.root),
        used_columns=used_columns(plan.root),
    )
    tables = [node.table for node in nodes(plan.root) if isinstance(node, StreamTableJoinNode)]
    rows = _rows_of(query, plan.root)
    frame = rows.frame
    if not _may_be_empty(plan) and rows.deleted is not None:
        frame = frame.where(~column(rows.deleted))
    frame = frame.select(*_result_columns(plan, rows))
    return BuiltQuery(frame=frame, output_mode=query.output_mode, tables=tuple(tables))


def _may_be_empty(plan: QueryPlan) -> bool:
    """Whether records of the result may have no value."""
    return plan.kind == "TABLE" or any(node.keeps_empty for node in source_nodes(plan.root))


def _check_one_changing_result(root: PlanNode) -> None:
    """Spark lets one result that changes stand on another only through a topic."""
    changing = [node for node in nodes(root) if isinstance(node, AggregateNode)]
    joined_tables = any(isinstance(node, TableTableJoinNode) for node in nodes(root))
    if len(changing) > 1 or (changing and joined_tables):
        what = "A join of tables" if joined_tables else "An aggregate"
        raise NotSupportedError(
            f"{what} cannot be aggregated in the same query.",
            hint="Create it with CREATE TABLE AS SELECT first, and aggregate the result.",
        )


def _rows_of(query: Query, node: PlanNode) -> Rows:
    def below(inner: PlanNode) -> Rows:
        return _rows_of(query, inner)

    match node:
        case SourceNode():
            return source_rows(query, node)
        case FilterNode():
            return filter_rows(query, node, below(node.input))
        case ProjectNode():
            return project_rows(query, node, below(node.input))
        case FlatMapNode():
            return flat_map_rows(query, node, below(node.input))
        case AggregateNode():
            return aggregate_rows(query, node, below(node.input))
        case StreamStreamJoinNode():
            return stream_join_rows(query, node, below(node.left), below(node.right))
        case StreamTableJoinNode():
            return lookup_join_rows(query, node, below(node.stream))
        case TableTableJoinNode():
            return table_join_rows(query, node, below)


def _result_columns(plan: QueryPlan, rows: Rows) -> list[Column]:
    """The columns of the schema in their types, then what every row carries."""
    selected = [
        column(each.name).cast(spark_type(each.type)).alias(each.name)
        for each in (*plan.schema.key, *plan.schema.value)
    ]
    selected.append(column(rows.rowtime).alias(ROWTIME))
    if plan.windowed is not None and rows.window is not None:
        start, end = rows.window
        selected += [column(start).alias(WINDOWSTART), column(end).alias(WINDOWEND)]
    if _may_be_empty(plan):
        deleted = sf.lit(False) if rows.deleted is None else column(rows.deleted)
        selected.append(deleted.alias(DELETED))
    return selected
