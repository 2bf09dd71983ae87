"""The state of a processor without Spark: one key, values in memory, timers noted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyspark.sql import Row

from penstock.sql.spark.operators.stateful import Processor


class _Value:
    value: tuple[Any, ...] | None = None

    def get(self) -> tuple[Any, ...] | None:
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        self.value = value

    def clear(self) -> None:
        self.value = None


class MemoryState:
    """What a processor calls its handle."""

    def __init__(self) -> None:
        self.state = _Value()
        self.timers: set[int] = set()

    def getValueState(self, _name: str, _schema: str) -> _Value:  # noqa: N802
        return self.state

    def registerTimer(self, time_ms: int) -> None:  # noqa: N802
        self.timers.add(time_ms)


def started(processor: Processor) -> MemoryState:
    handle: Any = MemoryState()
    processor.init(handle)
    state: MemoryState = handle
    return state


def run(processor: Processor, batches: Iterable[list[Row]], key: tuple[Any, ...] = ("k",)) -> list[list[Row]]:
    return [list(processor.process(key, iter(batch))) for batch in batches if batch]
