"""Names in a query: which source a column belongs to, and what it is called in the plan.

One source: its columns keep their names. Several: every column is prefixed with the alias of its source (`O_ID`), so
that the sides of a join never collide.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.errors import SemanticError
from penstock.sql.expressions.nodes import Column, Expression
from penstock.sql.expressions.text import format_expression
from penstock.sql.expressions.walk import columns_of
from penstock.sql.plan.rewriting import rewrite
from penstock.sql.schema import PSEUDO_COLUMNS, ROWTIME, WINDOW_COLUMNS
from penstock.sql.statements import Query, Relation
from penstock.sql.types import BIGINT, SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedSource:
    """A source as this query names it."""

    alias: str
    source: Source
    prefix: str

    @property
    def declared(self) -> dict[str, SqlType]:
        """Key, value and header columns, under their own names."""
        schema = self.source.schema
        return {column.name: column.type for column in schema.columns}

    @property
    def columns(self) -> dict[str, SqlType]:
        """All columns a query may name, the pseudo columns too."""
        windows = WINDOW_COLUMNS if self.source.windowed else {}
        return {**self.declared, **PSEUDO_COLUMNS, **windows}

    def plan_name(self, column: str) -> str:
        return self.prefix + column


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """`extra`: names that belong to no source (the key of a full join, the bounds of a window being made)."""

    sources: tuple[ScopedSource, ...]
    extra: Mapping[str, Expression] = field(default_factory=dict)

    @property
    def is_join(self) -> bool:
        return len(self.sources) > 1

    def source(self, alias: str) -> ScopedSource | None:
        return next((source for source in self.sources if source.alias == alias), None)

    def clashes(self, name: str) -> bool:
        """Whether several sources have a column of this name."""
        return sum(name in source.columns for source in self.sources) > 1

    def column_types(self) -> dict[str, SqlType]:
        """All columns under their names in the plan; a join also has a ROWTIME of its own."""
        own: dict[str, SqlType] = {ROWTIME: BIGINT} if self.is_join else {}
        scoped = {source.plan_name(name): kind for source in self.sources for name, kind in source.columns.items()}
        return {**scoped, **own}

    def resolve(self, expression: Expression, clause: str) -> Expression:
        """The expression with every column under its name in the plan."""

        def place(part: Expression) -> Expression | None:
            return self._placed(part, clause) if isinstance(part, Column) else None

        return rewrite(expression, place)

    def sources_of(self, expression: Expression, clause: str) -> list[ScopedSource]:
        """The sources an expression (not yet resolved) refers to, each once."""
        owners = [self._owner(column, clause) for column in columns_of(expression)]
        return [source for source in self.sources if source in owners]

    def shown(self, expression: Expression) -> str:
        """A resolved expression as the person wrote it: `O.ID` for `O_ID`."""
        if not self.is_join:
            return format_expression(expression)
        written = {each.plan_name(name): Column(name, each.alias) for each in self.sources for name in each.columns}

        def unplace(part: Expression) -> Expression | None:
            return written.get(part.name) if isinstance(part, Column) else None

        return format_expression(rewrite(expression, unplace))

    def _placed(self, column: Column, clause: str) -> Expression:
        if column.name in self.extra and (column.source is None or self._is_new_bound(column)):
            return self.extra[column.name]
        if self.is_join and column == Column(ROWTIME):
            return column
        return Column(self._owner(column, clause).plan_name(column.name))

    def _is_new_bound(self, column: Column) -> bool:
        """`s.WINDOWSTART`, where it is the query that makes windows of the rows of s."""
        source = self.source(column.source or "")
        return column.name in WINDOW_COLUMNS and source is not None and source.source.windowed is None

    def _owner(self, column: Column, clause: str) -> ScopedSource:
        candidates = [each for each in self.sources if column.source in (None, each.alias)]
        owners = [source for source in candidates if column.name in source.columns]
        if len(owners) == 1:
            return owners[0]
        if owners:
            options = " or ".join(f"{source.alias}.{column.name}" for source in owners)
            raise SemanticError(f"Column '{column.name}' is ambiguous. Could be {options}.", about=column)
        written = f"{column.source}.{column.name}" if column.source else column.name
        raise SemanticError(f"{clause} column '{written}' cannot be resolved.", hint=self._hint(column), about=column)

    def _hint(self, column: Column) -> str:
        if column.source is not None and self.source(column.source) is None:
            return f"There is no source {column.source} in FROM; there is {_listed(s.alias for s in self.sources)}."
        known = [name for source in self.sources for name in source.declared]
        close = difflib.get_close_matches(column.name.upper(), known, n=1)
        return f"Did you mean '{close[0]}'?" if close else f"Known columns: {_listed(known)}."


def scope_of(query: Query, catalog: Catalog) -> Scope:
    """The sources a query names, in the order it names them."""
    relations = (query.source, *(join.relation for join in query.joins))
    scoped = tuple(_scoped(relation, catalog, prefixed=len(relations) > 1) for relation in relations)
    _check_distinct(scoped)
    _check_prefixes(scoped)
    bounds: dict[str, Expression] = {name: Column(name) for name in WINDOW_COLUMNS} if query.window else {}
    return Scope(sources=scoped, extra=bounds)


def find_source(name: str, catalog: Catalog) -> Source:
    source = catalog.sources.get(name)
    if source is None:
        raise SemanticError(f"{name} does not exist.", hint=similar_source(name, catalog))
    return source


def similar_source(name: str, catalog: Catalog) -> str | None:
    """A remedy for a name that no source has."""
    if name.upper() in catalog.sources:
        return f"Did you mean {name.upper()}? Names within quotes keep their case."
    close = difflib.get_close_matches(name.upper(), list(catalog.sources), n=1)
    return f"Did you mean {close[0]}?" if close else "SHOW STREAMS and SHOW TABLES list what there is."


def _scoped(relation: Relation, catalog: Catalog, *, prefixed: bool) -> ScopedSource:
    source = find_source(relation.name, catalog)
    alias = relation.alias or relation.name
    return ScopedSource(alias=alias, source=source, prefix=f"{alias}_" if prefixed else "")


def _check_distinct(scoped: tuple[ScopedSource, ...]) -> None:
    names = [each.source.name for each in scoped]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None and len(names) == 2:
        raise SemanticError(f"Can not join '{twice}' to '{twice}': self joins are not yet supported.")
    if twice is not None:
        raise SemanticError(f"N-way joins do not support multiple occurrences of the same source. Source: '{twice}'.")
    aliases = [each.alias for each in scoped]
    repeated = next((alias for alias in aliases if aliases.count(alias) > 1), None)
    if repeated is not None:
        raise SemanticError(f"The alias {repeated} stands for two sources.", hint="Give each source its own alias.")


def _check_prefixes(scoped: tuple[ScopedSource, ...]) -> None:
    """`A_B.C` and `A.B_C` would be the same column of the plan."""
    names = [each.plan_name(name) for each in scoped for name in each.columns]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise SemanticError(f"Two columns of the join would be called {twice}.", hint="Give the sources other aliases.")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
