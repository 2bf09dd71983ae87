"""The engine as the REST server sees it: absent while it starts, replaced when it had to start again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.sql.engine.properties import query_properties
from penstock.sql.errors import NotReadyError, SemanticError, SqlError
from penstock.sql.server.ports import Entity, RunningQuery
from penstock.sql.statements import ParsedStatement


class Engine(Protocol):
    """What is used of the engine."""

    @property
    def ready(self) -> bool: ...

    @property
    def kafka_cluster_id(self) -> str: ...

    def execute(
        self,
        text: str,
        properties: Mapping[str, Any],
        variables: Mapping[str, str],
        command_sequence_number: int | None = None,
    ) -> list[Entity]: ...

    def parse(self, text: str, variables: Mapping[str, str]) -> list[ParsedStatement]: ...

    def insert_rows(self, target: str, rows: Sequence[Mapping[str, Any]]) -> Sequence[SqlError | None]: ...

    def is_valid_property(self, name: str) -> bool: ...

    def command_statuses(self) -> Mapping[str, Mapping[str, Any]]: ...

    def terminate_cluster(self, delete_topics: Sequence[str]) -> list[Entity]: ...

    def health(self) -> Mapping[str, bool]: ...


class Queries(Protocol):
    """What is used of the queries people wait for."""

    def open(self, parsed: ParsedStatement, properties: Mapping[str, Any]) -> RunningQuery: ...

    def get(self, query_id: str) -> RunningQuery: ...


class Parts(Protocol):
    """What a server consists of, as far as requests need it."""

    @property
    def engine(self) -> Engine: ...

    @property
    def queries(self) -> Queries: ...

    def find_rows(self, table: str, question: bytes) -> bytes: ...


class EngineService:
    """The server's `SqlService`."""

    def __init__(self, service_id: str, query_defaults: Mapping[str, Any]) -> None:
        self.service_id = service_id
        self._query_defaults = query_defaults
        self._parts: Parts | None = None

    def use(self, parts: Parts) -> None:
        self._parts = parts

    def forget(self) -> None:
        self._parts = None

    @property
    def ready(self) -> bool:
        return self._parts is not None and self._parts.engine.ready

    @property
    def kafka_cluster_id(self) -> str:
        return "" if self._parts is None else self._parts.engine.kafka_cluster_id

    def execute(
        self,
        text: str,
        properties: Mapping[str, Any],
        variables: Mapping[str, str],
        command_sequence_number: int | None = None,
    ) -> list[Entity]:
        return self._ready().engine.execute(text, properties, variables, command_sequence_number)

    def open_query(self, text: str, properties: Mapping[str, Any], variables: Mapping[str, str]) -> RunningQuery:
        parts = self._ready()
        statements = parts.engine.parse(text, variables)
        if len(statements) != 1:
            raise SemanticError(
                f"A query is one SELECT or PRINT statement; {len(statements)} statements were sent.",
                hint="Send the others to /ksql.",
            )
        return parts.queries.open(statements[0], query_properties(self._query_defaults, properties))

    def close_query(self, query_id: str) -> None:
        self._ready().queries.get(query_id).close()

    def insert_rows(self, target: str, rows: Sequence[Mapping[str, Any]]) -> Sequence[SqlError | None]:
        return self._ready().engine.insert_rows(target, rows)

    def is_valid_property(self, name: str) -> bool:
        return self._ready().engine.is_valid_property(name)

    def command_statuses(self) -> Mapping[str, Mapping[str, Any]]:
        return self._ready().engine.command_statuses()

    def terminate_cluster(self, delete_topics: Sequence[str]) -> list[Entity]:
        return self._ready().engine.terminate_cluster(delete_topics)

    def find_rows(self, table: str, question: bytes) -> bytes:
        return self._ready().find_rows(table, question)

    def health(self) -> Mapping[str, bool]:
        if self._parts is None:
            return {"metastore": False, "kafka": False, "commandRunner": False}
        return self._parts.engine.health()

    def _ready(self) -> Parts:
        if self._parts is None or not self._parts.engine.ready:
            raise NotReadyError("The server is starting and reads its statements.", hint="Ask again in some seconds.")
        return self._parts
