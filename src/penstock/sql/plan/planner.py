"""From a parsed query to a plan. Pure: everything the planner needs to know of the world is in its arguments.

Planning goes through the rules below, in their order, which is that of the clauses as they take effect: sources and
joins, the SELECT list written out, WHERE, PARTITION BY, table functions, GROUP BY. Each rule takes a draft and gives a
new one. The projection comes last and fixes the schema; a persistent query then gets its sink.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.expressions.nodes import Column
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.plan.aggregating import aggregate
from penstock.sql.plan.checks import check_emission, check_form, check_sources, note_stream_of_changes
from penstock.sql.plan.draft import Draft, KeyPart, Request, SinkRequest
from penstock.sql.plan.filtering import filter_rows
from penstock.sql.plan.joins import SYNTHETIC_KEY, Joined, join_sources
from penstock.sql.plan.nodes import PlanNode, ProjectNode, QueryPlan, SourceNode
from penstock.sql.plan.partitioning import flat_map, partition
from penstock.sql.plan.projecting import project
from penstock.sql.plan.scope import Scope, scope_of
from penstock.sql.plan.selecting import select_items
from penstock.sql.plan.sinks import make_sink, result_kind
from penstock.sql.statements import Query

__all__ = ["Planned", "SinkRequest", "plan_query"]

RULES: tuple[Callable[[Draft], Draft], ...] = (
    check_sources,
    select_items,
    filter_rows,
    partition,
    flat_map,
    aggregate,
    check_emission,
    note_stream_of_changes,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    plan: QueryPlan
    warnings: tuple[str, ...] = ()


def plan_query(
    query: Query,
    catalog: Catalog,
    functions: FunctionRegistry,
    *,
    query_id: str,
    text: str,
    sink: SinkRequest | None = None,
    properties: Mapping[str, Any] | None = None,
) -> Planned:
    """The plan of a persistent query (with `sink`), a push query (with EMIT) or a pull query (neither)."""
    request = Request(
        query=query,
        catalog=catalog,
        functions=functions,
        query_id=query_id,
        text=text,
        sink=sink,
        properties=properties or {},
    )
    check_form(request)
    draft = _read_sources(request)
    for rule in RULES:
        draft = rule(draft)
    return _finish(draft)


def _read_sources(request: Request) -> Draft:
    scope = scope_of(request.query, request.catalog)
    joined = join_sources(scope, request.query.joins, request.functions)
    first = scope.sources[0]
    return Draft(
        request=request,
        scope=_with_synthetic_key(scope, joined),
        node=joined.node,
        columns=scope.column_types(),
        kind=joined.kind,
        key=_source_key(scope, joined),
        key_origin="join expression" if scope.is_join else "key column",
        windowed=None if scope.is_join else first.source.windowed,
    )


def _source_key(scope: Scope, joined: Joined) -> tuple[KeyPart, ...]:
    part = joined.key_part()
    if part is not None:
        return (part,)
    columns = [column.name for column in scope.sources[0].source.schema.key]
    return tuple(KeyPart(name=name, expression=Column(name), equals=(Column(name),)) for name in columns)


def _with_synthetic_key(scope: Scope, joined: Joined) -> Scope:
    part = joined.key_part()
    if part is None or not part.synthetic:
        return scope
    return replace(scope, extra={**scope.extra, SYNTHETIC_KEY: part.expression})


def _finish(draft: Draft) -> Planned:
    request, projected = draft.request, project(draft)
    kind, sink = result_kind(projected), None
    if request.sink is not None:
        projected, sink = make_sink(projected, request.sink)
    plan = QueryPlan(
        query_id=request.query_id,
        text=request.text,
        kind=kind,
        root=projected.draft.node if sink is None else _copying_empty(projected.draft.node),
        schema=projected.schema,
        sink=sink,
        windowed=draft.windowed,
        emit=request.query.emit or "CHANGES",
        limit=request.query.limit,
        columns=projected.columns,
        properties=dict(request.properties),
    )
    return Planned(plan=plan, warnings=draft.warnings)


def _copying_empty(root: PlanNode) -> PlanNode:
    """A query that only selects copies records without a value, as ksqlDB does; anything else drops them."""
    match root:
        case ProjectNode(input=SourceNode(kind="STREAM") as source):
            source = msgspec.structs.replace(source, keeps_empty=True)
            return msgspec.structs.replace(root, input=source)
        case _:
            return root
