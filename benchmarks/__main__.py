"""Runs the loads on both brokers in turn, several times, and prints one table."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks import wire
from benchmarks.servers import ROOT, Server, start_kafka, start_penstock

LOAD_SECONDS_MAX = 300
BULK_BYTES = 768 << 20
Numbers = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One line of the table. `higher` says which way is better; `wanted` is a bound on the ratio or on our value."""

    name: str
    unit: str
    higher: bool
    wanted: str = ""


ROWS = {
    row.name: row
    for row in (
        Row(name="bulk produce, 1 MB batches", unit="MB/s", higher=True, wanted=">= 2x"),
        Row(name="bulk produce, 1 MB batches, CPU", unit="s/GB", higher=False, wanted="<= 0.5x"),
        Row(name="bulk produce, 16 KB batches", unit="MB/s", higher=True, wanted=">= 2x"),
        Row(name="bulk produce, 16 KB batches, CPU", unit="s/GB", higher=False, wanted="<= 0.5x"),
        Row(name="fetch", unit="MB/s", higher=True, wanted=">= 1x"),
        Row(name="fetch, CPU", unit="s/GB", higher=False),
        Row(name="librdkafka produce, 100 B", unit="k records/s", higher=True),
        Row(name="librdkafka consume, 100 B", unit="k records/s", higher=True),
        Row(name="librdkafka produce, 1 KB", unit="k records/s", higher=True),
        Row(name="librdkafka consume, 1 KB", unit="k records/s", higher=True),
        Row(name="one-record requests, 1 connection", unit="/s", higher=True),
        Row(name="one-record requests, 1 connection, CPU", unit="us", higher=False),
        Row(name="one-record requests, 8 connections", unit="/s", higher=True, wanted=">= 1x"),
        Row(name="one-record requests, 8 connections, CPU", unit="us", higher=False, wanted="<= 1x"),
        Row(name="one-record requests, 64 connections", unit="/s", higher=True, wanted=">= 0.8x"),
        Row(name="one-record requests, 64 connections, CPU", unit="us", higher=False, wanted="<= 1x"),
        Row(name="produce latency at 1 k/s, p50", unit="ms", higher=False, wanted="<= 1x"),
        Row(name="produce latency at 1 k/s, p99", unit="ms", higher=False),
        Row(name="stable group of 1 member", unit="ms", higher=False, wanted="<= 1x"),
        Row(name="stable group of 10 members", unit="ms", higher=False, wanted="<= 1x"),
        Row(name="stable group of 100 members", unit="ms", higher=False, wanted="<= 1x"),
        Row(name="offset commits, 8 connections", unit="/s", higher=True, wanted=">= 1x"),
        Row(name="offset commits, 8 connections, CPU", unit="us", higher=False),
        Row(name="transactions of one record, 8 producers", unit="/s", higher=True, wanted=">= 1x"),
        Row(name="transactions of one record, 8 producers, CPU", unit="us", higher=False),
        Row(name="start to first answer", unit="s", higher=False, wanted="<= 0.5 s"),
        Row(name="memory idle", unit="MB", higher=False, wanted="<= 80 MB"),
        Row(name="memory under load", unit="MB", higher=False, wanted="<= 250 MB"),
        Row(name="CPU idle", unit="%", higher=False, wanted="< 0.5 %"),
    )
}


