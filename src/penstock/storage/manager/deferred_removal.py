"""Files that are renamed out of the way now and unlinked later, in a worker.

The delay (`file.delete.delay.ms`) lets readers that are under way finish cheaply, and a person undo a mistake. What is
left when the broker stops is unlinked then; what a crash leaves is found by its name at the next start.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable

from penstock.base.ports import Tasks, Timer

log = logging.getLogger(__name__)


class DeferredRemoval:
    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks
        self._numbers = itertools.count()
        self._pending: dict[int, tuple[Timer, Callable[[], None]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    def __len__(self) -> int:
        return len(self._pending)

    def schedule(self, delay_ms: int, remove: Callable[[], None], what: str) -> None:
        number = next(self._numbers)

        def fire() -> None:
            if self._pending.pop(number, None) is not None:
                task = self._tasks.spawn(self._remove(remove, what), name=f"removal of {what}")
                self._running.add(task)
                task.add_done_callback(self._running.discard)

        self._pending[number] = (self._tasks.call_later(delay_ms / 1000, fire), remove)

    async def _remove(self, remove: Callable[[], None], what: str) -> None:
        try:
            await self._tasks.run_blocking(remove)
        except FileNotFoundError:
            return
        except OSError as error:
            log.warning("%s could not be removed, the next start tries again: %s", what, error)
            return
        log.debug("removed %s", what)

    async def finish(self) -> None:
        """Remove at once whatever still waits, and wait for what is being removed."""
        pending, self._pending = self._pending, {}
        for timer, _ in pending.values():
            timer.cancel()
        for _, remove in pending.values():
            await self._remove(remove, "a leftover")
        await asyncio.gather(*self._running)
