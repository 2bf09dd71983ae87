"""A queue that runs one piece of asynchronous work at a time, in order of arrival.

The work belongs to the queue, not to its caller: a caller that is cancelled (its connection closed) stops waiting, but
what it started runs to its end. Metadata changes need this, since half of one must never be left behind.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks

T = TypeVar("T")


class SerialQueue:
    def __init__(self, tasks: Tasks, *, name: str, pending_max: int) -> None:
        self._tasks = tasks
        self._name = name
        self._pending_max = pending_max
        self._pending: deque[tuple[Callable[[], Awaitable[Any]], asyncio.Future[Any]]] = deque()
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    async def run(self, work: Callable[[], Awaitable[T]]) -> T:
        """Wait for the result of `work`, which starts after everything queued before it has ended."""
        if self._closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"The {self._name} has been stopped.")
        if len(self._pending) >= self._pending_max:
            raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"The {self._name} has too many changes waiting.")
        future = self._tasks.future()
        self._pending.append((work, future))
        if self._worker is None:
            self._worker = self._tasks.spawn(self._drain(), name=self._name)
        return await future  # type: ignore[no-any-return]  # futures of the port are untyped

    async def close(self) -> None:
        """Take no more work and wait for what is there."""
        self._closed = True
        if self._worker is not None:
            await self._worker

    async def _drain(self) -> None:
        while self._pending:
            work, future = self._pending.popleft()
            try:
                result = await work()
            except Exception as error:  # noqa: BLE001 - every failure is the waiting caller's
                if not future.done():
                    future.set_exception(error)
            else:
                if not future.done():
                    future.set_result(result)
        self._worker = None
