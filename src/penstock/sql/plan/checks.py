"""Rules about the form of a query, before anything in it is looked up."""

from __future__ import annotations

from dataclasses import replace

from penstock.sql.errors import SemanticError
from penstock.sql.expressions.walk import columns_of
from penstock.sql.plan.draft import Draft, Request
from penstock.sql.plan.nodes import AggregateNode
from penstock.sql.plan.patterns import check_patterns
from penstock.sql.schema import ROWOFFSET, ROWPARTITION

_PULL_HELP = "Add EMIT CHANGES if you intended to issue a push query."


def check_form(request: Request) -> None:
    check_patterns(request.query)
    if request.pull:
        _check_pull(request)
    elif request.persistent and request.query.limit is not None:
        raise SemanticError(
            "LIMIT is not supported in persistent queries: they run until they are terminated.",
            hint="Drop the LIMIT clause, or SELECT on its own.",
        )


def _check_pull(request: Request) -> None:
    query = request.query
    clauses = {
        "JOIN": query.joins,
        "WINDOW": query.window,
        "GROUP BY": query.group_by,
        "PARTITION BY": query.partition_by,
        "HAVING": query.having,
    }
    for name, clause in clauses.items():
        if clause:
            raise SemanticError(f"Pull queries don't support {name} clauses.", hint=_PULL_HELP)
    if query.limit is not None and query.limit < 0:
        raise SemanticError("Pull queries don't support negative integers in the LIMIT clause.")


def check_sources(draft: Draft) -> Draft:
    """Rule: a table with windowed keys can be looked at, but feeds no other query."""
    for scoped in draft.scope.sources:
        if draft.request.pull and scoped.source.kind == "TABLE":
            _check_pull_columns(draft.request)
        if draft.request.persistent and scoped.source.kind == "TABLE" and scoped.source.windowed:
            raise SemanticError(
                "KSQL does not support persistent queries on windowed tables.",
                hint=f"Declare a stream with WINDOW_TYPE on the topic {scoped.source.topic} and query that.",
            )
    return draft


def _check_pull_columns(request: Request) -> None:
    """A row of a table has no place in a topic any more."""
    selected = [item.expression for item in request.query.items if item.expression is not None]
    clauses = {"SELECT": selected, "WHERE": [request.query.where] if request.query.where is not None else []}
    for clause, expressions in clauses.items():
        used = sorted({column.name for each in expressions for column in columns_of(each)} & {ROWPARTITION, ROWOFFSET})
        if used:
            raise SemanticError(
                f"Pull queries don't support the following columns in {clause} clauses: {', '.join(used)}.",
                hint=_PULL_HELP,
            )


def check_emission(draft: Draft) -> Draft:
    """Rule: only a window has an end to wait for; a pull query has no changes to aggregate."""
    if draft.request.pull and draft.aggregated:
        raise SemanticError("Pull queries don't support aggregate functions.", hint=_PULL_HELP)
    windowed = isinstance(draft.node, AggregateNode) and draft.node.window is not None
    if draft.request.query.emit == "FINAL" and not windowed:
        raise SemanticError("EMIT FINAL is only supported for windowed aggregations.", hint="Use EMIT CHANGES.")
    return draft


def note_stream_of_changes(draft: Draft) -> Draft:
    """Rule: says what CREATE STREAM over an aggregate gives."""
    sink = draft.request.sink
    if not draft.aggregated or sink is None or sink.kind == "TABLE":
        return draft
    note = (
        f"The query aggregates into the stream {sink.name}: it has one row for each change of a group, and cannot be "
        "looked up by key. Use CREATE TABLE for that."
    )
    return replace(draft, warnings=(*draft.warnings, note))
