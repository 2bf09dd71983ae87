"""Runs the loads by Penstock's SQL server and by Kafka Streams in turn, and prints one table."""

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

from benchmarks.clients.table import markdown
from benchmarks.servers import start_kafka, start_penstock
from benchmarks.sql.bench import Bench, step_count
from benchmarks.sql.plan import CONTENDERS, GROUPS, IDLE_QUERIES, OURS, STREAMS
from benchmarks.sql.streams import GUARANTEES, compiled
from benchmarks.sql.table import Results, headings, rows

STARTS = {"penstock": start_penstock, "kafka": start_kafka}
SHORT_NAMES = {"penstock": OURS, "streams": STREAMS}
QUICK_ROWS = 200_000
QUICK_SECONDS = 6.0
LINEAR = 4


def run_all(options: argparse.Namespace, groups: list[str]) -> Results:
    results: Results = {}
    columns = (TextColumn("{task.description:56}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        steps = step_count(groups, options)
        task = progress.add_task("starting", total=options.runs * steps)
        for run in range(options.runs):

            def step(what: str, where: str = f"run {run + 1}" if options.runs > 1 else "") -> None:
                progress.update(task, description=f"{where}{': ' if where else ''}{what}", advance=1)

            _one_run(options, groups, results, step)
    return results


def _one_run(options: argparse.Namespace, groups: list[str], results: Results, step: Callable[[str], None]) -> None:
    folder = Path(tempfile.mkdtemp(prefix="penstock-bench-"))
    try:
        broker = STARTS[options.broker](folder)
        try:
            with Bench(broker.port, folder, options, results, step) as bench:
                bench.run(groups)
        finally:
            broker.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _show(results: Results, options: argparse.Namespace) -> None:
    lines = list(rows(results))
    if options.markdown:
        print(markdown(f"Streaming SQL, on {options.broker}", headings(), lines))
        return
    table = Table(*headings(), title=f"Best of {options.runs}; {options.guarantee}; all share this machine")
    for line in lines:
        table.add_row(*line)
    Console(width=140).print(table)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sql", description=__doc__)
    parser.add_argument("--rows", type=int, default=2_500_000, help="input of a throughput load (default 2500000)")
    parser.add_argument("--linear", action="store_true", help=f"also with {LINEAR} times as many rows")
    parser.add_argument("--seconds", type=float, default=15.0, help="length of a latency or idle load (default 15)")
    parser.add_argument("--runs", type=int, default=1, help="the best counts (default 1)")
    quick = f"{QUICK_ROWS} rows, {QUICK_SECONDS:.0f} s, fewer idle queries"
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--only", choices=sorted(SHORT_NAMES), help="measure one of the two only")
    parser.add_argument(
        "--loads", default="", metavar="TEXT", help="only the load of this name, or with it in its name"
    )
    parser.add_argument("--broker", choices=sorted(STARTS), default="penstock", help="what both read from")
    parser.add_argument("--guarantee", choices=GUARANTEES, default=GUARANTEES[0], help="of Kafka Streams")
    interval = "commit.interval.ms of Kafka Streams (default: its own, 100 ms for exactly once)"
    parser.add_argument("--commit-interval-ms", type=int, default=0, metavar="MS", help=interval)
    settings = "a setting of our server, such as spark.sql.shuffle.partitions=4; may be given again"
    parser.add_argument("--override", action="append", default=[], metavar="NAME=VALUE", help=settings)
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write every number of every run")
    options = parser.parse_args()
    options.idle_queries = IDLE_QUERIES[:-1] if options.quick else IDLE_QUERIES
    if options.quick:
        options.rows, options.seconds, options.runs = QUICK_ROWS, QUICK_SECONDS, 1
    options.settings = dict(each.split("=", 1) for each in options.override)
    options.rows = [options.rows, LINEAR * options.rows] if options.linear else [options.rows]
    options.contenders = [SHORT_NAMES[options.only]] if options.only else list(CONTENDERS)
    return options


def main() -> None:
    options = _arguments()
    groups = [options.loads] if options.loads in GROUPS else [group for group in GROUPS if options.loads in group]
    if not groups:
        raise SystemExit(f"no load has {options.loads!r} in its name; there are: {', '.join(GROUPS)}")
    if STREAMS in options.contenders:
        compiled()
    results = run_all(options, groups)
    if options.json:
        options.json.write_text(json.dumps([[*key, runs] for key, runs in results.items()], indent=1))
    _show(results, options)


if __name__ == "__main__":
    main()
