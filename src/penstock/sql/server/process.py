"""A SQL server from start to stop.

The port is bound first, so that a wrong address is told at once; requests are answered from then on, with "not ready"
until the engine has replayed its statements. If the Java machine under Spark dies, Spark is started anew and with it
the queries: statements, checkpoints and markers lie outside of it, so they go on where they were. The engine and the
tables need no Java and serve meanwhile: pull queries, push queries over a stream or table, INSERT, statements that
start no query.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from penstock.base.errors import KafkaError
from penstock.sql.errors import SqlError
from penstock.sql.server import config as keys
from penstock.sql.server.app import build_app
from penstock.sql.server.config import ServerConfig
from penstock.sql.server.listening import HttpServer, Listener, parse_listeners
from penstock.sql.server.parts import Parts, build_parts, reach_cluster
from penstock.sql.server.service import EngineService
from penstock.sql.server.workers import Workers

log = logging.getLogger(__name__)

JAVA_LOOK_S = 0.5
RESTART_PAUSE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Ready:
    """What is told when the server can be used."""

    listeners: tuple[Listener, ...]
    seconds: float


class SqlServer:
    """`reach` comes before `build`, which happens in a thread and cannot be broken off."""

    def __init__(
        self,
        config: ServerConfig,
        build: Callable[[ServerConfig], Parts] = build_parts,
        reach: Callable[[ServerConfig], Awaitable[None]] = reach_cluster,
    ) -> None:
        self._build = build
        self._reach = reach
        self._service = EngineService(config[keys.SERVICE_ID], config.query)
        self._http = HttpServer(parse_listeners(config[keys.LISTENERS]))
        self._config = config.listening_on(self._http.listeners)
        self._workers = Workers()
        self._building: asyncio.Future[Parts] | None = None
        self._restarting: asyncio.Future[None] | None = None
        self._parts: Parts | None = None

    @property
    def listeners(self) -> tuple[Listener, ...]:
        return self._http.listeners

    async def run(self, stop: asyncio.Event, announce: Callable[[Ready], None]) -> None:
        """Serve until `stop` is set. Raises a SqlError or KafkaError when the server cannot start."""
        began = time.monotonic()
        stop_http = asyncio.Event()
        serving = asyncio.ensure_future(self._http.serve(build_app(self._service, self._workers), stop_http))
        try:
            if await self._or_stop(stop, self._start()):
                announce(Ready(listeners=self._http.listeners, seconds=time.monotonic() - began))
                await self._or_stop(stop, self._watch())
        finally:
            log.info("stopping")
            await self._take_down()
            stop_http.set()
            await serving
            await asyncio.to_thread(self._workers.close)

    @staticmethod
    async def _or_stop(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> bool:
        """Whether the work was done before the server was told to stop."""
        doing = asyncio.ensure_future(work)
        stopping = asyncio.ensure_future(stop.wait())
        await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if doing.done():
            doing.result()
            return True
        doing.cancel()
        return False

    async def _start(self) -> None:
        await self._reach(self._config)
        building = asyncio.ensure_future(asyncio.to_thread(self._build, self._config))
        self._building = building
        try:
            self._parts = await asyncio.shield(building)
        finally:
            # What is not yet built when the server is told to stop is left to the one who takes it down.
            if building.done():
                self._building = None
        self._service.use(self._parts)

    async def _watch(self) -> None:
        """Looks after the Java machine, for ever."""
        while True:
            await asyncio.sleep(JAVA_LOOK_S)
            if self._parts is not None and not self._parts.is_alive:
                log.error("the Java machine under Spark has ended: starting it again, and the queries on it")
                await self._restart_spark(self._parts)

    async def _restart_spark(self, parts: Parts) -> None:
        while True:
            restarting = asyncio.ensure_future(asyncio.to_thread(parts.restart_spark))
            self._restarting = restarting
            try:
                await asyncio.shield(restarting)
            except (SqlError, KafkaError, OSError) as error:
                log.error("Spark does not start: %s; trying again in %.0f s", error, RESTART_PAUSE_S)
                await asyncio.sleep(RESTART_PAUSE_S)
            else:
                log.info("Spark runs again, the queries follow")
                return

    async def _take_down(self) -> None:
        """Also what is still being built or started, once it is: a thread cannot be stopped half-way."""
        self._service.forget()
        building, self._building = self._building, None
        parts, self._parts = self._parts, None
        with suppress(SqlError, KafkaError, OSError):
            if building is not None:
                parts = await building
            if self._restarting is not None:
                await self._restarting
        if parts is not None:
            await asyncio.to_thread(parts.close)
