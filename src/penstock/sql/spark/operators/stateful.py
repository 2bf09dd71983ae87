"""What the processors of transformWithState share: their state as one packed value, their rows in order.

Spark hands a processor the rows of one key of a batch. State is read and written once per key and batch, as one pickled
value: each access is a round trip to Spark's state store, and that round trip is what a processor costs.
"""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any

from pyspark.sql import Row
from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

_SCHEMA = "packed binary"


class Processor(StatefulProcessor):
    """Spark's interface, reduced to what differs: what rows of a key do, and what time does to its state."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._state = handle.getValueState("state", _SCHEMA)
        self.prepare()

    @abstractmethod
    def prepare(self) -> None:
        """Called once in the worker, before any rows."""

    @abstractmethod
    def process(self, key: tuple[Any, ...], rows: Iterator[Row]) -> Iterable[Row]:
        """Rows of one key in any order; gives the rows that go on."""

    def forget(self, watermark_ms: int) -> None:
        """The watermark has come to the time that was asked for with `call_at`."""
        raise NotImplementedError

    def load(self) -> Any:
        """The state of the current key; None when it has none."""
        found = self._state.get()
        return None if found is None else pickle.loads(bytes(found[0]))

    def store(self, value: Any) -> None:
        """An empty state is none."""
        if value:
            self._state.update((pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL),))
        else:
            self._state.clear()

    def call_at(self, time_ms: int) -> None:
        self._handle.registerTimer(time_ms)

    def handleInputRows(self, key: Any, rows: Any, timerValues: TimerValues) -> Iterator[Row]:  # noqa: N802, N803
        yield from self.process(tuple(key), rows)

    def handleExpiredTimer(  # noqa: N802
        self,
        key: Any,
        timerValues: TimerValues,  # noqa: N803
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: N803
    ) -> Iterator[Row]:
        self.forget(timerValues.getCurrentWatermarkInMs())
        yield from ()

    def close(self) -> None:
        """Nothing is held."""


def fields(names: Sequence[str]) -> Callable[[Row], tuple[Any, ...]]:
    """A function from a row to the tuple of these fields."""
    if len(names) == 1:
        (name,) = names
        return lambda row: (row[name],)
    return itemgetter(*names) if names else lambda _row: ()


def place(names: Sequence[str]) -> Callable[[Row], tuple[int, ...]]:
    """A function from a row to what it is sorted by. A side of a join that a row does not have has no place."""
    values = fields(names)
    return lambda row: tuple(-1 if value is None else value for value in values(row))
