"""One run of the loads, against one broker."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from benchmarks.clients.jobs import Numbers
from benchmarks.sql import latency, serving, throughput
from benchmarks.sql.ours import SqlServer
from benchmarks.sql.plan import (
    EVENTS,
    IDLE,
    LATENCIES,
    OURS,
    SERVING,
    START,
    STREAMS,
    THROUGHPUT,
    Query,
)
from benchmarks.sql.running import Contender, Job
from benchmarks.sql.streams import KafkaStreams
from benchmarks.sql.table import Results
from benchmarks.sql.topics import Topics

_SERVING_STEPS: Final = 3
_WAITING_ROWS: Final = 100_000
"""What the queries find that are started for the sake of starting, and the table that is asked."""


def step_count(groups: list[str], options: argparse.Namespace) -> int:
    """How often a run tells where it is."""
    both = len(options.contenders)
    ours = int(OURS in options.contenders)
    counts = {START: ours, IDLE: len(options.idle_queries) * ours, SERVING: _SERVING_STEPS * ours}
    counts |= dict.fromkeys(LATENCIES, both)
    counts |= dict.fromkeys(THROUGHPUT, both * len(options.rows))
    return ours + sum(counts[group] for group in groups)


class Bench:
    """The SQL server is started once: first of all, so that its start and its memory are those of a new one."""

    def __init__(
        self, port: int, folder: Path, options: argparse.Namespace, results: Results, step: Callable[[str], None]
    ) -> None:
        self._folder = folder
        self._options = options
        self._results = results
        self._step = step
        self._topics = Topics(port)
        self._server: SqlServer | None = None
        self._jobs = 0

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.stop()
        self._topics.close()

    def run(self, groups: list[str]) -> None:
        if OURS in self._options.contenders:
            self._step("start of the server")
            self._server = SqlServer(self._folder / "sql", self._topics.bootstrap, self._options.settings)
            self._first_loads(groups)
        for group in groups:
            if group in LATENCIES:
                self._latency(group, LATENCIES[group])
            elif group in THROUGHPUT:
                for rows in self._options.rows:
                    self._throughput(THROUGHPUT[group], rows)
        if self._server is not None and SERVING in groups:
            self._pull(self._server)

    def _first_loads(self, groups: list[str]) -> None:
        server = self._server
        if server is None or not {START, IDLE} & set(groups):
            return
        with self._inputs((EVENTS,), _WAITING_ROWS):
            if START in groups:
                self._step("start of queries")
                self._add(START, OURS, serving.start_times(server, self._topics))
            if IDLE in groups:
                counts, seconds = self._options.idle_queries, self._options.seconds
                self._add(IDLE, OURS, serving.idle_costs(server, counts, _WAITING_ROWS, seconds, self._step))

    def _pull(self, server: SqlServer) -> None:
        with self._inputs((EVENTS,), _WAITING_ROWS):
            self._add(SERVING, OURS, serving.pull_times(server, self._step))

    def _latency(self, name: str, query: Query) -> None:
        for contender in self._contenders():
            self._step(f"{name}: {contender.name}")
            with self._inputs(query.inputs, 0):
                job = self._job(query, 0)
                self._add(name, contender.name, latency.measure(contender, job, self._topics, self._options.seconds))

    def _throughput(self, query: Query, rows: int) -> None:
        name = f"{query.topology}, {rows / 1e6:g} M rows"
        with self._inputs((*query.inputs, *query.tables), rows):
            for contender in self._contenders():
                self._step(f"{name}: {contender.name}")
                self._add(name, contender.name, throughput.measure(contender, self._job(query, rows), self._topics))

    @contextmanager
    def _inputs(self, names: tuple[str, ...], rows: int) -> Iterator[None]:
        with self._topics.made(*names):
            # One time for all: what is joined must be of the same time.
            end_ms = time.time_ns() // 1_000_000
            for name in names if rows else ():
                self._topics.fill(name, rows, end_ms)
            if self._server is not None:
                self._server.declare(*names)
            yield
            if self._server is not None:
                self._server.undeclare(*names)

    def _contenders(self) -> list[Contender]:
        """Ours is a server that runs already; Streams is started for each query."""
        found: list[Contender] = [] if self._server is None else [self._server]
        if STREAMS in self._options.contenders:
            folder, options = self._folder / "streams", self._options
            found.append(
                KafkaStreams(
                    folder=folder,
                    topics=self._topics,
                    guarantee=options.guarantee,
                    commit_interval_ms=options.commit_interval_ms,
                )
            )
        return found

    def _job(self, query: Query, total: int) -> Job:
        self._jobs += 1
        return Job(query=query, result=f"BENCH_{self._jobs}", total=total)

    def _add(self, load: str, who: str, numbers: Numbers) -> None:
        self._results.setdefault((load, who), []).append(numbers)
