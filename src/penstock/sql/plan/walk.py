"""Walks over plans."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.sql.plan.nodes import (
    AggregateNode,
    FilterNode,
    FlatMapNode,
    PlanNode,
    ProjectNode,
    SourceNode,
    StreamStreamJoinNode,
    StreamTableJoinNode,
    TableTableJoinNode,
)


def inputs(node: PlanNode) -> tuple[PlanNode, ...]:
    """The nodes directly below, the left one first."""
    match node:
        case FilterNode() | ProjectNode() | FlatMapNode() | AggregateNode():
            return (node.input,)
        case StreamStreamJoinNode() | TableTableJoinNode():
            return (node.left, node.right)
        case StreamTableJoinNode():
            return (node.stream, node.table)
        case SourceNode():
            return ()


def nodes(node: PlanNode) -> Iterator[PlanNode]:
    """The node and everything below it, top down, left to right."""
    yield node
    for below in inputs(node):
        yield from nodes(below)


def source_nodes(node: PlanNode) -> tuple[SourceNode, ...]:
    return tuple(below for below in nodes(node) if isinstance(below, SourceNode))


def source_names(node: PlanNode) -> tuple[str, ...]:
    """The sources read, each once, the left-most first."""
    return tuple(dict.fromkeys(source.name for source in source_nodes(node)))
