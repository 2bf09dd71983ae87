"""PARTITION BY, and table functions such as EXPLODE."""

from __future__ import annotations

from dataclasses import replace

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.nodes import Call, Case, Column, Expression, NamedExpression, NullLiteral
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.typing import infer
from penstock.sql.expressions.walk import calls_of, children
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.draft import Draft, KeyPart
from penstock.sql.plan.nodes import FlatMapNode
from penstock.sql.plan.rewriting import rewrite
from penstock.sql.plan.selecting import NameMaker


def partition(draft: Draft) -> Draft:
    """Rule: gives the rows the key that PARTITION BY names. PARTITION BY NULL takes the key away."""
    query = draft.request.query
    if not query.partition_by or query.group_by:
        return draft
    _check_partition(draft)
    if query.partition_by == (NullLiteral(),):
        return replace(draft, key=())
    names = NameMaker.for_scope(draft.scope)
    key = tuple(_key_part(draft, written, names) for written in query.partition_by)
    return replace(draft, key=key, key_origin="partitioning expression")


def _check_partition(draft: Draft) -> None:
    expressions = draft.request.query.partition_by
    twice = next((each for each in expressions if expressions.count(each) > 1), None)
    if twice is not None:
        raise SemanticError(f"Duplicate PARTITION BY expression: {format_expression(twice)}")
    if draft.kind == "TABLE":
        raise SemanticError(
            "Cannot repartition a TABLE source.",
            hint="A table keeps its primary key. Aggregate it with GROUP BY, or create a stream on its topic.",
        )
    if draft.windowed is not None:
        raise SemanticError(
            "Implicit repartitioning of windowed sources is not supported.",
            hint="Select the window bounds into columns of a stream without window first.",
        )


def _key_part(draft: Draft, written: Expression, names: NameMaker) -> KeyPart:
    expression = draft.scope.resolve(written, "PARTITION BY")
    for call in calls_of(expression):
        if draft.request.functions.is_aggregate(call.name) or draft.request.functions.is_table(call.name):
            raise SemanticError(f"PARTITION BY does not support the function {call.name}: it gives no single value.")
    name = expression.name if isinstance(expression, Column) else names.name_for(expression)
    return KeyPart(name=name, expression=expression, equals=(expression,))


def flat_map(draft: Draft) -> Draft:
    """Rule: lifts table functions out of the SELECT list; each becomes a column of rows."""
    functions = draft.request.functions
    calls = list(dict.fromkeys(call for item in draft.items for call in _table_calls(item.expression, functions)))
    if not calls:
        return draft
    _check_flat_map(draft)
    named = tuple(NamedExpression(f"KSQL_SYNTH_{number}", call) for number, call in enumerate(calls))
    places: dict[Expression, Expression] = {call: Column(each.name) for call, each in zip(calls, named, strict=True)}
    types = {each.name: infer(each.expression, draft.columns, functions) for each in named}
    return replace(
        draft,
        node=FlatMapNode(input=draft.node, functions=named),
        columns={**draft.columns, **types},
        items=tuple(NamedExpression(item.name, rewrite(item.expression, places.get)) for item in draft.items),
    )


def _check_flat_map(draft: Draft) -> None:
    functions, query = draft.request.functions, draft.request.query
    if draft.kind == "TABLE":
        raise SemanticError("Table source is not supported with table functions")
    aggregates = [
        call for item in draft.items for call in calls_of(item.expression) if functions.is_aggregate(call.name)
    ]
    if query.group_by or aggregates:
        raise SemanticError(
            "Table functions cannot be used with aggregations.",
            hint="Write the rows into a stream first, then aggregate that stream.",
        )


def _table_calls(expression: Expression, functions: FunctionRegistry, within: str | None = None) -> list[Call]:
    """The table functions of an expression, which may neither be nested nor stand in a CASE."""
    if isinstance(expression, Case) and any(functions.is_table(call.name) for call in calls_of(expression)):
        raise SemanticError(f"Table functions cannot be used in CASE: {format_expression(expression)}")
    is_table = isinstance(expression, Call) and functions.is_table(expression.name)
    if is_table and within is not None and isinstance(expression, Call):
        raise SemanticError(f"Table functions cannot be nested: {within}({expression.name}())")
    inside = expression.name if is_table and isinstance(expression, Call) else within
    below = [call for child in children(expression) for call in _table_calls(child, functions, inside)]
    return [expression, *below] if is_table and isinstance(expression, Call) else below
