"""Those who call the handler: asyncio tasks for coroutine functions, threads for plain ones.

Both take a `Job` and say on the loop how it ended. A thread's endings are collected and the loop is woken once for all
of them, so that many short jobs do not cost a wake-up each.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from penstock.client.consumer.parallel.scheduling import Work

Done = Callable[[Work, Exception | None], None]


class Workers(Protocol):
    capacity: int
    """How many jobs may be with the workers at once."""

    def submit(self, work: Work) -> None: ...

    def close(self) -> None: ...


class TaskWorkers:
    def __init__(self, handle: Callable[[Work], Awaitable[Any]], count: int, done: Done) -> None:
        self.capacity = count
        self._handle = handle
        self._done = done
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(self._run(work), name=f"worker {work.partition}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _run(self, work: Work) -> None:
        error: Exception | None = None
        try:
            await self._handle(work)
        except Exception as failure:  # noqa: BLE001 - the user's handler: the policy decides what its failure means
            error = failure
        self._done(work, error)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()


class ThreadWorkers:
    def __init__(self, handle: Callable[[Work], Any], count: int, done: Done) -> None:
        # As many again wait in the queue, so that a thread need not wait for the loop between two short jobs.
        self.capacity = 2 * count
        self._handle = handle
        self._done = done
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._ended: deque[tuple[Work, Exception | None]] = deque()
        self._is_waking = False
        # Daemons: a handler that never returns must not keep the process from ending.
        self._threads = [
            threading.Thread(target=self._work, name=f"penstock-worker-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, work: Work) -> None:
        self._jobs.put(work)

    def _work(self) -> None:
        while (work := self._jobs.get()) is not None:
            error: Exception | None = None
            try:
                self._handle(work)
            except Exception as failure:  # noqa: BLE001 - the user's handler: the policy decides what it means
                error = failure
            self._ended.append((work, error))
            self._wake()

    def _wake(self) -> None:
        if self._is_waking:
            return
        self._is_waking = True
        try:
            self._loop.call_soon_threadsafe(self._collect)
        except RuntimeError:
            # The loop is closed: nobody wants to know any more.
            return

    def _collect(self) -> None:
        # Before looking: whoever ends later wakes the loop again.
        self._is_waking = False
        while self._ended:
            self._done(*self._ended.popleft())

    def close(self) -> None:
        for _ in self._threads:
            self._jobs.put(None)
