"""`penstock sql-server` as a process that may be killed and started again, and the Java below it."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx

from tests.support.brokers import ROOT
from tests.support.ports import free_port
from tests.support.processes import LoggedProcess

START_TIMEOUT_S = 240.0
REQUEST_TIMEOUT_S = 180.0


class SqlServerProcess:
    """A server with a folder and a port of its own."""

    def __init__(self, directory: Path, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.bootstrap = bootstrap
        self.settings = dict(settings or {})
        self.port = free_port()
        self.process: LoggedProcess | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.directory / "server.log"

    def launch(self) -> None:
        """Start without waiting."""
        command: list[str | Path] = [sys.executable, "-m", "penstock", "sql-server"]
        command += ["--bootstrap-server", self.bootstrap, "--listeners", self.url]
        command += ["--data-dir", self.directory / "data", "--master", "local[2]"]
        for name, value in self.settings.items():
            command += ["--override", f"{name}={value}"]
        path = os.pathsep.join(part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if part)
        self.process = LoggedProcess(command, self.log, env={"PYTHONPATH": path, "PYTHONUNBUFFERED": "1"})

    def start(self) -> None:
        self.launch()
        assert self.process is not None
        self.process.wait_until(lambda: self.is_ready, START_TIMEOUT_S, "penstock sql-server")

    @property
    def is_ready(self) -> bool:
        return self.process is not None and "SQL ready" in self.process.output()

    def kill(self) -> None:
        """kill -9 of the server; its Java sees its input end, and ends too."""
        if self.process is not None:
            self.process.kill()
            self.process = None

    def kill_java(self) -> bool:
        """kill -9 of the Java below; False when there is none at this moment."""
        pid = None if self.process is None else descendant(self.process.process.pid, "java")
        if pid is None:
            return False
        os.kill(pid, signal.SIGKILL)
        return True

    def stop(self) -> None:
        if self.process is not None:
            self.process.stop()
            self.process = None

    def execute(self, statements: str, **properties: str) -> list[Any]:
        """The entities of `POST /ksql`; an error of the server fails the test."""
        given = {name.replace("_", "."): value for name, value in properties.items()}
        body = {"ksql": statements, "streamsProperties": given}
        answer = httpx.post(f"{self.url}/ksql", json=body, timeout=REQUEST_TIMEOUT_S)
        assert answer.status_code == 200, answer.text
        entities: list[Any] = answer.json()
        return entities

    def rows(self, query: str) -> list[list[Any]]:
        """The rows of a query that ends by itself."""
        answer = httpx.post(f"{self.url}/query-stream", json={"sql": query}, timeout=REQUEST_TIMEOUT_S)
        assert answer.status_code == 200, answer.text
        return [json.loads(line) for line in answer.text.splitlines()][1:]


def descendant(pid: int, name: str) -> int | None:
    """The process of this name whose parents lead to `pid`."""
    parents: dict[int, tuple[str, int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                found, rest = (entry / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            except (OSError, IndexError):
                continue
            parents[int(entry.name)] = (found, int(rest.split()[1]))
    below = {pid}
    for _ in range(5):
        below |= {each for each, (_, parent) in parents.items() if parent in below}
    return next((each for each in below if parents.get(each, ("", 0))[0] == name), None)
