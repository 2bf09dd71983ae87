"""Walking expressions: their parts, the columns and calls in them, and the same expression with parts replaced.

One generic walk over the fields of the nodes, so that a new kind of node needs no code here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

from penstock.sql.expressions.nodes import (
    Call,
    Column,
    Expression,
    MapEntry,
    NamedExpression,
    Node,
    When,
)

_HOLDERS = (When, MapEntry, NamedExpression)
"""Structs inside nodes that hold expressions without being one."""


def children(expression: Expression) -> Iterator[Expression]:
    """The expressions directly inside this one, in the order they are written."""
    for value in msgspec.structs.astuple(expression):
        yield from _expressions_in(value)


def _expressions_in(value: Any) -> Iterator[Expression]:
    if isinstance(value, Node):
        yield cast("Expression", value)
    elif isinstance(value, _HOLDERS):
        yield from _expressions_in(msgspec.structs.astuple(value))
    elif isinstance(value, tuple):
        for each in value:
            yield from _expressions_in(each)


def descendants(expression: Expression) -> Iterator[Expression]:
    """The expression itself and everything inside it."""
    yield expression
    for child in children(expression):
        yield from descendants(child)


def columns_of(expression: Expression) -> list[Column]:
    """Every column that is named, each once, in order of appearance."""
    return list(dict.fromkeys(each for each in descendants(expression) if isinstance(each, Column)))


def calls_of(expression: Expression) -> list[Call]:
    """Every call, outer ones before those inside them."""
    return [each for each in descendants(expression) if isinstance(each, Call)]


def transform(expression: Expression, function: Callable[[Expression], Expression]) -> Expression:
    """The expression rebuilt from below: `function` sees each node after its parts were rebuilt."""
    return function(_rebuilt(expression, function))


def _rebuilt(value: Any, function: Callable[[Expression], Expression]) -> Any:
    changes = {}
    for name, old in zip(value.__struct_fields__, msgspec.structs.astuple(value), strict=True):
        new = _rebuilt_value(old, function)
        if new is not old:
            changes[name] = new
    return msgspec.structs.replace(value, **changes) if changes else value


def _rebuilt_value(value: Any, function: Callable[[Expression], Expression]) -> Any:
    if isinstance(value, Node):
        return transform(cast("Expression", value), function)
    if isinstance(value, _HOLDERS):
        return _rebuilt(value, function)
    if isinstance(value, tuple):
        rebuilt = tuple(_rebuilt_value(each, function) for each in value)
        return value if all(new is old for new, old in zip(rebuilt, value, strict=True)) else rebuilt
    return value
