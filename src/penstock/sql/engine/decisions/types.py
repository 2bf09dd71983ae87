"""CREATE TYPE and DROP TYPE."""

from __future__ import annotations

from penstock.sql.engine.decisions.situation import Decision, Situation, make_command
from penstock.sql.errors import SemanticError
from penstock.sql.statements import CreateType, DropType


def create_type(statement: CreateType, situation: Situation) -> Decision:
    existing = situation.catalog.types.get(statement.name)
    if existing is not None:
        note = f"Cannot register custom type '{statement.name}' since it is already registered with type: {existing}"
        if statement.if_not_exists:
            return Decision(note=f"{statement.name} is already registered with type {existing}")
        raise SemanticError(note + ".", hint="Drop it first with DROP TYPE.")
    message = f"Registered custom type with name '{statement.name}' and SQL type {statement.type}"
    types = {statement.name: statement.type}
    return Decision(command=make_command(situation, f"type/{statement.name}/create", message, types=types))


def drop_type(statement: DropType, situation: Situation) -> Decision:
    if statement.name not in situation.catalog.types:
        if statement.if_exists:
            return Decision(note=f"Type '{statement.name}' does not exist")
        raise SemanticError(f"Type {statement.name} does not exist.", hint="SHOW TYPES lists those there are.")
    message = f"Dropped type '{statement.name}'"
    return Decision(
        command=make_command(situation, f"type/{statement.name}/drop", message, dropped_types=(statement.name,))
    )
