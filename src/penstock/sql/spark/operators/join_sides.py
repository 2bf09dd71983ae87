"""The two sides of a join of streams under names that cannot meet, and what the joined rows are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from penstock.sql.expressions.nodes import Expression
from penstock.sql.schema import ROWTIME
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.expressions import spark_text
from penstock.sql.spark.operators.rows import EVENT_TIME, Rows, column, marked_event_time
from penstock.sql.types import BIGINT, SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinSide:
    """`columns` are those of the side that something above names. The rest are names of technical columns."""

    rows: Rows
    columns: dict[str, SqlType]
    key: str
    event_time: str


def side_of(query: Query, rows: Rows, key: Expression, name: Literal["LEFT", "RIGHT"]) -> JoinSide:
    columns = {each: sql_type for each, sql_type in rows.columns.items() if each in query.used_columns}
    columns.pop(ROWTIME, None)  # of a join below; this join has its own
    key_name, rowtime, event_time = (f"__{name}_{part}" for part in ("KEY", "ROWTIME", "EVENT_TIME"))
    order = {old: f"__{name}_ORDER_{index}" for index, old in enumerate(rows.order)}
    selected = [
        *map(column, columns),
        sf.expr(spark_text(query, key, rows.columns)).alias(key_name),
        column(rows.rowtime).alias(rowtime),
        *(column(old).alias(new) for old, new in order.items()),
    ]
    if rows.event_time is not None:
        selected.append(column(rows.event_time).alias(event_time))
    renamed = replace(
        rows,
        frame=rows.frame.select(*selected),
        rowtime=rowtime,
        order=tuple(order.values()),
        event_time=None if rows.event_time is None else event_time,
    )
    return JoinSide(rows=renamed, columns=columns, key=key_name, event_time=event_time)


def joined_rows(query: Query, left: JoinSide, right: JoinSide, frame: DataFrame) -> Rows:
    """The newer of both times is that of the joined row."""
    columns = {**left.columns, **right.columns}
    order = (*left.rows.order, *right.rows.order)
    rowtime = sf.greatest(column(left.rows.rowtime), column(right.rows.rowtime))
    joined = frame.select(*map(column, (*columns, *order)), rowtime.alias(ROWTIME))
    timed = joined.select("*", marked_event_time(query, sf.timestamp_millis(column(ROWTIME))))
    return Rows(
        frame=timed,
        kind="STREAM",
        columns={**columns, ROWTIME: BIGINT},
        order=order,
        event_time=EVENT_TIME,
    )
