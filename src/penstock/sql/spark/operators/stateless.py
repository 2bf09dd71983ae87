"""Operators that look at one row at a time. They keep the order of rows."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column
from pyspark.sql import functions as sf

from penstock.sql.expressions.nodes import NamedExpression
from penstock.sql.expressions.spark_types import quoted, spark_type
from penstock.sql.formats.decoding import DELETED
from penstock.sql.plan.nodes import FilterNode, FlatMapNode, ProjectNode, SourceNode
from penstock.sql.schema import PSEUDO_COLUMNS, ROWOFFSET, ROWPARTITION, ROWTIME, WINDOW_COLUMNS, WINDOWEND, WINDOWSTART
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.expressions import spark_text, type_of
from penstock.sql.spark.operators.rows import Rows, column
from penstock.sql.types import SqlType

_ZIPPED = "__ZIPPED"
_ITEMS = "__ITEMS_"


def source_rows(query: Query, node: SourceNode) -> Rows:
    columns: dict[str, SqlType] = {each.name: each.type for each in (*node.schema.columns, *node.schema.headers)}
    columns |= PSEUDO_COLUMNS if node.windowed is None else PSEUDO_COLUMNS | WINDOW_COLUMNS

    frame = query.context.source_frame(node)
    present = set(frame.columns)

    def prefixed(*names: str) -> tuple[str, ...]:
        return tuple(node.prefix + name for name in names)

    return Rows(
        frame=frame,
        kind=node.kind,
        columns={node.prefix + name: sql_type for name, sql_type in columns.items() if node.prefix + name in present},
        key=prefixed(*(each.name for each in node.schema.key)),
        rowtime=node.prefix + ROWTIME,
        order=prefixed(ROWPARTITION, ROWOFFSET),
        deleted=node.prefix + DELETED if node.marks_deletions else None,
        window=None if node.windowed is None else (node.prefix + WINDOWSTART, node.prefix + WINDOWEND),
    )


def filter_rows(query: Query, node: FilterNode, rows: Rows) -> Rows:
    return matching(rows, spark_text(query, node.predicate, rows.columns))


def matching(rows: Rows, condition: str) -> Rows:
    """A row that does not match is dropped from a stream, and a deletion in a table, where it may have matched once."""
    if rows.kind == "STREAM":
        return replace(rows, frame=rows.frame.where(condition))
    deleted = sf.expr(f"NOT coalesce({condition}, false)")
    if rows.deleted is not None:
        deleted = column(rows.deleted) | deleted
    return replace(rows, frame=rows.frame.withColumn(DELETED, deleted), deleted=DELETED)


def project_rows(query: Query, node: ProjectNode, rows: Rows) -> Rows:
    named = (*node.key, *node.value)
    carried, after = rows.carried()
    own = [sf.expr(spark_text(query, each.expression, rows.columns)).alias(each.name) for each in named]
    columns = {each.name: type_of(query, each.expression, rows.columns) for each in named}
    columns |= PSEUDO_COLUMNS if rows.window is None else PSEUDO_COLUMNS | WINDOW_COLUMNS
    return replace(
        after,
        frame=rows.frame.select(*own, *carried),
        columns=columns,
        key=tuple(each.name for each in node.key),
    )


def flat_map_rows(query: Query, node: FlatMapNode, rows: Rows) -> Rows:
    """One row per item of the longest list; the shorter ones give nulls after their end."""
    lists, types = [], {}
    for index, each in enumerate(node.functions):
        types[each.name] = type_of(query, each.expression, rows.columns)
        lists.append(_list_of(query, each, rows, types[each.name]).alias(f"{_ITEMS}{index}"))
    names = [quoted(f"{_ITEMS}{index}") for index in range(len(lists))]
    frame = rows.frame.select("*", *lists)
    frame = frame.select("*", sf.expr(f"explode(arrays_zip({', '.join(names)}))").alias(_ZIPPED))
    items = [sf.expr(f"{_ZIPPED}.{name}").alias(named) for name, named in zip(names, types, strict=True)]
    kept = [column(name) for name in rows.frame.columns]
    return replace(rows, frame=frame.select(*kept, *items), columns={**rows.columns, **types})


def _list_of(query: Query, named: NamedExpression, rows: Rows, item: SqlType) -> Column:
    """No list at all is an empty one: the other functions still give their rows."""
    text = spark_text(query, named.expression, rows.columns)
    return sf.expr(f"coalesce({text}, cast(array() as array<{spark_type(item)}>))")
