"""A duty that is done again and again, never twice at the same time.

The interval counts from the end of one round to the start of the next, so a slow disk delays rounds instead of
piling them up. A failed round is logged and the next one comes all the same.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from penstock.base.errors import KafkaError
from penstock.base.ports import Tasks, Timer

log = logging.getLogger(__name__)


class PeriodicDuty:
    def __init__(
        self, name: str, duty: Callable[[], Awaitable[None]], *, interval_ms: int, first_delay_ms: int, tasks: Tasks
    ) -> None:
        self.name = name
        self._duty = duty
        self._interval_ms = interval_ms
        self._tasks = tasks
        self._stopped = False
        self._round: asyncio.Task[None] | None = None
        self._timer: Timer | None = tasks.call_later(first_delay_ms / 1000, self._start_round)

    def _start_round(self) -> None:
        self._timer = None
        self._round = self._tasks.spawn(self._run_round(), name=self.name)

    async def _run_round(self) -> None:
        try:
            await self._duty()
        except (OSError, KafkaError) as error:
            log.error("%s failed, the next round is in %d ms: %s", self.name, self._interval_ms, error)
        finally:
            self._round = None
        if not self._stopped:
            self._timer = self._tasks.call_later(self._interval_ms / 1000, self._start_round)

    async def stop(self) -> None:
        """No further rounds; one that is under way is waited for."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._round is not None:
            await asyncio.gather(self._round, return_exceptions=True)
