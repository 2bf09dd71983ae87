"""What a plan says of its result."""

from __future__ import annotations

from typing import Any

from penstock.sql.plan.nodes import AggregateNode, QueryPlan, Sink, SourceNode


def source_of(sink: Sink) -> SourceNode:
    """The result of a query, as whoever reads it sees it."""
    return SourceNode(
        name=sink.name,
        kind=sink.kind,
        topic=sink.topic,
        schema=sink.schema,
        key_format=sink.key_format,
        value_format=sink.value_format,
        windowed=sink.windowed,
    )


def retention_of(plan: QueryPlan) -> int | None:
    """How long closed windows are served; None: as long as they are in the topic."""
    node: Any = plan.root
    while node is not None and not isinstance(node, AggregateNode):
        node = getattr(node, "input", None)
    return node.window.retention_ms if node is not None and node.window is not None else None
