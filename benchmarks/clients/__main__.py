"""Runs the loads by every client on both brokers in turn, several times, and prints one table per broker."""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from benchmarks.clients.bench import Bench
from benchmarks.clients.plan import DRIVERS, LOADS, Load, contenders
from benchmarks.clients.table import Results, headings, markdown, rows
from benchmarks.servers import start_kafka, start_penstock

STARTS = {"penstock": start_penstock, "kafka": start_kafka}
TITLES = {"penstock": "On Penstock", "kafka": "On Apache Kafka"}
QUICK_SCALE = 0.2


def run_all(
    options: argparse.Namespace, loads: list[Load], clients: list[str], brokers: list[str]
) -> dict[str, Results]:
    results: dict[str, Results] = {name: {} for name in brokers}
    columns = (TextColumn("{task.description:64}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        steps = sum(len(contenders(load, clients)) for load in loads)
        task = progress.add_task("starting", total=options.runs * len(brokers) * steps)
        for run in range(options.runs):
            for name in brokers:

                def step(what: str, where: str = f"run {run + 1}, {name}") -> None:
                    progress.update(task, description=f"{where}: {what}", advance=1)

                # Another one begins in every run, so that nobody is always the first.
                turn = run % len(clients)
                _one_run(name, options.scale, [*clients[turn:], *clients[:turn]], loads, results[name], step)
    return results


def _one_run(
    name: str, scale: float, clients: list[str], loads: list[Load], results: Results, step: Callable[[str], None]
) -> None:
    directory = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        server = STARTS[name](directory)
        try:
            Bench(server, scale, clients, step).run(loads, results)
        finally:
            server.stop()
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _show(results: dict[str, Results], clients: list[str], options: argparse.Namespace) -> None:
    head = headings(clients)
    for name, found in results.items():
        lines = list(rows(found, clients))
        if options.markdown:
            print(markdown(TITLES[name], head, lines))
            continue
        table = Table(*head, title=f"{TITLES[name]}; best of {options.runs}; clients and broker share this machine")
        for line in lines:
            table.add_row(*line)
        Console(width=200).print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.clients", description=__doc__)
    parser.add_argument("--runs", type=int, default=3, help="runs on each broker; the best counts (default 3)")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the loads (default 1)")
    quick = f"one run, loads of {QUICK_SCALE * 100:.0f} %% of their size"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", choices=sorted(STARTS), help="measure on one broker only")
    parser.add_argument("--clients", nargs="+", choices=list(DRIVERS), default=list(DRIVERS), help="only these")
    parser.add_argument("--loads", default="", metavar="TEXT", help="only loads with this text in their name")
    parser.add_argument("--markdown", action="store_true", help="print the tables as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number of every run")
    options = parser.parse_args()
    if options.quick:
        options.runs, options.scale = 1, QUICK_SCALE * options.scale
    return options


def main() -> None:
    options = _arguments()
    loads = [load for load in LOADS if options.loads in load.name]
    if not loads:
        raise SystemExit(f"no load has {options.loads!r} in its name; there are: {', '.join(x.name for x in LOADS)}")
    brokers = [options.only] if options.only else list(STARTS)
    results = run_all(options, loads, options.clients, brokers)
    if options.json:
        every = {name: [[*key, runs] for key, runs in found.items()] for name, found in results.items()}
        options.json.write_text(json.dumps(every, indent=1))
    _show(results, options.clients, options)


if __name__ == "__main__":
    main()
