"""What only a SQL server does: it starts queries, answers pull and push queries, and keeps idle ones."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from benchmarks.clients.jobs import Numbers, timed
from benchmarks.sql.ours import RunningStatement, SqlServer
from benchmarks.sql.plan import FILTER, KEY_COUNT, LATEST, WINDOWED_LATEST, Query
from benchmarks.sql.processes import TreeClock, tree_memory
from benchmarks.sql.running import Job
from benchmarks.sql.throughput import IDLE_SECONDS_MAX
from benchmarks.sql.topics import Topics

TOTALS: Final = "BENCH_TOTALS"
PULLS: Final = 2_000
SCANS: Final = 200
STARTED_QUERIES: Final = 3
IDLE_SETTLE_SECONDS: Final = 5.0
_TIMEOUT_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 0.02


class Rest:
    """One connection that is kept, as a service would keep it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_TIMEOUT_SECONDS)

    def __enter__(self) -> Rest:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def rows(self, query: str) -> list[Any]:
        answer = self._ask(query)
        lines = answer.read().splitlines()
        return [json.loads(line) for line in lines[1:]]

    def first_row(self, query: str) -> Any:
        """The connection is of no use afterwards: the query has not ended."""
        answer = self._ask(query)
        while line := answer.readline():
            if line.startswith(b"["):
                return json.loads(line)
        raise RuntimeError(f"no row came of {query}")

    def _ask(self, query: str) -> http.client.HTTPResponse:
        body = json.dumps({"sql": query, "properties": {"auto.offset.reset": "earliest"}}).encode()
        self._connection.request("POST", "/query-stream", body, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise RuntimeError(f"{query}: {answer.read().decode(errors='replace')}")
        return answer


def start_times(server: SqlServer, topics: Topics) -> Numbers:
    """From the statement to the first result in the topic, with data waiting: the server's first query, and others."""
    numbers: Numbers = {"server, spawn to healthy (s)": server.start_seconds}
    seconds = [_first_result(server, topics, f"BENCH_START_{number}") for number in range(1 + STARTED_QUERIES)]
    numbers["first query, statement to first result (s)"] = seconds[0]
    numbers["further query, statement to first result (s)"] = sorted(seconds[1:])[STARTED_QUERIES // 2]
    return numbers


def _first_result(server: SqlServer, topics: Topics, result: str) -> float:
    began = time.perf_counter()
    running = server.start(Job(query=FILTER, result=result))
    try:
        _wait_for(lambda: sum(topics.ends([result]).values()) > 0, f"a first result of {result}")
        return time.perf_counter() - began
    finally:
        running.stop()


def idle_costs(
    server: SqlServer, counts: Sequence[int], total: int, seconds: float, step: Callable[[str], None]
) -> Numbers:
    """Cores and memory of the server with so many queries, of three kinds, that have read all there is."""
    numbers: Numbers = {}
    kinds: tuple[Query, ...] = (FILTER, LATEST, WINDOWED_LATEST)
    running: list[RunningStatement] = []
    for count in counts:
        step(f"{count} idle queries")
        while len(running) < count:
            query = kinds[len(running) % len(kinds)]
            running.append(server.start(Job(query=query, result=f"BENCH_IDLE_{len(running)}", total=total)))
            _wait_for(partial(_has_read, running[-1], total), f"query {len(running)} to have read all", 0.2)
        time.sleep(IDLE_SETTLE_SECONDS)
        clock = TreeClock(server.pid)
        before, began = clock.cpu_seconds(), time.perf_counter()
        time.sleep(seconds)
        after, passed = clock.cpu_seconds(), time.perf_counter() - began
        memory = tree_memory(server.pid)
        name = f"{count} idle {'query' if count == 1 else 'queries'}"
        numbers[f"{name}, CPU (cores)"] = (after - before) / passed
        numbers[f"{name}, memory, PSS (MB)"] = memory.proportional_megabytes
        numbers[f"{name}, memory, RSS (MB)"] = memory.resident_megabytes
    for each in running:
        each.stop()
    return numbers


def _has_read(running: RunningStatement, total: int) -> bool:
    return running.consumed() >= total


def pull_times(server: SqlServer, step: Callable[[str], None]) -> Numbers:
    """Of a table with 20,000 rows that stands still."""
    running = server.start(Job(query=LATEST, result=TOTALS))
    numbers: Numbers = {}
    try:
        with Rest(server.port) as rest:
            _wait_for(lambda: len(rest.rows(f"SELECT n FROM {TOTALS};")) == KEY_COUNT, "the table to be filled", 1.0)
            step("pull by key")
            numbers |= _percentiles("pull by key", _by_keys(rest), PULLS)
            step("pull with a scan")
            scan = f"SELECT user_id, n FROM {TOTALS} WHERE user_id LIKE '%0077';"
            numbers |= _percentiles("pull, scan with filter", lambda: _expect(rest.rows(scan), 2), SCANS)
        step("push over a table")
        numbers |= _percentiles("push over a table, first row", lambda: _push(server.port), PULLS // 100)
    finally:
        running.stop()
    return numbers


def _by_keys(rest: Rest) -> Callable[[], None]:
    number = 0

    def ask() -> None:
        nonlocal number
        number = (number + 7_919) % KEY_COUNT
        _expect(rest.rows(f"SELECT * FROM {TOTALS} WHERE user_id = 'user-{number:05}';"), 1)

    return ask


def _expect(rows: list[Any], count: int) -> None:
    if len(rows) != count:
        raise RuntimeError(f"{count} rows were expected, {len(rows)} came: {rows[:3]}")


def _push(port: int) -> None:
    with Rest(port) as rest:
        rest.first_row(f"SELECT * FROM {TOTALS} EMIT CHANGES;")


def _percentiles(name: str, ask: Callable[[], object], count: int) -> Numbers:
    found = timed(ask, count)
    return {f"{name}, p50 (ms)": found["p50_ms"], f"{name}, p99 (ms)": found["p99_ms"]}


def _wait_for(done: Callable[[], bool], what: str, look_seconds: float = _LOOK_SECONDS) -> None:
    deadline = time.monotonic() + IDLE_SECONDS_MAX
    while not done():
        if time.monotonic() > deadline:
            raise RuntimeError(f"waited {IDLE_SECONDS_MAX:.0f} s for {what}")
        time.sleep(look_seconds)
