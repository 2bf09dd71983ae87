"""Requests that have not been sent: in order, bounded, each with its deadline."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any

from penstock.network.deadlines import DeadlineTimer
from penstock.network.errors import NetworkError
from penstock.network.in_flight import Decode
from penstock.network.settings import NetworkPorts
from penstock.network.versions import VERSION_MAX


class WaitingRequest:
    """A request that has not been sent. Without an API it only asks which versions the broker speaks."""

    __slots__ = ("api_key", "at_least", "at_most", "deadline", "decode", "expects_answer", "future", "message")

    def __init__(
        self,
        api_key: int | None,
        message: object,
        deadline: float,
        future: asyncio.Future[Any],
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        decode: Decode | None = None,
        expects_answer: bool = True,
    ) -> None:
        self.api_key = api_key
        self.message = message
        self.deadline = deadline
        self.future = future
        self.at_least = at_least
        self.at_most = at_most
        self.decode = decode
        self.expects_answer = expects_answer

    def fail(self, error: NetworkError) -> None:
        if not self.future.done():
            self.future.set_exception(error.for_request(was_sent=False))


class WaitingRequests:
    """`late()` gives the error of a request whose time is over."""

    __slots__ = ("_late", "_requests", "_timer")

    def __init__(self, ports: NetworkPorts, late: Callable[[], NetworkError]) -> None:
        self._requests: deque[WaitingRequest] = deque()
        self._late = late
        self._timer = DeadlineTimer(ports.clock, ports.tasks, self._expire)

    def __len__(self) -> int:
        return len(self._requests)

    def has_room(self, count_max: int) -> bool:
        """Those that nobody waits for any more do not count."""
        if len(self._requests) >= count_max:
            self._requests = deque(request for request in self._requests if not request.future.done())
        return len(self._requests) < count_max

    def add(self, request: WaitingRequest) -> None:
        self._requests.append(request)
        self._timer.watch(request.deadline)

    def take(self) -> WaitingRequest:
        """The oldest."""
        return self._requests.popleft()

    def fail_all(self, error: NetworkError) -> None:
        requests, self._requests = self._requests, deque()
        for request in requests:
            request.fail(error)

    def stop(self) -> None:
        self._timer.stop()

    def _expire(self, now: float) -> float | None:
        kept: deque[WaitingRequest] = deque()
        for request in self._requests:
            if request.future.done():
                continue
            if request.deadline > now:
                kept.append(request)
            else:
                request.fail(self._late())
        self._requests = kept
        return min((request.deadline for request in kept), default=None)
