"""Which task reads which offsets."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from pyspark.sql.datasource import InputPartition

from penstock.base.types import TopicPartition

JOINED_ROWS_MAX: Final = 2_000
"""So few rows are read by one task: a task costs more than they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """From `start` to before `end`."""

    partition: TopicPartition
    start: int
    end: int

    @property
    def rows(self) -> int:
        return self.end - self.start

    def __str__(self) -> str:
        return f"{self.partition} from offset {self.start} to {self.end}"


class RangesPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...]) -> None:
        super().__init__(ranges)
        self.ranges = ranges


def tasks_for(
    ranges: list[OffsetRange], *, min_partitions: int | None = None, max_records: int | None = None
) -> list[RangesPartition]:
    """One task per range; small ones together, large ones apart if the user asked for that."""
    ranges = [each for each in ranges if each.rows > 0]
    if max_records is not None:
        ranges = [part for each in ranges for part in split(each, -(-each.rows // max_records))]
    total = sum(each.rows for each in ranges)
    if min_partitions is not None:
        if min_partitions > len(ranges) > 0:
            ranges = [part for each in ranges for part in split(each, round(each.rows / total * min_partitions))]
    elif ranges and total <= JOINED_ROWS_MAX and max_records is None:
        return [RangesPartition(tuple(ranges))]
    return [RangesPartition((each,)) for each in ranges]


def split(whole: OffsetRange, count: int) -> list[OffsetRange]:
    """Into `count` ranges of about the same size, none of them empty."""
    count = max(1, min(count, whole.rows))
    bounds = [whole.start + whole.rows * index // count for index in range(count + 1)]
    return [OffsetRange(partition=whole.partition, start=start, end=end) for start, end in pairwise(bounds)]
