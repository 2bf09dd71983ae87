"""What a decision is made on, and what it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.sql.catalog.catalog import Catalog, Source
from penstock.sql.commands.command import Command
from penstock.sql.engine.new_topics import NewTopicRequest, TopicFacts
from penstock.sql.errors import SemanticError
from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.schema import Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a decision is made on. `offset` is where the command will stand; `unique` will be its mark."""

    catalog: Catalog
    functions: FunctionRegistry
    topics: Mapping[str, TopicFacts]
    properties: Mapping[str, Any]
    text: str
    offset: int
    unique: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """`command` None: nothing is to be changed, and `note` says why. `deleted_topic` goes once the command stands."""

    command: Command | None = None
    note: str | None = None
    warnings: tuple[str, ...] = ()
    new_topic: NewTopicRequest | None = None
    deleted_topic: str | None = None


def make_command(situation: Situation, name: str, message: str, **effects: Any) -> Command:
    return Command(
        unique=situation.unique,
        name=name,
        statement=situation.text,
        message=message,
        properties=dict(situation.properties),
        **effects,
    )


def name_taken(kind: Kind, existing: Source, *, allowed: bool) -> Decision:
    rest = f"A {existing.kind.lower()} with the same name already exists."
    if not allowed:
        raise SemanticError(
            f"Cannot add {kind.lower()} '{existing.name}': {rest}",
            hint="Choose another name, or use CREATE OR REPLACE.",
        )
    return Decision(note=f"Cannot add {kind.lower()} `{existing.name}`: {rest}")


def creation_name(source: Source) -> str:
    return f"{source.kind.lower()}/{source.name}/create"
