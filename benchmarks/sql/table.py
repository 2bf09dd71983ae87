"""The table: one line per measure, a column for each contender, how ours stands to theirs, and what is wanted."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from benchmarks.clients.jobs import Numbers
from benchmarks.clients.table import short
from benchmarks.sql.plan import CONTENDERS, OURS, STREAMS, WANTED

Results = dict[tuple[str, str], list[Numbers]]
"""Numbers of every run by (load, contender), in the order in which they were measured."""

_HIGHER: Final = "k rows/s"
_ROWS: Final = re.compile(r", [0-9.]+ M rows")


def headings() -> list[str]:
    return ["load", OURS, STREAMS, "ratio", "wanted"]


def rows(results: Results) -> Iterator[list[str]]:
    """Best of the runs; with their spread when there are several."""
    for name in dict.fromkeys(load for load, _ in results):
        found = {who: [_lines(name, numbers) for numbers in results.get((name, who), [])] for who in CONTENDERS}
        for line in dict.fromkeys(line for runs in found.values() for run in runs for line in run):
            values = {who: [run[line] for run in runs if line in run] for who, runs in found.items()}
            cells = [_cell(line, values[who]) for who in CONTENDERS]
            yield [line, *cells, _ratio(line, values), _wanted(line)]


def _lines(name: str, numbers: Numbers) -> dict[str, float]:
    """The measures of one run by the text of their line."""
    if "p50_ms" in numbers:
        return {f"{name}, p50 (ms)": numbers["p50_ms"], f"{name}, p99 (ms)": numbers["p99_ms"]}
    if "cpu_seconds" not in numbers:
        return numbers
    lines = {}
    if "steady_count" in numbers:
        lines[f"{name} ({_HIGHER})"] = numbers["steady_count"] / numbers["steady_seconds"] / 1e3
        lines[f"{name}, CPU (s per million rows)"] = numbers["steady_cpu_seconds"] / numbers["steady_count"] * 1e6
    lines[f"{name}, with start ({_HIGHER})"] = numbers["count"] / numbers["seconds"] / 1e3
    lines[f"{name}, with start, CPU (s per million rows)"] = numbers["cpu_seconds"] / numbers["count"] * 1e6
    return lines


def _cell(line: str, values: list[float]) -> str:
    if not values:
        return ""
    text = short(_best(line, values))
    return f"{text} ({short(min(values))}-{short(max(values))})" if len(values) > 1 else text


def _ratio(line: str, values: dict[str, list[float]]) -> str:
    if not all(values[who] for who in CONTENDERS):
        return ""
    ours, theirs = (_best(line, values[who]) for who in CONTENDERS)
    return f"{ours / theirs:.2f}x" if theirs else "-"


def _best(line: str, values: list[float]) -> float:
    return max(values) if _HIGHER in line else min(values)


def _wanted(line: str) -> str:
    return WANTED.get(_ROWS.sub("", line), "")
