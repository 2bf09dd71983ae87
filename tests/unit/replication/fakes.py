"""A world whose time stands still until a test moves it, and partitions on real logs in it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from heapq import heappop, heappush
from itertools import count
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID

from penstock.base.metrics import Metrics
from penstock.base.system import SystemFiles
from penstock.base.types import TopicPartition
from penstock.metadata.image import PartitionState
from penstock.records.builder import Record, build_batch
from penstock.records.validation import ProduceRules
from penstock.replication.counters import TopicCounters
from penstock.replication.fetching import FetchPartition
from penstock.replication.partition import Partition
from penstock.replication.settings import TopicSettings
from penstock.storage.config import LogConfig
from penstock.storage.log import Log

T = TypeVar("T")
START_MS = 1_700_000_000_000
TOPIC_ID = UUID(int=50)


class VirtualTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class VirtualWorld:
    """Clock and tasks together: `advance` moves the time and runs what is due."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.soon: list[Callable[[], None]] = []
        self._timers: list[tuple[float, int, VirtualTimer]] = []
        self._order = count()
        self._tasks: list[asyncio.Task[Any]] = []

    def time_ms(self) -> int:
        return START_MS + int(self.now_s * 1000)

    def monotonic(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> VirtualTimer:
        timer = VirtualTimer(callback)
        heappush(self._timers, (self.now_s + seconds, next(self._order), timer))
        return timer

    def future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.append(task)
        return task

    def run_blocking(self, work: Callable[[], T]) -> Awaitable[T]:
        done = self.future()
        try:
            done.set_result(work())
        except OSError as error:
            done.set_exception(error)
        return done

    def run_soon(self) -> None:
        while self.soon:
            callbacks, self.soon = self.soon, []
            for callback in callbacks:
                callback()

    def advance(self, seconds: float) -> None:
        until = self.now_s + seconds
        while self._timers and self._timers[0][0] <= until:
            self.now_s, _, timer = heappop(self._timers)
            if timer.callback is not None:
                timer.callback()
            self.run_soon()
        self.now_s = until

    @property
    def timers(self) -> int:
        return sum(1 for _, _, timer in self._timers if timer.callback is not None)


def settings(*, min_isr: int = 1, rules: ProduceRules | None = None, **log: Any) -> TopicSettings:
    return TopicSettings(rules=rules or ProduceRules(), log=LogConfig(**log), min_insync_replicas=min_isr)


def open_log(directory: Path, world: VirtualWorld, *, topic: str = "t", index: int = 0, **config: Any) -> Log:
    return Log.open(
        directory=str(directory / f"{topic}-{index}"),
        topic_partition=TopicPartition(topic, index),
        topic_id=TOPIC_ID,
        config=LogConfig(**config),
        files=SystemFiles(),
        clock=world,
    )


def make_partition(
    directory: Path,
    world: VirtualWorld,
    *,
    state: PartitionState | None = None,
    min_isr: int = 1,
    eligible: Callable[[int, int], bool] = lambda broker, epoch: True,
) -> Partition:
    partition = Partition(
        TopicPartition("t", 0),
        TOPIC_ID,
        open_log(directory, world),
        node_id=0,
        settings=settings(min_isr=min_isr),
        counters=TopicCounters(Metrics(), "t"),
        lag_time_max_ms=10_000,
        eligible=eligible,
    )
    partition.apply_state(state or PartitionState(replicas=(0,), isr=(0,), leader=0), world.time_ms())
    partition.maybe_advance_high_watermark(world.time_ms())
    return partition


def batch(*values: bytes, timestamp: int = START_MS, **options: Any) -> memoryview:
    """The records field of a produce request, as the session hands it over: writable."""
    records = [Record(timestamp + index, None, value, ()) for index, value in enumerate(values)]
    return memoryview(bytearray(build_batch(records, **options)))


def wanted(offset: int = 0, **changes: Any) -> FetchPartition:
    values: dict[str, Any] = {
        "topic": "t",
        "topic_id": None,
        "partition": 0,
        "fetch_offset": offset,
        "max_bytes": 1 << 20,
    }
    return FetchPartition(**{**values, **changes})
