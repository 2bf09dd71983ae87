"""One change of the catalog, decided once and replayed by every server.

A command holds the effects, not only the statement: a server that replays it needs no topic, no schema and no version
of the planner to come to the same catalog. The statement's text is kept for people.
"""

from __future__ import annotations

from typing import Any

import msgspec

from penstock.sql.catalog.catalog import Catalog, PersistentQuery, Source
from penstock.sql.errors import EngineError
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.types import SqlType

COMMAND_VERSION = 1


class Command(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`unique` tells a writer that lost the answer whether its command was kept. `name` is ksqlDB's command id, as in
    `stream/ORDERS/create`. Effects take place in the order of the fields.
    """

    unique: str
    name: str
    statement: str
    message: str
    properties: dict[str, Any] = {}
    terminated: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    sources: tuple[Source, ...] = ()
    dropped_types: tuple[str, ...] = ()
    types: dict[str, SqlType] = {}
    query: QueryPlan | None = None
    paused: tuple[str, ...] = ()
    resumed: tuple[str, ...] = ()
    version: int = COMMAND_VERSION


class _Versioned(msgspec.Struct, frozen=True):
    version: int = COMMAND_VERSION


# Made here, once: two threads that are the first to decode a recursive type crash msgspec.
_VERSION_DECODER = msgspec.json.Decoder(_Versioned)
_DECODER = msgspec.json.Decoder(Command)


def encode(command: Command) -> bytes:
    return msgspec.json.encode(command)


def decode(data: bytes) -> Command:
    """A command of a newer server cannot be replayed here; going on without it would give another catalog."""
    try:
        version = _VERSION_DECODER.decode(data).version
    except msgspec.MsgspecError as error:
        raise _unreadable(error) from None
    if version > COMMAND_VERSION:
        raise EngineError(
            "Received a command from an incompatible command topic version. "
            f"Expected version less than or equal to {COMMAND_VERSION} but got {version}",
            hint="Start a server that is at least as new as the one that wrote it.",
        )
    try:
        return _DECODER.decode(data)
    except msgspec.MsgspecError as error:
        raise _unreadable(error) from None


def _unreadable(error: Exception) -> EngineError:
    return EngineError(
        f"A record of the command topic is no command: {error}.", hint="Nothing else may write into that topic."
    )


def apply(catalog: Catalog, command: Command) -> Catalog:
    for query_id in command.terminated:
        catalog = catalog.without_query(query_id)
    for name in command.dropped:
        catalog = catalog.without_source(name)
    for source in command.sources:
        catalog = catalog.with_source(source)
    for name in command.dropped_types:
        catalog = catalog.without_type(name)
    for name, sql_type in command.types.items():
        catalog = catalog.with_type(name, sql_type)
    if command.query is not None:
        catalog = catalog.with_query(PersistentQuery(plan=command.query))
    catalog = catalog.with_state(command.paused, "PAUSED")
    return catalog.with_state(command.resumed, "RUNNING")
