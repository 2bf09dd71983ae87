"""Something happened: whoever waits looks what."""

from __future__ import annotations

import asyncio
from typing import Any

from penstock.network.settings import NetworkPorts


class Signal:
    """An event that the wait itself clears, with a limit on the wait. On one loop."""

    __slots__ = ("_is_set", "_ports", "_waiters")

    def __init__(self, ports: NetworkPorts) -> None:
        self._ports = ports
        self._is_set = False
        self._waiters: set[asyncio.Future[Any]] = set()

    def set(self) -> None:
        self._is_set = True
        for waiter in self._waiters:
            _finish(waiter)

    async def wait(self, seconds: float) -> bool:
        """Until it is set; False when the time was over before."""
        if not self._is_set and seconds > 0:
            waiter = self._ports.tasks.future()
            self._waiters.add(waiter)
            timer = self._ports.tasks.call_later(seconds, lambda: _finish(waiter))
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiters.discard(waiter)
        was_set, self._is_set = self._is_set, False
        return was_set


def _finish(waiter: asyncio.Future[Any]) -> None:
    if not waiter.done():
        waiter.set_result(None)
