"""Penstock's SQL server, reached by its REST interface alone."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.sql.plan import DECLARATIONS, OURS
from benchmarks.sql.processes import TreeClock
from benchmarks.sql.running import Job
from tests.support.sql_servers import SqlServerProcess

_HEALTHY_SECONDS_MAX: Final = 300.0
_STATISTICS: Final = re.compile(r"lag: (\d+|unknown)  restarts: (\d+)")


class SqlServer:
    """A server of its own folder and port, and the time it took until it was healthy."""

    name = OURS

    def __init__(self, folder: Path, bootstrap: str, settings: Mapping[str, str]) -> None:
        earliest = {"ksql.streams.auto.offset.reset": "earliest"}
        self._process = SqlServerProcess(folder, bootstrap, {**earliest, **settings})
        began = time.perf_counter()
        self._process.launch()
        self._wait_until_healthy()
        self.start_seconds = time.perf_counter() - began

    def _wait_until_healthy(self) -> None:
        assert self._process.process is not None
        with httpx.Client(base_url=self._process.url) as client:

            def healthy() -> bool:
                try:
                    return client.get("/healthcheck").status_code == 200
                except httpx.TransportError:
                    return False

            self._process.process.wait_until(healthy, _HEALTHY_SECONDS_MAX, "penstock sql-server")

    @property
    def pid(self) -> int:
        assert self._process.process is not None
        return self._process.process.process.pid

    @property
    def port(self) -> int:
        return self._process.port

    def stop(self) -> None:
        self._process.stop()

    def execute(self, statements: str) -> list[Any]:
        return self._process.execute(statements)

    def rows(self, query: str) -> list[list[Any]]:
        return self._process.rows(query)

    def declare(self, *sources: str) -> None:
        for source in sources:
            self.execute(DECLARATIONS[source].format(name=source))

    def undeclare(self, *sources: str) -> None:
        for source in sources:
            kind = DECLARATIONS[source].split()[1]
            self.execute(f"DROP {kind} IF EXISTS {source};")

    def start(self, job: Job) -> RunningStatement:
        return RunningStatement(self, job)


class RunningStatement:
    """The inputs must be declared already: that is done once, a query for each load."""

    def __init__(self, server: SqlServer, job: Job) -> None:
        self._server = server
        self._job = job
        self._clock = TreeClock(server.pid)
        self._cpu_before = self._clock.cpu_seconds()
        server.execute(job.query.text(job.result))

    def consumed(self) -> int:
        (entity,) = self._server.execute(f"DESCRIBE {self._job.result} EXTENDED;")
        described = entity["sourceDescription"]
        if described["errorStats"]:
            raise RuntimeError(f"{self._job.query.topology}: {described['errorStats']}")
        found = _STATISTICS.search(described["statistics"])
        lag = None if found is None or found[1] == "unknown" else int(found[1])
        return 0 if lag is None else self._job.total - lag

    def cpu_seconds(self) -> float:
        return self._clock.cpu_seconds() - self._cpu_before

    def stop(self) -> None:
        self._server.execute(f"DROP {self._job.query.kind} {self._job.result} DELETE TOPIC;")
