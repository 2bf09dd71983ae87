"""Statements that look at things, steer queries, keep the session, and assert."""

from __future__ import annotations

from typing import Any, cast

from penstock.sql.parser.cursor import Cursor
from penstock.sql.parser.definitions import names, source_definition
from penstock.sql.parser.expressions import expression
from penstock.sql.parser.literals import duration_ms, properties
from penstock.sql.statements import (
    AssertSchema,
    AssertSource,
    AssertTopic,
    AssertValues,
    ControlQuery,
    DefineVariable,
    Describe,
    ListThings,
    PrintTopic,
    RunScript,
    SetProperty,
    Spool,
    Statement,
    UndefineVariable,
    UnsetProperty,
)

_LISTED = ("STREAMS", "TABLES", "TOPICS", "QUERIES", "FUNCTIONS", "TYPES", "PROPERTIES", "VARIABLES", "CONNECTORS")


def show(cursor: Cursor) -> ListThings:
    if cursor.accept("ALL"):
        cursor.expect("TOPICS")
        thing = "ALL TOPICS"
    elif cursor.accept("CONNECTOR"):
        cursor.expect("PLUGINS")
        thing = "CONNECTOR PLUGINS"
    elif direction := cursor.accept_one("SOURCE", "SINK"):
        cursor.expect("CONNECTORS")
        thing = f"{direction} CONNECTORS"
    else:
        thing = cursor.expect_one(*_LISTED)
    return ListThings(thing=cast("Any", thing), extended=cursor.accept("EXTENDED"))


def describe(cursor: Cursor) -> Describe:
    alone = cursor.ahead(1).kind == "end"
    extended = not alone and cursor.accept("EXTENDED")
    if cursor.is_word("STREAMS", "TABLES"):
        what = cast("Any", cursor.advance().text.upper())
        return Describe(what=what, extended=cursor.accept("EXTENDED") or extended)
    if not alone and cursor.accept("FUNCTION"):
        return Describe(what="FUNCTION", name=cursor.name("the name of a function"))
    if not alone and cursor.accept("CONNECTOR"):
        return Describe(what="CONNECTOR", name=cursor.name_or_string("the name of a connector"))
    name = cursor.name("the name of a stream or table")
    return Describe(what="SOURCE", name=name, extended=cursor.accept("EXTENDED") or extended)


def print_topic(cursor: Cursor) -> PrintTopic:
    topic = cursor.name_or_string("the name of a topic")
    from_beginning = cursor.accept("FROM")
    if from_beginning:
        cursor.expect("BEGINNING")
    interval = cursor.integer() if cursor.accept_one("INTERVAL", "SAMPLE") else 1
    limit = cursor.integer() if cursor.accept("LIMIT") else None
    return PrintTopic(topic=topic, from_beginning=from_beginning, interval=interval or 1, limit=limit)


def control(cursor: Cursor, action: str) -> ControlQuery:
    if cursor.accept("ALL"):
        return ControlQuery(action=cast("Any", action), query_id=None)
    if cursor.ahead(1).kind != "end":
        cursor.accept("QUERY")
    return ControlQuery(action=cast("Any", action), query_id=cursor.name("the id of a query"))


def set_property(cursor: Cursor) -> SetProperty:
    name, value = _assignment(cursor)
    return SetProperty(name=name, value=value)


def unset_property(cursor: Cursor) -> UnsetProperty:
    return UnsetProperty(name=cursor.string())


def _assignment(cursor: Cursor) -> tuple[str, str]:
    name = cursor.string()
    cursor.expect_symbol("=")
    return name, cursor.string()


def define(cursor: Cursor) -> DefineVariable:
    name = cursor.name("the name of a variable", keep_case=True)
    cursor.expect_symbol("=")
    return DefineVariable(name=name, value=cursor.string())


def undefine(cursor: Cursor) -> UndefineVariable:
    return UndefineVariable(name=cursor.name("the name of a variable", keep_case=True))


def run_script(cursor: Cursor) -> RunScript:
    cursor.expect("SCRIPT")
    return RunScript(path=cursor.string())


def spool(cursor: Cursor) -> Spool:
    return Spool(path=None if cursor.accept("OFF") else cursor.string())


def assertion(cursor: Cursor) -> Statement:
    if cursor.accept("NULL"):
        cursor.expect("VALUES")
        return _assert_values(cursor, tombstone=True)
    if cursor.accept("VALUES"):
        return _assert_values(cursor, tombstone=False)
    if cursor.is_word("STREAM", "TABLE"):
        return AssertSource(source=source_definition(cursor))
    exists = not cursor.accept("NOT", "EXISTS")
    if cursor.accept("TOPIC"):
        name = cursor.name_or_string("the name of a topic")
        return AssertTopic(name=name, properties=properties(cursor), exists=exists, timeout_ms=_timeout_ms(cursor))
    cursor.expect("SCHEMA")
    return _assert_schema(cursor, exists=exists)


def _timeout_ms(cursor: Cursor) -> int | None:
    return duration_ms(cursor) if cursor.accept("TIMEOUT") else None


def _assert_schema(cursor: Cursor, *, exists: bool) -> AssertSchema:
    subject = cursor.name_or_string("the name of a subject") if cursor.accept("SUBJECT") else None
    schema_id = cursor.integer() if cursor.accept("ID") else None
    if subject is None and schema_id is None:
        cursor.fail()
    return AssertSchema(subject=subject, schema_id=schema_id, exists=exists, timeout_ms=_timeout_ms(cursor))


def _assert_values(cursor: Cursor, *, tombstone: bool) -> AssertValues:
    target = cursor.name("the name of a stream or table")
    columns = names(cursor) if cursor.is_symbol("(") else ()
    token = cursor.token
    cursor.expect("KEY" if tombstone else "VALUES")
    values = cursor.bracketed(lambda: expression(cursor))
    if columns and len(columns) != len(values):
        cursor.fail(f"{len(columns)} columns are named and {len(values)} values given.", at=token)
    return AssertValues(target=target, columns=columns, values=values, tombstone=tombstone)