class Bench:
    """One run of all loads against one broker."""

    def __init__(self, server: Server, scale: float, step: Callable[[str], None]) -> None:
        self._server = server
        self._scale = scale
        self._step = step
        self._topics = 0
        self.numbers: Numbers = {}

    def run(self) -> Numbers:
        self._idle()
        self._bulk("1 MB", 1 << 20, then_fetch=True)
        self._bulk("16 KB", 16 << 10, then_fetch=False)
        for connections in (1, 8, 64):
            self._small(connections)
        self._latency()
        for record_bytes, label in ((100, "100 B"), (1000, "1 KB")):
            self._rdkafka(record_bytes, label)
        self._groups()
        self._commits()
        self._transactions()
        self.numbers["memory under load"] = self._server.peak_megabytes
        return self.numbers

    def _idle(self) -> None:
        self._step("idle")
        self.numbers["start to first answer"] = self._server.start_seconds
        # A start leaves work behind (a JVM compiles, threads settle); what it costs for good shows after it.
        time.sleep(5 * self._scale)
        before, started = self._server.usage(), time.perf_counter()
        time.sleep(5 * self._scale)
        after, seconds = self._server.usage(), time.perf_counter() - started
        self.numbers["CPU idle"] = 100 * (after.cpu_seconds - before.cpu_seconds) / seconds
        self.numbers["memory idle"] = after.resident_megabytes

    def _bulk(self, label: str, batch_bytes: int, *, then_fetch: bool) -> None:
        self._step(f"bulk produce, {label} batches")
        total = int(BULK_BYTES * self._scale)
        # A smaller load first: it warms the JVM's compiler and the machine's page cache for both.
        with self._topic() as topic:
            self._load("bulk_produce", topic=topic, batch_bytes=batch_bytes, total_bytes=total // 4)
        with self._topic() as topic:
            result, cpu = self._load("bulk_produce", topic=topic, batch_bytes=batch_bytes, total_bytes=total)
            self.numbers[f"bulk produce, {label} batches"] = result["megabytes"] / result["seconds"]
            self.numbers[f"bulk produce, {label} batches, CPU"] = cpu / (result["megabytes"] / 1e3)
            if then_fetch:
                self._step("fetch")
                self._load("bulk_fetch", topic=topic, total_bytes=total // 4)
                result, cpu = self._load("bulk_fetch", topic=topic, total_bytes=total)
                self.numbers["fetch"] = result["megabytes"] / result["seconds"]
                self.numbers["fetch, CPU"] = cpu / (result["megabytes"] / 1e3)

    def _small(self, connections: int) -> None:
        name = f"one-record requests, {connections} connection{'s' if connections > 1 else ''}"
        self._step(name)
        with self._topic() as topic:
            self._load("small_requests", topic=topic, connections=connections, seconds=2 * self._scale)
            result, cpu = self._load("small_requests", topic=topic, connections=connections, seconds=4 * self._scale)
        self.numbers[name] = result["requests"] / result["seconds"]
        self.numbers[f"{name}, CPU"] = cpu / result["requests"] * 1e6

    def _latency(self) -> None:
        self._step("latency")
        with self._topic() as topic:
            result, _ = self._load("latency", topic=topic, rate=1000, seconds=4 * self._scale)
        self.numbers["produce latency at 1 k/s, p50"] = result["p50_ms"]
        self.numbers["produce latency at 1 k/s, p99"] = result["p99_ms"]

    def _rdkafka(self, record_bytes: int, label: str) -> None:
        self._step(f"librdkafka, {label}")
        count = int((1_000_000 if record_bytes == 100 else 400_000) * self._scale)
        with self._topic() as topic:
            result, _ = self._load("rdkafka_produce", topic=topic, record_bytes=record_bytes, count=count)
            self.numbers[f"librdkafka produce, {label}"] = result["records"] / result["seconds"] / 1e3
            result, _ = self._load("rdkafka_consume", topic=topic, count=count)
            self.numbers[f"librdkafka consume, {label}"] = result["records"] / result["seconds"] / 1e3

    def _groups(self) -> None:
        self._step("groups")
        # The first group makes the topic of the coordinators; the others warm both brokers.
        self._load("form_groups", size=10, rounds=int(10 * self._scale) + 1)
        for size, rounds in ((1, 100), (10, 20), (100, 5)):
            name = f"stable group of {size} member{'s' if size > 1 else ''}"
            result, _ = self._load("form_groups", size=size, rounds=int(rounds * self._scale) + 1)
            self.numbers[name] = result["milliseconds"]

    def _commits(self) -> None:
        name = "offset commits, 8 connections"
        self._step(name)
        count = int(20_000 * self._scale)
        with self._topic() as topic:
            self._load("commits", topic=topic, connections=8, count=count // 2)
            result, cpu = self._load("commits", topic=topic, connections=8, count=count)
        self.numbers[name] = result["commits"] / result["seconds"]
        self.numbers[f"{name}, CPU"] = cpu / result["commits"] * 1e6

    def _transactions(self) -> None:
        name = "transactions of one record, 8 producers"
        self._step(name)
        count = int(4_000 * self._scale)
        with self._topic() as topic:
            self._load("transactions", topic=topic, connections=8, count=count // 2)
            result, cpu = self._load("transactions", topic=topic, connections=8, count=count)
        self.numbers[name] = result["transactions"] / result["seconds"]
        self.numbers[f"{name}, CPU"] = cpu / result["transactions"] * 1e6

    def _load(self, load: str, **arguments: str | float) -> tuple[Numbers, float]:
        """The load's own numbers, and the CPU seconds that it cost the broker."""
        before = self._server.usage().cpu_seconds
        arguments["port"] = self._server.port
        command = [sys.executable, "-m", "benchmarks.loads", load, json.dumps(arguments)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LOAD_SECONDS_MAX, check=False)
        if done.returncode:
            raise RuntimeError(f"{load} on {self._server.name} failed:\n{done.stderr[-2000:]}")
        return json.loads(done.stdout), self._server.usage().cpu_seconds - before

    def _topic(self) -> TopicForALoad:
        self._topics += 1
        return TopicForALoad(self._server.port, f"bench-{self._topics}")


class TopicForALoad:
    """A topic that is deleted after its load, so that the page cache holds what is measured."""

    def __init__(self, port: int, name: str) -> None:
        self._port = port
        self._name = name

    def __enter__(self) -> str:
        wire.create_topic(self._port, self._name)
        return self._name

    def __exit__(self, *_: object) -> None:
        wire.delete_topic(self._port, self._name)


STEPS_PER_RUN = 13
STARTS = {"kafka": start_kafka, "penstock": start_penstock}


def run_all(runs: int, scale: float, brokers: list[str], console: Console) -> dict[str, list[Numbers]]:
    results: dict[str, list[Numbers]] = {name: [] for name in brokers}
    columns = (TextColumn("{task.description:48}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("starting", total=runs * len(brokers) * STEPS_PER_RUN)
        for run in range(runs):
            for name in brokers:
                for numbers in _one_run(name, scale, lambda what, n=name, r=run: _show(progress, task, n, r, what)):
                    results[name].append(numbers)
    return results


def _show(progress: Progress, task: object, broker: str, run: int, what: str) -> None:
    progress.update(task, description=f"run {run + 1}, {broker}: {what}", advance=1)  # type: ignore[arg-type]


def _one_run(name: str, scale: float, step: Callable[[str], None]) -> Iterator[Numbers]:
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    server = STARTS[name](directory)
    try:
        yield Bench(server, scale, step).run()
    finally:
        server.stop()
        shutil.rmtree(directory, ignore_errors=True)


def best(row: Row, runs: list[Numbers]) -> float:
    values = [numbers[row.name] for numbers in runs]
    return max(values) if row.higher else min(values)


def spread(row: Row, runs: list[Numbers]) -> str:
    values = [numbers[row.name] for numbers in runs]
    return f"{_format(min(values))}-{_format(max(values))}"


def _format(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _table_rows(results: dict[str, list[Numbers]]) -> Iterator[tuple[str, ...]]:
    for row in ROWS.values():
        cells = [f"{row.name} ({row.unit})"]
        cells += [f"{_format(best(row, runs))} ({spread(row, runs)})" for runs in results.values()]
        if len(results) == 2:
            kafka, penstock = (best(row, runs) for runs in results.values())
            cells.append(f"{penstock / kafka:.2f}x" if kafka else "-")
        yield (*cells, row.wanted)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs of each broker; the best counts (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="size and duration of the loads (default 1)")
    parser.add_argument("--only", choices=sorted(STARTS), help="measure one broker only")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number of every run")
    arguments = parser.parse_args()
    console = Console(stderr=True)
    brokers = [arguments.only] if arguments.only else list(STARTS)
    results = run_all(arguments.runs, arguments.scale, brokers, console)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1))
    headings = ["load", *(f"{name} (spread)" for name in results), *(["ratio"] if len(results) == 2 else []), "wanted"]
    if arguments.markdown:
        print("| " + " | ".join(headings) + " |\n|" + "---|" * len(headings))
        for cells in _table_rows(results):
            print("| " + " | ".join(cells) + " |")
        return
    table = Table(*headings, title=f"Best of {arguments.runs}; load and broker share this machine")
    for cells in _table_rows(results):
        table.add_row(*cells)
    Console(width=140).print(table)


if __name__ == "__main__":
    main()
