"""GROUP BY: Spark's own aggregates, unwindowed, in time windows, and over tables.

    stream, no window        groupBy(key)                                   update: one row per key changed by a batch
    TUMBLING, HOPPING        groupBy(key, window) over a watermark          update, or append (EMIT FINAL)
    SESSION, final           groupBy(key, session_window)                   append
    SESSION, changes         `sessions`: Spark refuses to show changes of sessions
    table                    `undo`: rows with a sign, then groupBy(key)    update

The watermark's delay is the grace period. A window is closed, and its state gone, when the watermark reaches its end.
"""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from penstock.sql.errors import NotSupportedError, SemanticError
from penstock.sql.expressions.spark_types import spark_type
from penstock.sql.plan.nodes import AggregateNode, Window
from penstock.sql.schema import ROWTIME, WINDOWEND, WINDOWSTART
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.expressions import spark_text
from penstock.sql.spark.operators.grouping import Aggregate, Grouping, grouping_of, no_null_text
from penstock.sql.spark.operators.rows import EVENT_TIME, Rows, column, with_window_time
from penstock.sql.spark.operators.sessions import session_changes
from penstock.sql.spark.operators.stateless import matching
from penstock.sql.spark.operators.undo import SIGN, signed_changes

_WINDOW = "__WINDOW"


def aggregate_rows(query: Query, node: AggregateNode, rows: Rows) -> Rows:
    grouping = grouping_of(query, node, rows)
    if rows.kind == "TABLE":
        frame = _table_groups(query, node, grouping)
    elif node.window is None:
        frame = _groups(grouping, grouping.rows.frame, [])
    elif node.window.type == "SESSION" and node.emit == "CHANGES":
        return _having(query, node, session_changes(query, grouping, node.window))
    else:
        frame = _windows(query, grouping, node.window)
    return _having(query, node, _result(grouping, frame, node.window))


def _groups(grouping: Grouping, frame: DataFrame, window: list[Column]) -> DataFrame:
    order = grouping.rows.order_text
    results = [
        sf.expr(each.function.spark(each.texts, each.types, order)).cast(spark_type(each.type)).alias(each.name)
        for each in grouping.aggregates
    ]
    return frame.groupBy(*map(column, grouping.keys), *window).agg(*results, sf.max(ROWTIME).alias(ROWTIME))


def _windows(query: Query, grouping: Grouping, window: Window) -> DataFrame:
    timed = with_window_time(query, grouping.rows)
    frame = _groups(grouping, timed.frame, [_window_column(window).alias(_WINDOW)])
    # The end of a session is its last row, to which Spark has added the gap.
    tail_ms = window.size_ms if window.type == "SESSION" else 0
    bounds = [
        sf.unix_millis(sf.col(f"{_WINDOW}.start")).alias(WINDOWSTART),
        (sf.unix_millis(sf.col(f"{_WINDOW}.end")) - tail_ms).alias(WINDOWEND),
    ]
    names = [*grouping.keys, *(each.name for each in grouping.aggregates), ROWTIME]
    frame = frame.select(*map(column, names), *bounds)
    # Windows begin at the epoch: a row of the first seconds of 1970 is in no window that begins before.
    return frame.where(column(WINDOWSTART) >= 0) if window.type == "HOPPING" else frame


def _window_column(window: Window) -> Column:
    size = f"{window.size_ms} milliseconds"
    if window.type == "SESSION":
        return sf.session_window(EVENT_TIME, size)
    if window.type == "HOPPING":
        return sf.window(EVENT_TIME, size, f"{window.advance_ms} milliseconds")
    return sf.window(EVENT_TIME, size)


def _table_groups(query: Query, node: AggregateNode, grouping: Grouping) -> DataFrame:
    if node.window is not None:
        raise SemanticError("WINDOW clause is only supported for streams.", hint="Leave out WINDOW.")
    frame = signed_changes(query, grouping)
    if grouping.keys:
        frame = frame.where(no_null_text(grouping.keys))
    results = [_undoing(each).cast(spark_type(each.type)).alias(each.name) for each in grouping.aggregates]
    return frame.groupBy(*map(column, grouping.keys)).agg(*results, sf.max(ROWTIME).alias(ROWTIME))


def _undoing(aggregate: Aggregate) -> Column:
    if aggregate.function.undo_spark is None:
        raise NotSupportedError(
            f"The aggregation function '{aggregate.function.name}' cannot be applied to a table source,"
            " because it cannot take back what a row gave before the row changed.",
            hint="Aggregate a stream, or use COUNT, SUM, AVG, COLLECT_LIST, HISTOGRAM, CORRELATION or STDDEV_SAMP.",
        )
    return sf.expr(aggregate.function.undo_spark(aggregate.texts, aggregate.types, SIGN))


def _result(grouping: Grouping, frame: DataFrame, window: Window | None) -> Rows:
    return Rows(
        frame=frame,
        kind="TABLE",
        columns=grouping.result_columns(window),
        key=tuple(grouping.keys),
        window=None if window is None else (WINDOWSTART, WINDOWEND),
    )


def _having(query: Query, node: AggregateNode, rows: Rows) -> Rows:
    """A group that does not match is a deletion; a final result never matched before, so it is just left out."""
    if node.having is None:
        return rows
    condition = spark_text(query, node.having, rows.columns)
    if node.emit == "FINAL":
        return replace(rows, frame=rows.frame.where(condition))
    return matching(rows, condition)
