"""Replacing parts of an expression from the top down.

`expressions.walk.transform` works from the leaves up. Here the larger part wins: GROUP BY UCASE(a) finds UCASE(a) in
the SELECT before it looks at `a`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from penstock.sql.expressions.nodes import Expression, MapEntry, NamedExpression, Node, When

Replace = Callable[[Expression], Expression | None]
"""Gives what stands in an expression's place, or None to look at its parts."""


def rewrite(expression: Expression, replace: Replace) -> Expression:
    replacement = replace(expression)
    if replacement is not None:
        return replacement
    rebuilt: Expression = _rebuilt(expression, replace)
    return rebuilt


def _rebuilt(struct: Any, replace: Replace) -> Any:
    """What holds nothing that is replaced stays the object it is: by it the parser knows where it was written."""
    values = {name: getattr(struct, name) for name in struct.__struct_fields__}
    changed = {name: new for name, old in values.items() if (new := _value(old, replace)) is not old}
    return msgspec.structs.replace(struct, **changed) if changed else struct


def _value(value: Any, replace: Replace) -> Any:
    if isinstance(value, tuple):
        items = tuple(_value(item, replace) for item in value)
        return value if all(new is old for new, old in zip(items, value, strict=True)) else items
    if isinstance(value, When | MapEntry | NamedExpression):
        return _rebuilt(value, replace)
    if isinstance(value, Node):
        return rewrite(value, replace)  # type: ignore[arg-type]  # every Node of expressions is an Expression
    return value
