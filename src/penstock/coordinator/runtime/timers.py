"""Timers of all shards of a runtime: one heap, and one wake-up for the earliest of them.

A timer that is set again for later, as every heartbeat does, stays where it is in the heap and is put back when its old
time comes; a cancelled one is dropped then. So both cost nothing that grows with the number of timers.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heapify, heappop, heappush
from itertools import count
from typing import Any, Final

from penstock.base.ports import Clock, Tasks, Timer
from penstock.coordinator.runtime.shard import Result

TIMERS_PER_TURN_MAX: Final = 256
_CANCELLED_KEPT_MIN: Final = 256

TimerOperation = Callable[[Any], Result[Any]]


class TimerEntry:
    __slots__ = ("deadline", "in_heap_at", "key", "operation", "owner", "retry")

    def __init__(self, owner: TimerSet | None, key: str) -> None:
        self.owner = owner
        """None: cancelled."""
        self.key = key
        self.operation: TimerOperation
        self.retry = True
        self.deadline = 0.0
        self.in_heap_at = 0.0


class TimerQueue:
    def __init__(self, clock: Clock, tasks: Tasks) -> None:
        self._clock = clock
        self._tasks = tasks
        self._heap: list[tuple[float, int, TimerEntry]] = []
        self._order = count()
        self._cancelled = 0
        self._wake_up: Timer | None = None
        self._wake_up_at = 0.0

    def __len__(self) -> int:
        return len(self._heap) - self._cancelled

    def now(self) -> float:
        return self._clock.monotonic()

    def push(self, entry: TimerEntry) -> None:
        entry.in_heap_at = entry.deadline
        heappush(self._heap, (entry.deadline, next(self._order), entry))
        self._arm()

    def cancel(self, entry: TimerEntry) -> None:
        entry.owner = None
        self._cancelled += 1
        if self._cancelled > _CANCELLED_KEPT_MIN and self._cancelled * 2 > len(self._heap):
            self._heap = [item for item in self._heap if item[2].owner is not None]
            heapify(self._heap)
            self._cancelled = 0

    def close(self) -> None:
        if self._wake_up is not None:
            self._wake_up.cancel()
            self._wake_up = None
        self._heap.clear()

    def _arm(self) -> None:
        if not self._heap:
            return
        earliest = self._heap[0][0]
        if self._wake_up is not None:
            if self._wake_up_at <= earliest:
                return
            self._wake_up.cancel()
        self._wake_up_at = earliest
        self._wake_up = self._tasks.call_later(max(0.0, earliest - self._clock.monotonic()), self._woken)

    def _woken(self) -> None:
        self._wake_up = None
        now = self._clock.monotonic()
        for _ in range(TIMERS_PER_TURN_MAX):
            if not self._heap or self._heap[0][0] > now:
                break
            # One at a time: what one does may cancel or postpone the next.
            self._look_at(heappop(self._heap)[2], now)
        self._arm()

    def _look_at(self, entry: TimerEntry, now: float) -> None:
        owner = entry.owner
        if owner is None:
            self._cancelled -= 1
        elif entry.deadline > now:
            entry.in_heap_at = entry.deadline
            heappush(self._heap, (entry.deadline, next(self._order), entry))
        else:
            owner.expire(entry)


class TimerSet:
    """One shard's timers by key; `fire` runs an expired one. Implements `ShardTimers`."""

    __slots__ = ("_entries", "_fire", "_queue")

    def __init__(self, queue: TimerQueue, fire: Callable[[TimerEntry], None]) -> None:
        self._queue = queue
        self._fire = fire
        self._entries: dict[str, TimerEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def schedule(self, key: str, delay_ms: int, operation: TimerOperation, *, retry: bool = True) -> None:
        deadline = self._queue.now() + delay_ms / 1000
        entry = self._entries.get(key)
        if entry is not None and deadline >= entry.in_heap_at:
            entry.deadline = deadline
            entry.operation = operation
            entry.retry = retry
            return
        if entry is not None:
            self._queue.cancel(entry)
        entry = self._entries[key] = TimerEntry(self, key)
        entry.operation = operation
        entry.retry = retry
        entry.deadline = deadline
        self._queue.push(entry)

    def cancel(self, key: str) -> None:
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._queue.cancel(entry)

    def is_scheduled(self, key: str) -> bool:
        return key in self._entries

    def cancel_all(self) -> None:
        for entry in self._entries.values():
            self._queue.cancel(entry)
        self._entries.clear()

    def expire(self, entry: TimerEntry) -> None:
        """Its time has come, and it is out of the heap already."""
        if self._entries.get(entry.key) is entry:
            del self._entries[entry.key]
            self._fire(entry)
