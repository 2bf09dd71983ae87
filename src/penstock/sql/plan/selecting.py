"""The SELECT list: stars written out, every column named and resolved."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.nodes import Column, Expression, FieldAccess, NamedExpression
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.typing import infer
from penstock.sql.plan.draft import Draft, Request
from penstock.sql.plan.joins import SYNTHETIC_KEY
from penstock.sql.plan.scope import Scope, ScopedSource
from penstock.sql.schema import RESERVED_NAMES, WINDOW_COLUMNS
from penstock.sql.statements import SelectItem
from penstock.sql.types import Struct

_NUMBERED = re.compile(r"(.*?)(?:_(\d+))?", re.DOTALL)


@dataclass(slots=True)
class NameMaker:
    """Names for columns without one: KSQL_COL_0, KSQL_COL_1, ...; a struct's field by its own name.

    Names that the sources use are left out, so that a later `SELECT *` never meets one twice.
    """

    taken: set[str]
    _next: dict[str, int] = field(default_factory=dict)

    @classmethod
    def for_scope(cls, scope: Scope) -> NameMaker:
        return cls({name for source in scope.sources for name in source.declared})

    def name_for(self, expression: Expression) -> str:
        if isinstance(expression, FieldAccess):
            match = _NUMBERED.fullmatch(expression.name)
            return self._numbered(match[1] if match else expression.name, bare=True)
        return self._numbered("KSQL_COL", bare=False)

    def _numbered(self, stem: str, *, bare: bool) -> str:
        while True:
            number = self._next.get(stem, 0)
            self._next[stem] = number + 1
            name = stem if bare and number == 0 else f"{stem}_{number}"
            if name not in self.taken:
                return name


def select_items(draft: Draft) -> Draft:
    """Rule: writes out the SELECT list."""
    names = NameMaker.for_scope(draft.scope)
    written = draft.request.query.items
    items = tuple(named for item in written for named in _named(draft, item, names))
    for item in items:
        _check_reserved(item, persistent=draft.request.persistent)
    star = any(item.expression is None and item.star_source is None for item in written)
    return replace(draft, items=items, star=star)


def _named(draft: Draft, item: SelectItem, names: NameMaker) -> Iterator[NamedExpression]:
    if item.expression is None:
        yield from _star(draft, item.star_source)
        return
    expression = draft.scope.resolve(item.expression, "SELECT")
    if item.struct_all:
        yield from _fields(draft, expression)
    else:
        yield NamedExpression(item.alias or _default_name(draft.scope, item.expression, names), expression)


def _default_name(scope: Scope, written: Expression, names: NameMaker) -> str:
    """A column keeps its name; where the sides of a join both have it, the alias of its source stands before it."""
    if not isinstance(written, Column):
        return names.name_for(written)
    clashing = written.source is not None and scope.clashes(written.name)
    return f"{written.source}_{written.name}" if clashing else written.name


def _star(draft: Draft, alias: str | None) -> Iterator[NamedExpression]:
    scope = draft.scope
    if alias is not None and scope.source(alias) is None:
        raise SemanticError(
            f"'{alias}' is not a valid stream/table name or alias.",
            hint=f"FROM has {', '.join(source.alias for source in scope.sources)}.",
        )
    if alias is None and any(part.synthetic for part in draft.key):
        yield NamedExpression(SYNTHETIC_KEY, scope.extra[SYNTHETIC_KEY])
    for source in scope.sources:
        if alias in (None, source.alias):
            yield from _columns_of(source, draft.request)


def _columns_of(source: ScopedSource, request: Request) -> Iterator[NamedExpression]:
    """Key, window bounds, values: the order in which ksqlDB shows a row. A key that PARTITION BY replaces goes last."""
    schema = source.source.schema
    bounds = tuple(WINDOW_COLUMNS) if not request.persistent and source.source.windowed else ()
    names = [column.name for column in schema.columns]
    key, values = names[: len(schema.key)], names[len(schema.key) :]
    replaced = bool(request.query.partition_by) and not request.query.group_by
    for name in (*values, *key) if replaced else (*key, *bounds, *values):
        yield NamedExpression(source.plan_name(name), Column(source.plan_name(name)))


def _fields(draft: Draft, expression: Expression) -> Iterator[NamedExpression]:
    kind = infer(expression, draft.columns, draft.request.functions)
    if not isinstance(kind, Struct):
        raise SemanticError(
            f"{format_expression(expression)} is not a STRUCT type, it is {kind}.",
            hint="Only a STRUCT can be written out with ->*.",
        )
    for each in kind.fields:
        yield NamedExpression(each.name, FieldAccess(expression, each.name))


def _check_reserved(item: NamedExpression, *, persistent: bool) -> None:
    if item.name.upper() not in RESERVED_NAMES:
        return
    if item.expression != Column(item.name):
        raise SemanticError(f"`{item.name}` is a reserved column name. You cannot use it as an alias for a column.")
    if persistent:
        raise SemanticError(f"Reserved column name in select: `{item.name}`. Please remove or alias the column.")
