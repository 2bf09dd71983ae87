"""Plans that need no Spark: a source, filters and a projection, computed row by row in Python.

Pull queries and push queries over an existing stream or table are such chains.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import itemgetter
from typing import Any

from penstock.sql.expressions.evaluation import compile_expression
from penstock.sql.expressions.nodes import Expression, Logical
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.nodes import FilterNode, PlanNode, ProjectNode, QueryPlan, SourceNode
from penstock.sql.schema import PSEUDO_COLUMNS, WINDOW_COLUMNS
from penstock.sql.types import SqlType


class Chain:
    """The parts of a simple plan, ready to compute."""

    def __init__(self, plan: QueryPlan, functions: FunctionRegistry) -> None:
        self.source, filters, projection = _parts(plan.root)
        columns = columns_of(self.source)
        self.predicate = _all_of([node.predicate for node in filters])
        self._matches = compile_expression(self.predicate, columns, functions) if self.predicate is not None else None
        computed = {
            named.name: compile_expression(named.expression, columns, functions)
            for named in (*projection.key, *projection.value)
        }
        self._values = [computed.get(name) or itemgetter(name) for name in plan.columns]

    def matches(self, row: Mapping[str, Any]) -> bool:
        return self._matches is None or self._matches(row) is True

    def project(self, row: Mapping[str, Any]) -> list[Any]:
        return [value(row) for value in self._values]


def is_simple(node: PlanNode) -> bool:
    """Whether a plan is a chain."""
    if isinstance(node, ProjectNode | FilterNode):
        return is_simple(node.input)
    return isinstance(node, SourceNode)


def result_columns(plan: QueryPlan) -> dict[str, SqlType]:
    """What a query without a sink gives, in the order it was asked for."""
    columns = {column.name: column.type for column in plan.schema.columns} | PSEUDO_COLUMNS | WINDOW_COLUMNS
    return {name: columns[name] for name in plan.columns}


def columns_of(source: SourceNode) -> dict[str, SqlType]:
    """The columns a row of the source has."""
    columns = {column.name: column.type for column in source.schema.columns} | PSEUDO_COLUMNS
    return columns | WINDOW_COLUMNS if source.windowed is not None else columns


def _parts(root: PlanNode) -> tuple[SourceNode, list[FilterNode], ProjectNode]:
    if not isinstance(root, ProjectNode):
        raise TypeError(f"A plan ends with a projection, this one with {type(root).__name__}")
    filters: list[FilterNode] = []
    node = root.input
    while isinstance(node, FilterNode):
        filters.append(node)
        node = node.input
    if not isinstance(node, SourceNode):
        raise TypeError(f"A chain begins with a source, this one with {type(node).__name__}")
    return node, filters, root


def _all_of(predicates: list[Expression]) -> Expression | None:
    whole: Expression | None = None
    for predicate in predicates:
        whole = predicate if whole is None else Logical(operator="AND", left=predicate, right=whole)
    return whole
