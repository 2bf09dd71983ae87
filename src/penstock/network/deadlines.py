"""One timer for many deadlines.

A timer per request would be made and cancelled for nothing tens of thousands of times a second. This one is set to the
earliest deadline it has heard of, is left alone when requests finish, and looks again when it fires.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.ports import Clock, Tasks, Timer


class DeadlineTimer:
    __slots__ = ("_at", "_clock", "_expire", "_tasks", "_timer")

    def __init__(self, clock: Clock, tasks: Tasks, expire: Callable[[float], float | None]) -> None:
        """`expire(now)` ends what is due and gives the earliest deadline that is left, or None."""
        self._clock = clock
        self._tasks = tasks
        self._expire = expire
        self._timer: Timer | None = None
        self._at = 0.0

    def watch(self, deadline: float) -> None:
        """Fire at `deadline` (of the monotonic clock) at the latest."""
        if self._timer is not None:
            if self._at <= deadline:
                return
            self._timer.cancel()
        self._at = deadline
        self._timer = self._tasks.call_later(max(0.0, deadline - self._clock.monotonic()), self._fired)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fired(self) -> None:
        self._timer = None
        earliest = self._expire(self._clock.monotonic())
        if earliest is not None:
            self.watch(earliest)
