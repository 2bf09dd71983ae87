"""A script to its statements: each is told by its first word, in one table.

Statements of one script see what those before them defined: variables (DEFINE) and types (CREATE TYPE).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, TypeVar

from penstock.sql.errors import SqlSyntaxError
from penstock.sql.expressions.nodes import Expression
from penstock.sql.parser import administration as admin
from penstock.sql.parser import definitions
from penstock.sql.parser.cursor import Cursor, Origin
from penstock.sql.parser.expressions import expression
from penstock.sql.parser.queries import query
from penstock.sql.parser.splitting import RawStatement, split_statements, substitute_variables
from penstock.sql.parser.types import type_of
from penstock.sql.statements import (
    CreateType,
    DefineVariable,
    DropType,
    Explain,
    ParsedStatement,
    SelectStatement,
    Statement,
    UndefineVariable,
)
from penstock.sql.types import SqlType

T = TypeVar("T")


def parse(
    text: str, *, types: Mapping[str, SqlType] | None = None, variables: Mapping[str, str] | None = None
) -> list[ParsedStatement]:
    """The statements of a script. `variables` None: `${name}` is not substituted."""
    known_types = dict(types or {})
    known_variables = None if variables is None else dict(variables)
    parsed = []
    for raw in split_statements(text):
        found = _parse_one(raw, known_types, known_variables)
        _define(found.statement, known_types, known_variables)
        parsed.append(found)
    return parsed


def parse_expression(text: str, *, types: Mapping[str, SqlType] | None = None) -> Expression:
    return _whole(Cursor(text, origin=Origin(), types=types or {}), expression)


def parse_type(text: str, types: Mapping[str, SqlType] | None = None) -> SqlType:
    return _whole(Cursor(text, origin=Origin(), types=types or {}), type_of)


def parse_name(text: str) -> str:
    """A name as it is written in statements: bare and folded, or quoted and kept."""
    return _whole(Cursor(text, origin=Origin(), types={}), Cursor.name)


def _parse_one(raw: RawStatement, types: Mapping[str, SqlType], variables: Mapping[str, str] | None) -> ParsedStatement:
    origin = Origin(line=raw.line, column=raw.column)
    if raw.open_quote:
        line, column = origin.place(raw.text, len(raw.text))
        raise SqlSyntaxError("The text ends inside a quote or a comment.", line=line, column=column, hint="Close it.")
    text = raw.text if variables is None else substitute_variables(raw.text, variables)
    cursor = Cursor(text, origin=origin, types=types)
    statement = _whole(cursor, _statement)
    return ParsedStatement(text=text, statement=statement, line=raw.line, column=raw.column, places=cursor.places)


def _whole(cursor: Cursor, rule: Callable[[Cursor], T]) -> T:
    found = rule(cursor)
    if not cursor.at_end:
        cursor.fail()
    return found


def _define(statement: Statement, types: dict[str, SqlType], variables: dict[str, str] | None) -> None:
    match statement:
        case CreateType():
            types[statement.name] = statement.type
        case DropType():
            types.pop(statement.name, None)
        case DefineVariable() if variables is not None:
            variables[statement.name] = statement.value
        case UndefineVariable() if variables is not None:
            variables.pop(statement.name, None)


def _statement(cursor: Cursor) -> Statement:
    if cursor.is_word("SELECT"):
        return SelectStatement(query=query(cursor))
    return _RULES[cursor.expect_one(*_RULES)](cursor)


def _explain(cursor: Cursor) -> Explain:
    if cursor.is_name() and cursor.ahead(1).kind == "end":
        return Explain(query_id=cursor.name())
    return Explain(statement=_statement(cursor))


_RULES: Final[dict[str, Callable[[Cursor], Statement]]] = {
    "CREATE": definitions.create,
    "INSERT": definitions.insert,
    "DROP": definitions.drop,
    "ALTER": definitions.alter,
    "SHOW": admin.show,
    "LIST": admin.show,
    "DESCRIBE": admin.describe,
    "EXPLAIN": _explain,
    "PRINT": admin.print_topic,
    "TERMINATE": partial(admin.control, action="TERMINATE"),
    "PAUSE": partial(admin.control, action="PAUSE"),
    "RESUME": partial(admin.control, action="RESUME"),
    "SET": admin.set_property,
    "UNSET": admin.unset_property,
    "DEFINE": admin.define,
    "UNDEFINE": admin.undefine,
    "RUN": admin.run_script,
    "SPOOL": admin.spool,
    "ASSERT": admin.assertion,
}
