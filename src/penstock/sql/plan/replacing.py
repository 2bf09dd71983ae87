"""CREATE OR REPLACE: whether a query may take another's place on the same state.

What a query keeps between rows is shaped by its sources, joins, keys, aggregates and windows; those must stay. WHERE,
HAVING and the selected values hold no state and may change, as long as the sink's columns only grow at the end.
"""

from __future__ import annotations

from typing import Any

from penstock.sql.errors import SemanticError
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
from penstock.sql.plan.walk import nodes
from penstock.sql.schema import Schema

_REMEDY = "Terminate the query, drop the source and create it anew."


def check_replacement(old: QueryPlan, new: QueryPlan) -> None:
    if old.sink is not None and new.sink is not None and old.sink.topic != new.sink.topic:
        raise _refused(new, f"its topic is {old.sink.topic}, not {new.sink.topic}")
    if old.kind != new.kind or old.windowed != new.windowed:
        raise _refused(new, "the kind of its result or its window changes")
    check_schema_grows(name_of(new), old.schema, new.schema)
    before, after = _stateful(old.root), _stateful(new.root)
    for one, other in zip(before, after, strict=False):
        if one != other:
            raise _refused(new, f"its {one[0]} changes")
    if len(before) != len(after):
        changed = (before + after)[min(len(before), len(after))][0]
        raise _refused(new, f"a {changed} is added or removed")


def check_schema_grows(name: str, old: Schema, new: Schema) -> None:
    """Keys stay as they are; values may only be added at the end."""
    if old.key != new.key:
        raise SemanticError(
            f"Cannot upgrade data source: `{name}` has other key columns. Key columns must be identical.", hint=_REMEDY
        )
    lost = [
        column
        for column, other in zip(old.value, (*new.value, *(None,) * len(old.value)), strict=False)
        if column != other
    ]
    if lost:
        listed = ", ".join(f"`{column.name}` {column.type}" for column in lost)
        raise SemanticError(
            f"Cannot upgrade data source: in `{name}` the following columns are changed, missing or reordered: "
            f"[{listed}].",
            hint=_REMEDY,
        )


def name_of(plan: QueryPlan) -> str:
    return plan.sink.name if plan.sink else plan.query_id


def _refused(plan: QueryPlan, reason: str) -> SemanticError:
    return SemanticError(f"Cannot upgrade data source: `{name_of(plan)}` cannot be replaced, {reason}.", hint=_REMEDY)


def _stateful(root: PlanNode) -> list[tuple[str, Any]]:
    return [part for node in nodes(root) for part in _parts(node)]


def _parts(node: PlanNode) -> list[tuple[str, Any]]:
    """What of a node shapes state, each with the word people have for it."""
    match node:
        case SourceNode():
            return [("source", (node.name, node.kind, node.topic, node.windowed))]
        case AggregateNode():
            calls = tuple((each.function, each.arguments, each.type) for each in node.aggregations)
            keys = tuple(item.expression for item in node.key)
            return [("grouping", keys), ("window", node.window), ("list of aggregates", calls), ("emission", node.emit)]
        case StreamStreamJoinNode():
            within = (node.before_ms, node.after_ms, node.grace_ms)
            return [("join", (node.kind, node.left_key, node.right_key, within))]
        case StreamTableJoinNode():
            return [("join", (node.kind, node.stream_key))]
        case TableTableJoinNode():
            return [("join", (node.kind, node.left_key, node.right_key))]
        case FilterNode() | ProjectNode() | FlatMapNode():
            return []
