"""How far one partition may be committed while its records are finished in any order.

The frontier is the lowest offset that is not finished; everything below it is. Offsets may have gaps (compaction,
markers of transactions), so the records that were begun are kept in order instead of being counted.
"""

from __future__ import annotations

from collections import deque


class Frontier:
    """Of one partition, from its assignment to its revocation."""

    __slots__ = ("_done", "_next", "_open", "committed", "highest", "running", "waiting")

    def __init__(self) -> None:
        self._open: deque[int] = deque()
        """Offsets that were begun, ascending; the first is not finished."""
        self._done: set[int] = set()
        """Finished ones behind the first of `_open`."""
        self._next = -1
        self.committed = -1
        """What is known to be committed, or where reading began; -1 before the first record."""
        self.running = 0
        """Records with a worker now."""
        self.waiting = 0
        """Records that no worker has yet."""
        self.highest = -1
        """The highest offset that a worker has or had."""

    def begun(self, offset: int) -> None:
        """A record was taken from the consumer. Offsets ascend."""
        if offset < self._next:
            raise ValueError(f"offset {offset} after {self._next - 1}: records of a partition come in ascending order")
        if self._next < 0:
            self.committed = offset
        self._open.append(offset)
        self._next = offset + 1

    def finished(self, offset: int) -> None:
        self._done.add(offset)
        while self._open and self._open[0] in self._done:
            self._done.remove(self._open.popleft())

    @property
    def offset(self) -> int:
        """The first offset that is not finished: what may be committed. -1 before the first record."""
        return self._open[0] if self._open else self._next

    @property
    def unfinished(self) -> int:
        return len(self._open) - len(self._done)

    @property
    def has_news(self) -> bool:
        return self.offset > self.committed
