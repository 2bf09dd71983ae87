"""Which rows of a table a predicate can want: what SQLite's index finds, as a superset.

Only conditions joined by AND narrow; everything else is left to the predicate itself, which is always computed too.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from penstock.sql.expressions.evaluation import compile_expression
from penstock.sql.expressions.nodes import Between, Column, Comparison, Expression, In, Logical
from penstock.sql.expressions.walk import columns_of
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.nodes import SourceNode
from penstock.sql.schema import WINDOW_COLUMNS, WINDOWEND, WINDOWSTART
from penstock.sql.stores.table_store import Bounds, Selection
from penstock.sql.stores.values import python_type
from penstock.sql.types import BIGINT, BOOLEAN, DOUBLE, INTEGER, Scalar, SqlType

_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_KEYS_MAX = 10_000


class _Conditions:
    """What is known of one column: the values it may have, and the interval it lies in."""

    def __init__(self, sql_type: SqlType) -> None:
        self._type = sql_type
        self.values: list[Any] | None = None
        self.low: Any = None
        self.high: Any = None

    def takes(self, value: Any) -> bool:
        """Whether the index compares this value as the predicate would; DECIMAL and nested types it does not."""
        if value is None or not isinstance(self._type, Scalar):
            return False
        if isinstance(value, bool):
            return self._type == BOOLEAN
        return isinstance(value, int if self._type in (INTEGER, BIGINT, DOUBLE) else python_type(self._type))

    def only(self, values: list[Any]) -> None:
        self.values = values if self.values is None else [value for value in self.values if value in values]

    def at_least(self, value: Any) -> None:
        self.low = value if self.low is None else max(self.low, value)

    def at_most(self, value: Any) -> None:
        self.high = value if self.high is None else min(self.high, value)

    @property
    def bounds(self) -> Bounds:
        if self.values:
            return Bounds(min(self.values), max(self.values))
        return Bounds(self.low, self.high)


def selection_of(predicate: Expression | None, source: SourceNode, functions: FunctionRegistry) -> Selection:
    keys = [column.name for column in source.schema.key]
    types = {column.name: column.type for column in source.schema.key} | WINDOW_COLUMNS
    known = {name: _Conditions(sql_type) for name, sql_type in types.items()}
    for condition in _conjuncts(predicate):
        _narrow(condition, known, functions)
    allowed = [known[name].values for name in keys]
    return Selection(
        keys=_combinations(allowed),
        key_bounds=known[keys[0]].bounds if len(keys) == 1 and known[keys[0]].values is None else Bounds(),
        window_start=known[WINDOWSTART].bounds,
        window_end=known[WINDOWEND].bounds,
    )


def _combinations(allowed: list[list[Any] | None]) -> tuple[tuple[Any, ...], ...] | None:
    if not allowed or any(values is None for values in allowed):
        return None
    combinations = tuple(product(*(values or [] for values in allowed)))
    return combinations if len(combinations) <= _KEYS_MAX else None


def _conjuncts(predicate: Expression | None) -> Iterator[Expression]:
    match predicate:
        case None:
            return
        case Logical(operator="AND", left=left, right=right):
            yield from _conjuncts(left)
            yield from _conjuncts(right)
        case _:
            yield predicate


def _narrow(condition: Expression, known: dict[str, _Conditions], functions: FunctionRegistry) -> None:
    match condition:
        case Comparison(operator=operator, left=Column(name=name), right=other) if name in known:
            _compare(known[name], operator, other, functions)
        case Comparison(operator=operator, left=other, right=Column(name=name)) if name in known:
            _compare(known[name], _MIRRORED.get(operator, operator), other, functions)
        case Between(operand=Column(name=name), low=low, high=high, negated=False) if name in known:
            _compare(known[name], ">=", low, functions)
            _compare(known[name], "<=", high, functions)
        case In(operand=Column(name=name), options=options, negated=False) if name in known:
            values = [_constant(option, functions) for option in options]
            if all(known[name].takes(value) for value in values):
                known[name].only(values)


def _compare(conditions: _Conditions, operator: str, other: Expression, functions: FunctionRegistry) -> None:
    value = _constant(other, functions)
    if not conditions.takes(value):
        return
    if operator == "=":
        conditions.only([value])
    elif operator in (">", ">="):
        conditions.at_least(value)
    elif operator in ("<", "<="):
        conditions.at_most(value)


def _constant(expression: Expression, functions: FunctionRegistry) -> Any:
    """The value of an expression without columns; None when it has some, or is null."""
    if columns_of(expression):
        return None
    return compile_expression(expression, {}, functions)({})
