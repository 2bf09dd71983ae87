"""What a plan as a whole asks of Spark: its output mode, its watermark, the columns it uses."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.walk import columns_of
from penstock.sql.plan.nodes import (
    AggregateNode,
    Emit,
    FilterNode,
    FlatMapNode,
    PlanNode,
    ProjectNode,
    StreamStreamJoinNode,
    StreamTableJoinNode,
    TableTableJoinNode,
    Window,
)
from penstock.sql.plan.walk import nodes
from penstock.sql.spark.operators.context import OutputMode

DEFAULT_JOIN_GRACE_MS = 24 * 60 * 60 * 1000


def output_mode(root: PlanNode) -> OutputMode:
    """Results that change over time need update mode; those that are final, or of no state, are appended."""
    changing = any(
        isinstance(node, TableTableJoinNode) or (isinstance(node, AggregateNode) and node.emit == "CHANGES")
        for node in nodes(root)
    )
    return "update" if changing else "append"


def watermark_delay_ms(root: PlanNode) -> int:
    windows = [
        _window_delay_ms(node.window, node.emit)
        for node in nodes(root)
        if isinstance(node, AggregateNode) and node.window
    ]
    joins = [node for node in nodes(root) if isinstance(node, StreamStreamJoinNode)]
    # A row that comes later than its window waits makes no difference, nor does its partner in a join.
    grace_ms = max(windows) + sum(map(_reach_ms, joins)) if windows else 0
    default_ms = 0 if windows else DEFAULT_JOIN_GRACE_MS
    return max([grace_ms, *(_join_delay_ms(node, default_ms) for node in joins)])


def _window_delay_ms(window: Window, emit: Emit) -> int:
    """Spark counts the gap into the end of a session by itself; where we keep sessions, we add it."""
    return window.grace_ms + (window.size_ms if window.type == "SESSION" and emit == "CHANGES" else 0)


def _join_delay_ms(node: StreamStreamJoinNode, default_ms: int) -> int:
    """A row is in time while its window is open. Outer rows wait as long, so they are given the grace alone."""
    grace_ms = default_ms if node.grace_ms is None else node.grace_ms
    return grace_ms + (_reach_ms(node) if node.kind == "INNER" else 0)


def _reach_ms(node: StreamStreamJoinNode) -> int:
    return max(node.before_ms, node.after_ms)


def used_columns(root: PlanNode) -> frozenset[str]:
    return frozenset(
        column.name for node in nodes(root) for expression in _expressions(node) for column in columns_of(expression)
    )


def _expressions(node: PlanNode) -> Iterator[Expression]:
    match node:
        case FilterNode():
            yield node.predicate
        case ProjectNode():
            yield from (named.expression for named in (*node.key, *node.value))
        case FlatMapNode():
            yield from (named.expression for named in node.functions)
        case AggregateNode():
            yield from (named.expression for named in node.key)
            yield from (argument for each in node.aggregations for argument in each.arguments)
            if node.having is not None:
                yield node.having
        case StreamStreamJoinNode() | TableTableJoinNode():
            yield from (node.left_key, node.right_key)
        case StreamTableJoinNode():
            yield node.stream_key
