"""Stream-stream joins: rows of both sides with equal keys, whose times lie within the bounds.

Spark's own join does it, over a watermark on both sides; it gives outer rows when their window has closed. Without a
GRACE PERIOD outer rows are not to wait: that is `eager_join`.
"""

from __future__ import annotations

from pyspark.sql import functions as sf

from penstock.sql.errors import NotSupportedError
from penstock.sql.plan.nodes import JoinKind, StreamStreamJoinNode
from penstock.sql.spark.operators.context import Query
from penstock.sql.spark.operators.eager_join import eager_join
from penstock.sql.spark.operators.join_sides import JoinSide, joined_rows, side_of
from penstock.sql.spark.operators.rows import Rows, with_row_time

_KINDS: dict[JoinKind, str] = {"INNER": "inner", "LEFT": "left", "RIGHT": "right", "FULL": "full"}


def stream_join_rows(query: Query, node: StreamStreamJoinNode, left: Rows, right: Rows) -> Rows:
    sides = (
        side_of(query, left, node.left_key, "LEFT"),
        side_of(query, right, node.right_key, "RIGHT"),
    )
    if node.kind != "INNER" and node.grace_ms is None:
        return eager_join(query, node, *sides)
    if node.kind != "INNER" and query.output_mode == "update":
        raise NotSupportedError(
            f"A {node.kind} JOIN with a GRACE PERIOD cannot be aggregated in the same query.",
            hint="Create the join as a stream of its own with CREATE STREAM AS SELECT, and aggregate that stream.",
        )
    return _native_join(query, node, *sides)


def _native_join(query: Query, node: StreamStreamJoinNode, left: JoinSide, right: JoinSide) -> Rows:
    frames = [with_row_time(query, side.rows, side.event_time).frame for side in (left, right)]
    early = f"{left.event_time} - INTERVAL '{node.before_ms / 1000:.3f}' SECOND"
    late = f"{left.event_time} + INTERVAL '{node.after_ms / 1000:.3f}' SECOND"
    # In a full join Spark takes two nulls for equal, unless it is told that there are none.
    present = f"{left.key} IS NOT NULL AND {right.key} IS NOT NULL"
    condition = sf.expr(f"{left.key} = {right.key} AND {present} AND {right.event_time} BETWEEN {early} AND {late}")
    return joined_rows(query, left, right, frames[0].join(frames[1], condition, _KINDS[node.kind]))
