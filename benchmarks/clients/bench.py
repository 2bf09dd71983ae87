"""One run of the loads by all clients against one broker."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from benchmarks.clients.jobs import Job, Numbers
from benchmarks.clients.plan import DRIVERS, Kind, Load, contenders, count_for
from benchmarks.clients.table import Results
from benchmarks.clients.topics import Topic
from benchmarks.loads import bulk_fetch
from benchmarks.servers import ROOT, Server

LOAD_SECONDS_MAX: Final = 90
WARM_RECORDS: Final = 2_000_000


class Bench:
    """Topics to consume are filled once per value size and read by everybody; to produce, everybody gets a new one."""

    def __init__(self, server: Server, scale: float, clients: list[str], step: Callable[[str], None]) -> None:
        self._server = server
        self._scale = scale
        self._clients = clients
        self._step = step
        self._topics = 0

    def run(self, loads: Sequence[Load], results: Results) -> None:
        self._warm()
        for load in loads:
            if load.kind is not Kind.CONSUME:
                self._producing(load, results)
        for value_bytes in sorted({load.value_bytes for load in loads}):
            consuming = [load for load in loads if load.kind is Kind.CONSUME and load.value_bytes == value_bytes]
            if consuming:
                self._consuming(consuming, results)

    def _warm(self) -> None:
        """A JVM compiles what it runs often: nobody's load shall be the one during which it does."""
        with self._topic() as topic:
            topic.fill(int(WARM_RECORDS * min(self._scale, 1.0)), bytes(100))
            bulk_fetch(self._server.port, topic.name, WARM_RECORDS * 100)

    def _producing(self, load: Load, results: Results) -> None:
        for client in contenders(load, self._clients):
            self._step(f"{load.name}: {client}")
            with self._topic() as topic:
                job = self._job(load, client, topic)
                numbers = self._measure(load, client, job)
                # The topic's first record, the producer's first, which is not measured, and the latencies left out.
                extra = job.count // 10 if load.kind is Kind.LATENCY else 0
                _check_count(load, client, topic.end_offset(), 2 + job.count + extra)
            results.setdefault((load.name, client), []).append(numbers)

    def _consuming(self, loads: Sequence[Load], results: Results) -> None:
        with self._topic() as topic:
            sample = Job(bootstrap="", topic="", count=0, value_bytes=loads[0].value_bytes)
            topic.fill(max(int(load.count * self._scale) for load in loads), sample.value)
            for load, client in self._pairs(loads):
                self._step(f"{load.name}: {client}")
                numbers = self._measure(load, client, self._job(load, client, topic))
                results.setdefault((load.name, client), []).append(numbers)

    def _pairs(self, loads: Sequence[Load]) -> Iterator[tuple[Load, str]]:
        return ((load, client) for load in loads for client in contenders(load, self._clients))

    def _job(self, load: Load, client: str, topic: Topic) -> Job:
        return Job(
            bootstrap=f"127.0.0.1:{self._server.port}",
            topic=topic.name,
            count=count_for(load, client, self._scale),
            value_bytes=load.value_bytes,
        )

    def _measure(self, load: Load, client: str, job: Job) -> Numbers:
        arguments = {name: getattr(job, name) for name in ("bootstrap", "topic", "count", "value_bytes")}
        command = [sys.executable, "-m", "benchmarks.clients.loads"]
        command += [DRIVERS[client], load.function, json.dumps(arguments)]
        path = os.pathsep.join(part for part in (str(ROOT / "src"), os.environ.get("PYTHONPATH", "")) if part)
        done = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=LOAD_SECONDS_MAX, check=False,
            env={**os.environ, "PYTHONPATH": path},
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{load.name} by {client} on {self._server.name} failed:\n{done.stderr[-2000:]}")
        numbers: Numbers = json.loads(done.stdout)
        return numbers

    def _topic(self) -> Topic:
        self._topics += 1
        return Topic(self._server.port, f"bench-{self._topics}")


def _check_count(load: Load, client: str, found: int, expected: int) -> None:
    if found != expected:
        raise RuntimeError(f"{load.name} by {client}: {expected} records were to be written, the log has {found}")
