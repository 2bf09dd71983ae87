"""From a statement to its decision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from penstock.sql.catalog.catalog import Catalog
from penstock.sql.engine.decisions.queries import control_query, create_as_select, insert_select
from penstock.sql.engine.decisions.situation import Decision, Situation
from penstock.sql.engine.decisions.sources import alter_source, create_source, drop_source
from penstock.sql.engine.decisions.types import create_type, drop_type
from penstock.sql.statements import (
    AlterSource,
    ControlQuery,
    CreateAsSelect,
    CreateSource,
    CreateType,
    DropSource,
    DropType,
    InsertSelect,
)

Changing = (
    CreateSource | CreateAsSelect | InsertSelect | DropSource | AlterSource | CreateType | DropType | ControlQuery
)
"""The statements that change the catalog."""

_DECISIONS: Final[dict[type, Callable[[Any, Situation], Decision]]] = {
    CreateSource: create_source,
    CreateAsSelect: create_as_select,
    InsertSelect: insert_select,
    DropSource: drop_source,
    AlterSource: alter_source,
    CreateType: create_type,
    DropType: drop_type,
    ControlQuery: control_query,
}


def decide(statement: Changing, situation: Situation) -> Decision:
    return _DECISIONS[type(statement)](statement, situation)


def topics_of(statement: Changing, catalog: Catalog) -> set[str]:
    """The topics whose facts a decision needs."""
    match statement:
        case CreateSource(name=name):
            return {str(statement.properties.get("KAFKA_TOPIC", name))}
        case CreateAsSelect(name=name, query=query):
            source = catalog.sources.get(query.source.name)
            return {str(statement.properties.get("KAFKA_TOPIC", name)), *({source.topic} if source else ())}
        case _:
            return set()
