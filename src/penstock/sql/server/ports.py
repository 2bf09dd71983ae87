"""What the server asks of the engine. Every call may block, and is made from a thread of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Protocol

from penstock.sql.errors import SqlError
from penstock.sql.types import SqlType

Entity = dict[str, Any]
"""An answer to a statement, ready to be JSON."""


class Row(Protocol):
    @property
    def columns(self) -> list[Any]: ...

    @property
    def tombstone(self) -> bool: ...


class RunningQuery(Protocol):
    """A query whose rows somebody waits for. `kind`: PUSH, PULL or PRINT (one column, a line of text)."""

    @property
    def query_id(self) -> str: ...

    @property
    def kind(self) -> str: ...

    @property
    def columns(self) -> Sequence[tuple[str, SqlType]]: ...

    @property
    def key_columns(self) -> Set[str]:
        """Those of the columns that are keys."""

    def take(self, count_max: int, timeout_s: float) -> Sequence[Row] | None:
        """Rows that are there or come in time, perhaps none; None at the end. Raises what ended the query badly."""

    def close(self) -> None: ...


class SqlService(Protocol):
    """An engine with its open queries."""

    @property
    def service_id(self) -> str: ...

    @property
    def kafka_cluster_id(self) -> str: ...

    @property
    def ready(self) -> bool: ...

    def execute(
        self,
        text: str,
        properties: Mapping[str, Any],
        variables: Mapping[str, str],
        command_sequence_number: int | None = None,
    ) -> list[Entity]: ...

    def open_query(self, text: str, properties: Mapping[str, Any], variables: Mapping[str, str]) -> RunningQuery: ...

    def close_query(self, query_id: str) -> None: ...

    def insert_rows(self, target: str, rows: Sequence[Mapping[str, Any]]) -> Sequence[SqlError | None]: ...

    def is_valid_property(self, name: str) -> bool: ...

    def command_statuses(self) -> Mapping[str, Mapping[str, Any]]: ...

    def terminate_cluster(self, delete_topics: Sequence[str]) -> list[Entity]: ...

    def find_rows(self, table: str, question: bytes) -> bytes: ...

    def health(self) -> Mapping[str, bool]: ...
