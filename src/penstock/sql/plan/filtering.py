"""WHERE, and the check that a condition is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.nodes import Expression
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.typing import infer
from penstock.sql.expressions.walk import calls_of
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.draft import Draft
from penstock.sql.plan.instants import times_as_numbers
from penstock.sql.plan.nodes import FilterNode
from penstock.sql.types import BOOLEAN, NULL, SqlType


def filter_rows(draft: Draft) -> Draft:
    """Rule: keeps the rows that WHERE wants."""
    where, functions = draft.request.query.where, draft.request.functions
    if where is None:
        return draft
    predicate = draft.scope.resolve(times_as_numbers(where), "WHERE")
    aggregates = [call.name for call in calls_of(predicate) if functions.is_aggregate(call.name)]
    if aggregates:
        raise SemanticError(
            f"WHERE does not support aggregate functions: {aggregates[0]} is an aggregate function.",
            hint="Filter groups with HAVING.",
        )
    check_condition(predicate, draft.columns, functions, "WHERE")
    return replace(draft, node=FilterNode(input=draft.node, predicate=predicate))


def check_condition(
    condition: Expression,
    columns: Mapping[str, SqlType],
    functions: FunctionRegistry,
    clause: str,
    *,
    written: Expression | None = None,
) -> None:
    """`written` is how a person knows the condition, where that differs."""
    kind = infer(condition, columns, functions)
    if kind not in (BOOLEAN, NULL):
        raise SemanticError(
            f"Type error in {clause} expression: Should evaluate to boolean but is "
            f"{format_expression(written or condition)} ({kind}) instead."
        )
