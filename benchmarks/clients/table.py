"""The table: one line per load and measure, one column per client, then how we stand to each of the others."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.clients.jobs import Numbers
from benchmarks.clients.plan import AIOKAFKA, CONFLUENT, KAFKA_PYTHON, LOADS, OURS, OURS_AIO, Load, Measure, measures

Results = dict[tuple[str, str], list[Numbers]]
"""Numbers of every run by (load, client)."""
RIVALS = (CONFLUENT, AIOKAFKA, KAFKA_PYTHON)


def headings(clients: list[str]) -> list[str]:
    return ["load", *clients, *(f"/ {rival}" for rival in RIVALS if rival in clients), "wanted"]


def rows(results: Results, clients: list[str]) -> Iterator[list[str]]:
    for load in LOADS:
        if not any(name == load.name for name, _ in results):
            continue
        for measure in measures(load):
            cells = [_cell(load, measure, results.get((load.name, client))) for client in clients]
            ratios = [_ratio(load, measure, results, rival) for rival in RIVALS if rival in clients]
            wanted = load.wanted if measure.higher else measure.wanted if not load.beside else ""
            yield [f"{load.name}{measure.suffix} ({measure.unit})", *cells, *ratios, wanted]


def _cell(load: Load, measure: Measure, runs: list[Numbers] | None) -> str:
    if not runs:
        return ""
    values = [value_of(measure, numbers) for numbers in runs]
    best = max(values) if measure.higher else min(values)
    return f"{short(best)} ({short(min(values))}-{short(max(values))})" if len(values) > 1 else short(best)


def _ratio(load: Load, measure: Measure, results: Results, rival: str) -> str:
    """Ours to theirs; with asyncio on both sides where they have only that. Both faces for aiokafka."""
    theirs = best_of(results, load.beside or load.name, rival, measure)
    if not theirs:
        return "-"
    faces = (OURS, OURS_AIO) if rival == AIOKAFKA else (OURS,)
    ratios = [best_of(results, load.name, face, measure) / theirs for face in faces if (load.name, face) in results]
    return ", ".join(f"{ratio:.2f}x" for ratio in ratios) or "-"


def best_of(results: Results, load: str, client: str, measure: Measure) -> float:
    runs = results.get((load, client), [])
    values = [value_of(measure, numbers) for numbers in runs if measure.key in numbers or "seconds" in numbers]
    if not values:
        return 0.0
    return max(values) if measure.higher else min(values)


def value_of(measure: Measure, numbers: Numbers) -> float:
    if measure.key == "rate":
        return numbers["count"] / numbers["seconds"] / 1e3
    if measure.key == "cpu":
        return numbers["cpu_seconds"] / numbers["count"] * 1e6
    return numbers[measure.key]


def short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def markdown(title: str, head: list[str], lines: list[list[str]]) -> str:
    parts = [f"### {title}", "", "| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*parts, *("| " + " | ".join(line) + " |" for line in lines), ""])
