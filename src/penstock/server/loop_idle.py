"""How idle the event loop is (Kafka's NetworkProcessorAvgIdlePercent, as a share from 0 to 1).

The loop's thread does nothing but run the loop, so the time it did not spend on a processor is the time it waited.
Asking the system for a thread's processor time costs nothing between two looks.
"""

from __future__ import annotations

from collections.abc import Callable


class LoopIdle:
    """`read` must be called on the loop's thread, and tells about the time since it was last called."""

    __slots__ = ("_busy_at", "_busy_seconds", "_monotonic", "_wall_at")

    def __init__(self, *, monotonic: Callable[[], float], thread_seconds: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._busy_seconds = thread_seconds
        self._wall_at = monotonic()
        self._busy_at = thread_seconds()

    def read(self) -> float:
        wall, busy = self._monotonic(), self._busy_seconds()
        elapsed = wall - self._wall_at
        share = 1 - (busy - self._busy_at) / elapsed if elapsed > 0 else 1.0
        self._wall_at, self._busy_at = wall, busy
        return min(1.0, max(0.0, share))
