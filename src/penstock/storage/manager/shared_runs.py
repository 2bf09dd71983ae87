"""Work that many ask for at the same time and that one run does for all of them: syncs and checkpoints.

A request is satisfied only by a run that starts after it, since one under way may have missed its data. So there is
at most one run under way and one waiting for each key, however many ask.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any

from penstock.base.errors import KafkaError
from penstock.base.ports import Tasks


class SharedRuns:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._waiting: dict[Hashable, asyncio.Future[Any]] = {}
        self._running: dict[Hashable, asyncio.Task[None]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        """Wait for a run of `work` that starts from now on. OSError and KafkaError reach everyone who waits."""
        waiter = self._waiting.get(key)
        if waiter is None:
            waiter = self._waiting[key] = self._tasks.future()
            # Nobody may be left to read the failure when its only waiter was cancelled.
            waiter.add_done_callback(lambda done: done.cancelled() or done.exception())
            if key not in self._running:
                self._running[key] = self._tasks.spawn(self._run_all(key, work), name=f"shared run of {key}")
        await asyncio.shield(waiter)

    async def _run_all(self, key: Hashable, work: Callable[[], Awaitable[None]]) -> None:
        try:
            while (waiter := self._waiting.pop(key, None)) is not None:
                await self._run_once(waiter, work)
        finally:
            del self._running[key]

    async def _run_once(self, waiter: asyncio.Future[Any], work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except (OSError, KafkaError) as error:
            if not waiter.done():
                waiter.set_exception(error)
        else:
            if not waiter.done():
                waiter.set_result(None)
        finally:
            waiter.cancel()

    async def settle(self) -> None:
        """Wait until nothing runs or waits any more."""
        while self._running:
            await asyncio.gather(*self._running.values(), return_exceptions=True)
