"""The memory that large requests may take together (`queued.max.request.bytes`).

A session charges a whole frame before it grows its buffer beyond the base size, and gives the charge back when the
buffer shrinks. As in Kafka, a frame is admitted while anything at all is available, so that one frame larger than
the whole budget still passes, alone: the budget may be overdrawn by one frame at a time.

A session that has to wait holds no charge, and one that holds a charge never waits for more. So there is no circle of
sessions that wait for each other, and the queue of the waiting is served in the order they came.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable


class MemoryBudget:
    """`limit` bytes for all sessions together; zero or less means no limit."""

    __slots__ = ("_waiting", "limit", "used")

    def __init__(self, limit: int = -1) -> None:
        self.limit = limit
        self.used = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    @property
    def available(self) -> int:
        """For the gauges: what is left, or the largest long when there is no limit."""
        return max(0, self.limit - self.used) if self.limit > 0 else 2**63 - 1

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    def scarce(self) -> bool:
        """Whether memory kept only for speed should be given back at once."""
        return 0 < self.limit < 2 * self.used or bool(self._waiting)

    def try_charge(self, size: int) -> bool:
        """Take `size` bytes now, unless the budget is used up or somebody came earlier."""
        if self.limit > 0 and (self._waiting or self.used >= self.limit):
            return False
        self.used += size
        return True

    def wait(self, size: int, granted: Callable[[], None]) -> None:
        """Call `granted` once `size` bytes have been charged for the caller; never before this returns."""
        self._waiting.append((size, granted))

    def stop_waiting(self, granted: Callable[[], None]) -> None:
        """Leave the queue, if still in it: the connection is gone."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != granted)
        self._serve()

    def release(self, size: int) -> None:
        self.used -= size
        if self._waiting:
            self._serve()

    def _serve(self) -> None:
        while self._waiting and (self.limit <= 0 or self.used < self.limit):
            size, granted = self._waiting.popleft()
            self.used += size
            granted()
