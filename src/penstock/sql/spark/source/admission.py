"""How much of a backlog one batch takes.

Partitions of a backlog advance together by the records' time, as far as the rows allowed go: a stateful query that sees
one partition's last hour before another's first would take the other's rows for late. Where times do not help (all
records have one time, or none), each partition advances in proportion to what it has.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from penstock.base.types import TopicPartition
from penstock.sql.spark.source.offsets import Offsets

_STEPS_MAX: Final = 48

OffsetsAt = Callable[[int], Offsets]
"""Per partition the offset of the first record at or after a time (ms); the end where there is none."""


def rows_between(start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> int:
    return sum(max(0, offset - start[partition]) for partition, offset in end.items())


def proportional(start: Offsets, end: Offsets, rows_max: int) -> Offsets:
    """At least one record of every partition that has some, so that none waits for ever."""
    total = rows_between(start, end)
    if total <= rows_max:
        return dict(end)
    return {
        partition: min(offset, start[partition] + max(1, (offset - start[partition]) * rows_max // total))
        if offset > start[partition]
        else offset
        for partition, offset in end.items()
    }


def cut_by_time(
    start: Offsets, end: Offsets, rows_max: int, low_ms: int, high_ms: int, offsets_at: OffsetsAt
) -> tuple[Offsets, int] | None:
    """The latest time found before which at most `rows_max` rows lie, with its offsets. None: no such time helps.

    Few steps are enough: guesses by proportion and halvings take turns, and half of the rows allowed will do.
    """
    best: tuple[Offsets, int] | None = None
    low_rows, high_rows = 0, rows_between(start, end)
    for step in range(_STEPS_MAX):
        if high_ms - low_ms <= 1:
            break
        share = 0.5 if step % 2 or high_rows <= low_rows else (rows_max - low_rows) / (high_rows - low_rows)
        guess = min(high_ms - 1, max(low_ms + 1, low_ms + int((high_ms - low_ms) * share)))
        found = _within(start, end, offsets_at(guess))
        rows = rows_between(start, found)
        if rows > rows_max:
            high_ms, high_rows = guess, rows
            continue
        low_ms, low_rows = guess, rows
        if rows:
            best = (found, guess)
        if rows * 2 >= rows_max:
            break
    return best


def _within(start: Offsets, end: Offsets, found: Offsets) -> Offsets:
    return {
        partition: max(start[partition], min(offset, found.get(partition, offset))) for partition, offset in end.items()
    }
