"""The state that planning passes from rule to rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.catalog.properties import SourceProperties
from penstock.sql.expressions.nodes import Expression, NamedExpression
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.nodes import PlanNode
from penstock.sql.plan.scope import Scope
from penstock.sql.schema import Kind, WindowedKey
from penstock.sql.statements import Query
from penstock.sql.types import SqlType


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkRequest:
    """Where the rows shall go: a new source, or `target`, one that exists (INSERT INTO)."""

    name: str
    kind: Kind
    properties: SourceProperties = field(default_factory=SourceProperties)
    target: Source | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    query: Query
    catalog: Catalog
    functions: FunctionRegistry
    query_id: str
    text: str
    sink: SinkRequest | None
    properties: Mapping[str, Any]

    @property
    def persistent(self) -> bool:
        return self.sink is not None

    @property
    def pull(self) -> bool:
        return self.sink is None and self.query.emit is None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyPart:
    """One column of the key the rows have at this point.

    `name` is used unless the SELECT gives another. `equals` are the expressions that select it: after a join either
    side of the condition does. `synthetic`: no source has this column, the join made it.
    """

    name: str
    expression: Expression
    equals: tuple[Expression, ...]
    synthetic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A plan in the making. `columns` are those of `node`; `items` the SELECT list, resolved against them.

    `key_origin` says in messages what the key comes from. `star`: a plain `*` was selected, which takes in any key.
    """

    request: Request
    scope: Scope
    node: PlanNode
    columns: Mapping[str, SqlType]
    kind: Kind
    key: tuple[KeyPart, ...] = ()
    key_origin: str = "key column"
    items: tuple[NamedExpression, ...] = ()
    star: bool = False
    windowed: WindowedKey | None = None
    aggregated: bool = False
    warnings: tuple[str, ...] = ()
