"""CREATE ... AS SELECT, INSERT INTO ... SELECT, and TERMINATE, PAUSE, RESUME."""

from __future__ import annotations

from typing import Final

import msgspec

from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.catalog.properties import read_properties
from penstock.sql.engine.decisions.situation import Decision, Situation, creation_name, make_command, name_taken
from penstock.sql.engine.decisions.sources import check_source_replaced
from penstock.sql.engine.new_topics import topic_for_query
from penstock.sql.engine.query_ids import insert_query_id, select_query_id
from penstock.sql.errors import SemanticError
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.plan.planner import Planned, SinkRequest, plan_query
from penstock.sql.plan.replacing import check_replacement
from penstock.sql.plan.scope import similar_source
from penstock.sql.statements import ControlQuery, CreateAsSelect, InsertSelect


def create_as_select(statement: CreateAsSelect, situation: Situation) -> Decision:
    existing = situation.catalog.sources.get(statement.name)
    if existing is not None and not statement.or_replace:
        return name_taken(statement.kind, existing, allowed=statement.if_not_exists)
    query_id = select_query_id(statement.kind, statement.name, situation.offset)
    replaced = _replaced_query(existing, situation) if existing is not None else None
    planned = plan_statement(statement, situation, query_id=replaced.query_id if replaced else query_id)
    if replaced is not None:
        check_replacement(replaced, planned.plan)
    source = _source_of(planned.plan, situation.text)
    if existing is not None and replaced is None:
        check_source_replaced(msgspec.structs.replace(existing, query_id=None), source)
    command = make_command(
        situation,
        creation_name(source),
        f"Created query with ID {planned.plan.query_id}",
        sources=(source,),
        query=planned.plan,
    )
    properties = read_properties(statement.properties, of_query=True)
    new_topic = topic_for_query(planned.plan, properties, situation.topics)
    return Decision(command=command, warnings=planned.warnings, new_topic=new_topic)


def _replaced_query(existing: Source, situation: Situation) -> QueryPlan | None:
    """The running query whose place is taken; None if it was terminated."""
    writers = situation.catalog.writers(existing.name)
    if len(writers) > 1:
        ids = ", ".join(query.query_id for query in writers)
        raise SemanticError(
            f"REPLACE for sink {existing.name} is not supported because there are multiple queries writing into it: "
            f"[{ids}].",
            hint="Terminate all but one.",
        )
    return writers[0].plan if writers else None


def _source_of(plan: QueryPlan, text: str) -> Source:
    sink = plan.sink
    assert sink is not None, "a persistent query has a sink"
    return Source(
        name=sink.name,
        kind=sink.kind,
        topic=sink.topic,
        schema=sink.schema,
        key_format=sink.key_format,
        value_format=sink.value_format,
        windowed=sink.windowed,
        timestamp=sink.timestamp,
        statement=text,
        query_id=plan.query_id,
    )


def plan_statement(statement: CreateAsSelect | InsertSelect, situation: Situation, *, query_id: str) -> Planned:
    """The plan of a persistent query."""
    return plan_query(
        statement.query,
        situation.catalog,
        situation.functions,
        query_id=query_id,
        text=situation.text,
        sink=_sink_of(statement, situation.catalog),
        properties=situation.properties,
    )


def _sink_of(statement: CreateAsSelect | InsertSelect, catalog: Catalog) -> SinkRequest:
    if isinstance(statement, CreateAsSelect):
        properties = read_properties(statement.properties, of_query=True)
        return SinkRequest(name=statement.name, kind=statement.kind, properties=properties)
    target = catalog.sources.get(statement.target)
    if target is None:
        raise SemanticError(f"Unknown source: {statement.target}.", hint=similar_source(statement.target, catalog))
    if target.kind == "TABLE":
        raise SemanticError(f"INSERT INTO can only be used to insert into a stream. {target.name} is a table.")
    if target.read_only:
        raise SemanticError(f"Cannot insert into read-only stream: {target.name}")
    if target.schema.headers:
        raise SemanticError(f"Cannot insert into {target.name} because it has header columns")
    return SinkRequest(name=target.name, kind=target.kind, target=target)


def insert_select(statement: InsertSelect, situation: Situation) -> Decision:
    query_id = insert_query_id(statement.properties, situation.offset, situation.catalog)
    planned = plan_statement(statement, situation, query_id=query_id)
    name = f"stream/{statement.target}/create"
    command = make_command(situation, name, f"Created query with ID {query_id}", query=planned.plan)
    return Decision(command=command, warnings=planned.warnings)


_EFFECTS: Final = {"TERMINATE": "terminated", "PAUSE": "paused", "RESUME": "resumed"}


def control_query(statement: ControlQuery, situation: Situation) -> Decision:
    queries = situation.catalog.queries
    if statement.query_id is not None and statement.query_id not in queries:
        raise SemanticError(f"Unknown queryId: {statement.query_id}.", hint="SHOW QUERIES lists those there are.")
    chosen = tuple(queries) if statement.query_id is None else (statement.query_id,)
    effect = _EFFECTS[statement.action]
    name = f"{statement.action.lower()}/{statement.query_id or 'ALL'}/execute"
    return Decision(command=make_command(situation, name, f"Query {effect}.", **{effect: chosen}))
