"""Many clients in one thread: each is a generator that asks, waits or ends, driven by epoll.

A conversation yields a request (bytes) and is given the answer, or yields seconds (float) and is resumed after them. So
a member of a group reads like the protocol's own description, and a hundred of them cost the machine little.
"""

from __future__ import annotations

import heapq
import itertools
import select
import time
from collections.abc import Generator, Sequence

from benchmarks import wire

Conversation = Generator[bytes | float, memoryview, None]
DEADLINE_SECONDS = 120


class Conversations:
    """Runs conversations, each on a connection of its own, until all have ended."""

    def __init__(self, port: int, conversations: Sequence[Conversation]) -> None:
        self._poll = select.epoll()
        self._by_descriptor: dict[int, tuple[wire.Connection, Conversation]] = {}
        self._sleeping: list[tuple[float, int, int]] = []
        self._order = itertools.count()
        self._open = len(conversations)
        for conversation in conversations:
            connection = wire.Connection(port, buffer_bytes=1 << 16)
            descriptor = connection.socket.fileno()
            self._by_descriptor[descriptor] = (connection, conversation)
            self._poll.register(descriptor, select.EPOLLIN)

    def run(self) -> float:
        """Seconds from the first request to the end of the last conversation."""
        started = time.perf_counter()
        for descriptor in list(self._by_descriptor):
            self._resume(descriptor, None)
        while self._open:
            if time.perf_counter() - started > DEADLINE_SECONDS:
                raise RuntimeError(f"{self._open} conversations have no end after {DEADLINE_SECONDS} s")
            for descriptor, _ in self._poll.poll(self._patience()):
                self._resume(descriptor, self._by_descriptor[descriptor][0].receive())
            self._wake()
        seconds = time.perf_counter() - started
        for connection, _ in self._by_descriptor.values():
            connection.close()
        self._poll.close()
        return seconds

    def _patience(self) -> float:
        return max(0.0, self._sleeping[0][0] - time.perf_counter()) if self._sleeping else 1.0

    def _wake(self) -> None:
        now = time.perf_counter()
        while self._sleeping and self._sleeping[0][0] <= now:
            self._resume(heapq.heappop(self._sleeping)[2], None)

    def _resume(self, descriptor: int, answer: memoryview | None) -> None:
        connection, conversation = self._by_descriptor[descriptor]
        try:
            wish = next(conversation) if answer is None else conversation.send(answer)
        except StopIteration:
            self._open -= 1
            return
        if isinstance(wish, float):
            heapq.heappush(self._sleeping, (time.perf_counter() + wish, next(self._order), descriptor))
        else:
            connection.socket.sendall(wish)
