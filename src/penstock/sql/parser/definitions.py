"""Statements that define, fill and remove streams, tables, types and connectors."""

from __future__ import annotations

from typing import Literal

from penstock.sql.parser.cursor import Cursor
from penstock.sql.parser.expressions import expression
from penstock.sql.parser.literals import properties
from penstock.sql.parser.queries import query
from penstock.sql.parser.types import type_of
from penstock.sql.schema import HEADERS_TYPE, Kind
from penstock.sql.statements import (
    AlterSource,
    AlterSystem,
    ColumnDefinition,
    CreateAsSelect,
    CreateConnector,
    CreateSource,
    CreateType,
    DropConnector,
    DropSource,
    DropType,
    InsertSelect,
    InsertValues,
    Statement,
)
from penstock.sql.types import BYTES


def create(cursor: Cursor) -> Statement:
    or_replace = cursor.accept("OR", "REPLACE")
    if not or_replace and cursor.accept("TYPE"):
        return _create_type(cursor)
    if not or_replace and cursor.accept("SINK"):
        cursor.expect("CONNECTOR")
        return _create_connector(cursor, "SINK")
    read_only = cursor.accept("SOURCE")
    if read_only and cursor.accept("CONNECTOR"):
        return _create_connector(cursor, "SOURCE")
    kind = source_kind(cursor)
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name(f"the name of the {kind.lower()}")
    columns = cursor.bracketed(lambda: _column(cursor)) if cursor.is_symbol("(") else ()
    given = properties(cursor)
    if not columns and not read_only and cursor.accept("AS"):
        return CreateAsSelect(
            kind=kind,
            name=name,
            query=query(cursor),
            properties=given,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )
    return CreateSource(
        kind=kind,
        name=name,
        columns=columns,
        properties=given,
        or_replace=or_replace,
        if_not_exists=if_not_exists,
        read_only=read_only,
    )


def source_kind(cursor: Cursor) -> Kind:
    return "STREAM" if cursor.expect_one("STREAM", "TABLE") == "STREAM" else "TABLE"


def source_definition(cursor: Cursor) -> CreateSource:
    """`STREAM name (columns) WITH (...)`"""
    kind = source_kind(cursor)
    name = cursor.name(f"the name of the {kind.lower()}")
    columns = cursor.bracketed(lambda: _column(cursor)) if cursor.is_symbol("(") else ()
    return CreateSource(kind=kind, name=name, columns=columns, properties=properties(cursor))


def _if_not_exists(cursor: Cursor) -> bool:
    return cursor.accept("IF", "NOT", "EXISTS")


def _column(cursor: Cursor) -> ColumnDefinition:
    name = cursor.name("the name of a column")
    token = cursor.token
    found = type_of(cursor)
    if cursor.accept("PRIMARY"):
        cursor.expect("KEY")
        return ColumnDefinition(name=name, type=found, role="PRIMARY KEY")
    if cursor.accept("KEY"):
        return ColumnDefinition(name=name, type=found, role="KEY")
    if cursor.accept("HEADERS"):
        if found != HEADERS_TYPE:
            cursor.fail(f"A column of HEADERS has the type {HEADERS_TYPE}.", at=token)
        return ColumnDefinition(name=name, type=found, role="HEADERS")
    if cursor.accept("HEADER"):
        if found != BYTES:
            cursor.fail("A column of HEADER('name') has the type BYTES.", at=token)
        cursor.expect_symbol("(")
        header = cursor.string()
        cursor.expect_symbol(")")
        return ColumnDefinition(name=name, type=found, role="HEADER", header=header)
    return ColumnDefinition(name=name, type=found)


def _create_type(cursor: Cursor) -> CreateType:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name("the name of the type")
    cursor.expect("AS")
    return CreateType(name=name, type=type_of(cursor), if_not_exists=if_not_exists)


def _create_connector(cursor: Cursor, direction: Literal["SOURCE", "SINK"]) -> CreateConnector:
    if_not_exists = _if_not_exists(cursor)
    name = cursor.name_or_string("the name of the connector")
    given = properties(cursor, keep_case=True)
    return CreateConnector(direction=direction, name=name, properties=given, if_not_exists=if_not_exists)


def drop(cursor: Cursor) -> Statement:
    what = cursor.expect_one("STREAM", "TABLE", "TYPE", "CONNECTOR")
    if_exists = cursor.accept("IF", "EXISTS")
    if what == "CONNECTOR":
        return DropConnector(name=cursor.name_or_string("the name of the connector"), if_exists=if_exists)
    name = cursor.name(f"the name of the {what.lower()}")
    if what == "TYPE":
        return DropType(name=name, if_exists=if_exists)
    kind: Kind = "STREAM" if what == "STREAM" else "TABLE"
    return DropSource(kind=kind, name=name, if_exists=if_exists, delete_topic=cursor.accept("DELETE", "TOPIC"))


def alter(cursor: Cursor) -> Statement:
    if cursor.accept("SYSTEM"):
        name = cursor.string()
        cursor.expect_symbol("=")
        return AlterSystem(name=name, value=cursor.string())
    kind = source_kind(cursor)
    name = cursor.name(f"the name of the {kind.lower()}")
    return AlterSource(kind=kind, name=name, columns=cursor.listed(lambda: _added(cursor)))


def _added(cursor: Cursor) -> ColumnDefinition:
    cursor.expect("ADD")
    cursor.accept("COLUMN")
    return ColumnDefinition(name=cursor.name("the name of a column"), type=type_of(cursor))


def insert(cursor: Cursor) -> Statement:
    cursor.expect("INTO")
    target = cursor.name("the name of a stream or table")
    given = properties(cursor)
    if cursor.is_word("SELECT"):
        return InsertSelect(target=target, query=query(cursor), properties=given)
    columns = names(cursor) if cursor.is_symbol("(") else ()
    token = cursor.token
    cursor.expect("VALUES")
    values = cursor.bracketed(lambda: expression(cursor))
    if columns and len(columns) != len(values):
        cursor.fail(f"{len(columns)} columns are named and {len(values)} values given.", at=token)
    return InsertValues(target=target, columns=columns, values=values)


def names(cursor: Cursor) -> tuple[str, ...]:
    return cursor.bracketed(lambda: cursor.name("the name of a column"))
