"""Rows per second and CPU per row of one query that finds all of its input there."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import msgspec

from benchmarks.clients.jobs import Numbers
from benchmarks.sql.data import errors_of
from benchmarks.sql.plan import ORDERS
from benchmarks.sql.running import Contender, Job, Running
from benchmarks.sql.topics import Topics

IDLE_SECONDS_MAX: Final = 300.0
"""A query that read nothing for so long has failed."""
_COMMITTED_SECONDS_MAX: Final = 30.0
_LOOK_SECONDS: Final = 0.2
_STEADY_FROM: Final = 0.1
"""The share of the input after which the start is over: what a query needs once is not what a row costs."""


def measure(contender: Contender, job: Job, topics: Topics) -> Numbers:
    running, began = _started(contender, job)
    try:
        numbers = _watched(running, job.total, began)
        check(contender.name, job, topics)
    finally:
        running.stop()
    return numbers


def _started(contender: Contender, job: Job) -> tuple[Running, float]:
    began = time.perf_counter()
    return contender.start(job), began


def _watched(running: Running, total: int, began: float) -> Numbers:
    steady: tuple[int, float, float] | None = None
    seen, seen_at = 0, time.perf_counter()
    while seen < total:
        time.sleep(_LOOK_SECONDS)
        now, cpu, consumed = time.perf_counter(), running.cpu_seconds(), running.consumed()
        if consumed > seen:
            seen, seen_at = consumed, now
        elif now - seen_at > IDLE_SECONDS_MAX:
            raise RuntimeError(f"no row was read for {IDLE_SECONDS_MAX:.0f} s, after {seen} of {total}")
        if steady is None and consumed >= total * _STEADY_FROM:
            steady = consumed, now, cpu
    ended, cpu_in_all = time.perf_counter(), running.cpu_seconds()
    numbers: Numbers = {"count": total, "seconds": ended - began, "cpu_seconds": cpu_in_all}
    if steady is not None and steady[0] < total:
        count, at, cpu = steady
        numbers |= {
            "steady_count": total - count,
            "steady_seconds": ended - at,
            "steady_cpu_seconds": cpu_in_all - cpu,
        }
    return numbers


def check(who: str, job: Job, topics: Topics) -> None:
    """The result is what the input asks for: counted, not compared with an earlier run of ours.

    A transaction's offsets may be there a little before the end of its results is.
    """
    wanted, deadline = _wanted(job), time.monotonic() + _COMMITTED_SECONDS_MAX
    while (found := _FOUND[job.query.table](topics, job.result)) != wanted:
        if time.monotonic() > deadline:
            topology = job.query.topology
            raise RuntimeError(f"{topology}: the result of {who} has {found} rows, the input asks for {wanted}")
        time.sleep(_LOOK_SECONDS)


def _wanted(job: Job) -> int:
    if job.query.inputs[0] == ORDERS:
        return job.total // 2
    return errors_of(job.total) if "type = 'ERROR'" in job.query.statement else job.total


def _rows(topics: Topics, result: str) -> int:
    return sum(batch.num_rows for batch in topics.read(result))


def _counted(topics: Topics, result: str) -> int:
    """The sum of the last counts of all groups."""
    last: dict[bytes, bytes] = {}
    for batch in topics.read(result):
        last.update(zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True))
    return sum(int(msgspec.json.decode(value)["N"]) for value in last.values() if value)


_FOUND: Final[dict[bool, Callable[[Topics, str], int]]] = {False: _rows, True: _counted}
