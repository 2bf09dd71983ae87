"""`buffer.memory`: how many bytes of batches may exist at once, and who waits for some.

Memory is taken per batch, not per record. Whoever gets none asks for a `Ticket` and waits for its grant; tickets are
served strictly in order, so a large request is never starved by small ones. One lock guards everything here; it is
taken behind a queue's lock, never in front of one, and grants are announced after it was let go.

A grant is memory that was taken: whoever does not use it, or has stopped waiting, gives it back (`give_up`).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Ticket:
    """A place in the queue. `granted` becomes true once, then `on_grant` is called, in the thread that gave memory."""

    __slots__ = ("granted", "on_grant", "size", "used")

    def __init__(self, size: int, on_grant: Callable[[], None]) -> None:
        self.size = size
        self.granted = False
        self.used = False
        """The memory belongs to a batch now, which gives it back at its end."""
        self.on_grant = on_grant


class MemoryPool:
    def __init__(self, total_bytes: int) -> None:
        self.total_bytes = total_bytes
        self._lock = threading.Lock()
        self._free = total_bytes
        self._tickets: deque[Ticket] = deque()

    @property
    def free_bytes(self) -> int:
        return self._free

    @property
    def waiting(self) -> int:
        """How many wait. More than none means: send what there is, whether it is full or not."""
        return len(self._tickets)

    def try_take(self, size: int) -> bool:
        """Take memory if there is enough and nobody waits for it already."""
        with self._lock:
            if self._tickets or self._free < size:
                return False
            self._free -= size
            return True

    def ask(self, size: int, on_grant: Callable[[], None]) -> Ticket:
        """A ticket, which may be granted before this returns."""
        assert size <= self.total_bytes, f"{size} bytes can never be granted by {self.total_bytes}"
        ticket = Ticket(size, on_grant)
        with self._lock:
            self._tickets.append(ticket)
        self.give(0)
        return ticket

    def give(self, size: int) -> None:
        """Give memory back; those who can be served now are."""
        granted: list[Ticket] = []
        with self._lock:
            self._free += size
            assert self._free <= self.total_bytes, "more memory was given back than was taken"
            while self._tickets and self._tickets[0].size <= self._free:
                ticket = self._tickets.popleft()
                self._free -= ticket.size
                ticket.granted = True
                granted.append(ticket)
        for ticket in granted:
            ticket.on_grant()

    def give_up(self, ticket: Ticket) -> None:
        """Stop waiting; memory that was granted meanwhile, and is of no use, goes back."""
        with self._lock:
            granted = ticket.granted and not ticket.used
            ticket.used = True
            if ticket in self._tickets:
                self._tickets.remove(ticket)
        self.give(ticket.size if granted else 0)
