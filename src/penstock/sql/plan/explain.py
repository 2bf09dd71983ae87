"""A plan as text: one line per node, the last step first, each below what it feeds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from penstock.sql.expressions.nodes import Expression, NamedExpression
from penstock.sql.expressions.text import format_expression, format_name
from penstock.sql.plan.nodes import (
    AggregateNode,
    Aggregation,
    FilterNode,
    FlatMapNode,
    PlanNode,
    ProjectNode,
    QueryPlan,
    Sink,
    SourceNode,
    StreamStreamJoinNode,
    StreamTableJoinNode,
    TableTableJoinNode,
    Window,
)
from penstock.sql.plan.walk import inputs
from penstock.sql.schema import Schema, WindowedKey


def explain(plan: QueryPlan) -> str:
    lines = [_result_line(plan), *_node_lines(plan.root, depth=1)]
    return "\n".join(lines)


def format_schema(schema: Schema, kind: str = "STREAM") -> str:
    role = "PRIMARY KEY" if kind == "TABLE" else "KEY"
    key = [f"{format_name(column.name)} {column.type} {role}" for column in schema.key]
    value = [f"{format_name(column.name)} {column.type}" for column in schema.value]
    headers = [f"{format_name(column.name)} {column.type} {_header(column.key)}" for column in schema.headers]
    return ", ".join([*key, *value, *headers])


def _header(key: str | None) -> str:
    return "HEADERS" if key is None else f"HEADER('{key}')"


def _node_lines(node: PlanNode, depth: int) -> Iterator[str]:
    yield "  " * depth + _line(node)
    for below in inputs(node):
        yield from _node_lines(below, depth + 1)


def _result_line(plan: QueryPlan) -> str:
    schema = format_schema(plan.schema, plan.kind)
    emit = f" EMIT {plan.emit}" if plan.emit == "FINAL" else ""
    limit = f" LIMIT {plan.limit}" if plan.limit is not None else ""
    if plan.sink is None:
        return f"RESULT {plan.kind} ({schema}) columns {', '.join(plan.columns)}{_windowed(plan.windowed)}{emit}{limit}"
    return f"SINK {plan.kind} {_sink(plan.sink)} ({schema}){_windowed(plan.windowed)}{emit}"


def _sink(sink: Sink) -> str:
    timestamp = f" timestamp {sink.timestamp.column}" if sink.timestamp else ""
    return f"{sink.name} topic {sink.topic} key {sink.key_format.name} value {sink.value_format.name}{timestamp}"


def _windowed(windowed: WindowedKey | None) -> str:
    if windowed is None:
        return ""
    size = "" if windowed.size_ms is None else f" {windowed.size_ms} ms"
    return f" windowed {windowed.type}{size}"


def _line(node: PlanNode) -> str:
    match node:
        case SourceNode():
            prefix = f" as {node.prefix}*" if node.prefix else ""
            return f"SOURCE {node.kind} {node.name} topic {node.topic}{prefix}{_windowed(node.windowed)}"
        case FilterNode():
            return f"FILTER {format_expression(node.predicate)}"
        case ProjectNode():
            return f"PROJECT key [{_named(node.key)}] value [{_named(node.value)}]"
        case FlatMapNode():
            return f"FLAT MAP {_named(node.functions)}"
        case AggregateNode():
            return _aggregate_line(node)
        case StreamStreamJoinNode():
            grace = "" if node.grace_ms is None else f" GRACE {node.grace_ms} ms"
            on = _on(node.left_key, node.right_key)
            return f"{node.kind} JOIN stream-stream {on} WITHIN ({node.before_ms} ms, {node.after_ms} ms){grace}"
        case StreamTableJoinNode():
            return f"{node.kind} JOIN stream-table by {format_expression(node.stream_key)}"
        case TableTableJoinNode():
            return f"{node.kind} JOIN table-table {_on(node.left_key, node.right_key)}"


def _aggregate_line(node: AggregateNode) -> str:
    having = "" if node.having is None else f" HAVING {format_expression(node.having)}"
    window = "" if node.window is None else f" WINDOW {_window(node.window)}"
    calls = ", ".join(map(_aggregation, node.aggregations))
    return f"AGGREGATE by [{_named(node.key)}] of [{calls}]{window}{having} EMIT {node.emit}"


def _aggregation(each: Aggregation) -> str:
    arguments = ", ".join(map(format_expression, each.arguments)) or ("*" if each.function == "COUNT" else "")
    return f"{each.name} := {each.function}({arguments})"


def _window(window: Window) -> str:
    advance = "" if window.advance_ms is None else f" advance {window.advance_ms} ms"
    retention = "" if window.retention_ms is None else f" retention {window.retention_ms} ms"
    return f"{window.type} {window.size_ms} ms{advance} grace {window.grace_ms} ms{retention}"


def _named(items: Iterable[NamedExpression]) -> str:
    return ", ".join(_one_named(item) for item in items)


def _one_named(item: NamedExpression) -> str:
    text, name = format_expression(item.expression), format_name(item.name)
    return text if text == name else f"{name} := {text}"


def _on(left: Expression, right: Expression) -> str:
    return f"on {format_expression(left)} = {format_expression(right)}"
