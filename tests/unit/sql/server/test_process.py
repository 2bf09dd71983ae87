"""A server from start to stop, with parts that do what the test says."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from penstock.sql.errors import EngineError
from penstock.sql.server import process
from penstock.sql.server.config import load_config
from penstock.sql.server.process import Ready, SqlServer
from penstock.sql.statements import ListThings, ParsedStatement, PrintTopic
from tests.unit.sql.server.fakes import FakeService, pull

CONFIG = load_config(None, {"listeners": "http://127.0.0.1:0", "ksql.streams.auto.offset.reset": "earliest"})


async def reached(_: Any) -> None:
    """The cluster answers."""


class FakeParts:
    """Engine and queries in one; `go` lets the build end."""

    def __init__(self) -> None:
        self.engine: Any = FakeService(answers={"X;": [{"@type": "x"}]})
        self.engine.parse = self._parse
        self.queries = SimpleNamespace(open=self._open, get=None)
        self.opened: list[tuple[Any, dict[str, Any]]] = []
        self.is_alive = True
        self.restarts: list[Callable[[], None]] = []
        """What the next restarts of Spark do."""
        self.closed = threading.Event()

    def find_rows(self, table: str, question: bytes) -> bytes:
        return question

    def restart_spark(self) -> None:
        self.restarts.pop(0)()
        self.is_alive = True

    def close(self) -> None:
        self.closed.set()

    def _parse(self, text: str, variables: Any) -> list[ParsedStatement]:
        statements = {"PRINT t;": [PrintTopic(topic="t")], "TWO;": [ListThings(thing="STREAMS")] * 2}[text]
        return [ParsedStatement(text=text, statement=each, line=1, column=1) for each in statements]

    def _open(self, parsed: ParsedStatement, properties: dict[str, Any]) -> Any:
        self.opened.append((parsed.statement, properties))
        return pull([1, "a"])


@asynccontextmanager
async def running(
    build: Any,
) -> AsyncIterator[tuple[SqlServer, httpx.AsyncClient, asyncio.Future[Ready], asyncio.Event]]:
    server = SqlServer(CONFIG, build, reached)
    stop = asyncio.Event()
    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    task = asyncio.ensure_future(server.run(stop, ready.set_result))
    try:
        async with httpx.AsyncClient(base_url=server.listeners[0].url, timeout=10) as http:
            yield server, http, ready, stop
    finally:
        stop.set()
        await task


async def test_requests_before_the_engine_is_ready_are_told_to_wait() -> None:
    go = threading.Event()
    parts = FakeParts()

    def build(_: Any) -> FakeParts:
        go.wait(20)
        return parts

    async with running(build) as (_, http, ready, _):
        assert (await http.get("/info")).json()["KsqlServerInfo"]["serverStatus"] == "INITIALIZING"
        refused = await http.post("/ksql", json={"ksql": "X;"})
        assert (refused.status_code, refused.json()["error_code"]) == (503, 50302)
        assert (await http.get("/healthcheck")).status_code == 503
        go.set()
        assert (await ready).listeners[0].port > 0
        assert (await http.post("/ksql", json={"ksql": "X;"})).json() == [{"@type": "x"}]
        assert (await http.get("/info")).json()["KsqlServerInfo"]["serverStatus"] == "RUNNING"
    assert parts.closed.is_set()


async def test_a_server_told_to_stop_while_it_starts_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    go = threading.Event()
    began = threading.Event()
    parts = FakeParts()

    def build(_: Any) -> FakeParts:
        began.set()
        go.wait(20)
        return parts

    async with running(build) as (_, _, ready, stop):
        await asyncio.to_thread(began.wait, 10)
        stop.set()
        await asyncio.sleep(0)
        go.set()
    assert not ready.done()
    assert parts.closed.is_set()
    # A task that failed unseen is told of when nothing holds it any more.
    gc.collect()
    assert [record.message for record in caplog.records if record.levelno >= logging.ERROR] == []


async def test_a_server_that_waits_for_its_cluster_stops_at_once() -> None:
    began = asyncio.Event()

    async def reach(_: Any) -> None:
        began.set()
        await asyncio.Event().wait()

    server, stop = SqlServer(CONFIG, lambda _: _fail("built without a cluster"), reach), asyncio.Event()
    running = asyncio.ensure_future(server.run(stop, lambda _: None))
    await began.wait()
    stop.set()
    await asyncio.wait_for(running, 10)


async def test_what_keeps_the_engine_from_starting_is_raised() -> None:
    def build(_: Any) -> FakeParts:
        raise EngineError("There is no Java.")

    server = SqlServer(CONFIG, build, reached)
    with pytest.raises(EngineError, match="There is no Java"):
        await server.run(asyncio.Event(), lambda _: None)


async def test_when_java_dies_spark_is_started_anew_and_the_engine_serves_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(process, "JAVA_LOOK_S", 0.01)
    monkeypatch.setattr(process, "RESTART_PAUSE_S", 0.01)
    parts = FakeParts()
    restarting, go, restarted = threading.Event(), threading.Event(), threading.Event()

    def restart() -> None:
        restarting.set()
        assert go.wait(10)
        restarted.set()

    parts.restarts = [lambda: _fail("not yet"), restart]
    async with running(lambda _: parts) as (_, http, ready, _):
        await ready
        parts.is_alive = False
        assert await asyncio.to_thread(restarting.wait, 10)
        assert (await http.post("/ksql", json={"ksql": "X;"})).json() == [{"@type": "x"}]
        assert (await http.get("/healthcheck")).json()["isHealthy"]
        go.set()
        assert await asyncio.to_thread(restarted.wait, 10)
    assert parts.closed.is_set()
    assert parts.restarts == []


async def test_a_server_told_to_stop_while_spark_starts_anew_waits_for_that(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is started must not be left behind."""
    monkeypatch.setattr(process, "JAVA_LOOK_S", 0.01)
    parts = FakeParts()
    restarting, go = threading.Event(), threading.Event()
    closed_early: list[bool] = []

    def restart() -> None:
        restarting.set()
        assert go.wait(10)
        closed_early.append(parts.closed.is_set())

    parts.restarts = [restart]
    async with running(lambda _: parts) as (_, _, ready, stop):
        await ready
        parts.is_alive = False
        assert await asyncio.to_thread(restarting.wait, 10)
        stop.set()
        await asyncio.sleep(0.05)
        go.set()
    assert closed_early == [False]
    assert parts.closed.is_set()


def _fail(message: str) -> Any:
    raise EngineError(message)


async def test_queries_get_the_servers_defaults_and_are_one_statement() -> None:
    parts = FakeParts()
    async with running(lambda _: parts) as (_, http, ready, _):
        await ready
        properties = {"ksql.streams.commit.interval.ms": 5}
        assert (await http.post("/query-stream", json={"sql": "PRINT t;", "properties": properties})).status_code == 200
        assert parts.opened == [
            (PrintTopic(topic="t"), {"auto.offset.reset": "earliest", "commit.interval.ms": 5}),
        ]
        refused = await http.post("/query-stream", json={"sql": "TWO;"})
        assert "2 statements were sent" in refused.json()["message"]
