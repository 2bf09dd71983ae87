"""An engine that does what its test says, behind the real REST server on a real port."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from penstock.sql.engine.rows import IteratedRows, Row, RowQueue, Rows
from penstock.sql.errors import NotFoundError, SqlError, SqlSyntaxError
from penstock.sql.server.app import build_app
from penstock.sql.server.listening import HttpServer, parse_listeners
from penstock.sql.server.workers import Workers
from penstock.sql.types import BIGINT, STRING, SqlType


@dataclass
class FakeQuery:
    rows: Rows
    kind: str = "PUSH"
    query_id: str = "transient_S_1"
    columns: Sequence[tuple[str, SqlType]] = (("ID", BIGINT), ("NAME", STRING))
    key_columns: frozenset[str] = frozenset()
    closed: threading.Event = field(default_factory=threading.Event)

    def take(self, count_max: int, timeout_s: float) -> list[Row] | None:
        return self.rows.take(count_max, timeout_s)

    def close(self) -> None:
        self.rows.close()
        self.closed.set()


def pull(*rows: list[Any], **more: Any) -> FakeQuery:
    return FakeQuery(IteratedRows(iter([Row(row) for row in rows])), kind="PULL", **more)


def push(queue: RowQueue | None = None, **more: Any) -> FakeQuery:
    return FakeQuery(queue or RowQueue(), **more)


@dataclass
class FakeService:
    """`answers` by the text of the statement: entities, a query, or what is raised."""

    answers: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[Any, ...]] = field(default_factory=list)
    inserted: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    open: dict[str, FakeQuery] = field(default_factory=dict)
    healthy: bool = True
    service_id: str = "test_"
    kafka_cluster_id: str = "cluster-1"
    ready: bool = True

    def execute(
        self,
        text: str,
        properties: Mapping[str, Any],
        variables: Mapping[str, str],
        command_sequence_number: int | None = None,
    ) -> list[dict[str, Any]]:
        self.asked.append((text, dict(properties), dict(variables), command_sequence_number))
        return self._answer(text)  # type: ignore[no-any-return]

    def open_query(self, text: str, properties: Mapping[str, Any], variables: Mapping[str, str]) -> FakeQuery:
        self.asked.append((text, dict(properties), dict(variables)))
        query: FakeQuery = self._answer(text)
        self.open[query.query_id] = query
        return query

    def close_query(self, query_id: str) -> None:
        if query_id not in self.open:
            raise NotFoundError(f"No query with id {query_id} is open.")
        self.open[query_id].close()

    def insert_rows(self, target: str, rows: Sequence[Mapping[str, Any]]) -> list[SqlError | None]:
        if target != "S":
            raise SqlError(f"There is no stream {target}.")
        self.inserted += [(target, dict(row)) for row in rows if "bad" not in row]
        return [SqlError("The row is bad.") if "bad" in row else None for row in rows]

    def is_valid_property(self, name: str) -> bool:
        return name in ("auto.offset.reset", "ksql.service.id")

    def command_statuses(self) -> dict[str, dict[str, Any]]:
        return {"stream/S/create": {"status": "SUCCESS", "message": "Stream created", "queryId": None}}

    def terminate_cluster(self, delete_topics: Sequence[str]) -> list[dict[str, Any]]:
        return [{"@type": "currentStatus", "topics": list(delete_topics)}]

    def find_rows(self, table: str, question: bytes) -> bytes:
        return table.encode() + question

    def health(self) -> dict[str, bool]:
        return {"metastore": True, "kafka": self.healthy, "commandRunner": True}

    def _answer(self, text: str) -> Any:
        answer = self.answers.get(text, SqlSyntaxError("Unexpected 'x'.", line=1, column=2))
        if isinstance(answer, Exception):
            raise answer
        return answer


@contextmanager
def serving(service: Any) -> Iterator[str]:
    """The server's URL."""
    workers = Workers()
    server = HttpServer(parse_listeners("http://127.0.0.1:0"))
    loop = asyncio.new_event_loop()
    stop = asyncio.Event()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.serve(build_app(service, workers), stop),))
    thread.start()
    try:
        yield server.listeners[0].url
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
        workers.close()
