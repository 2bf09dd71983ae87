"""A write on its way: its answer, held back until the high watermark has passed its records."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from penstock.base.errors import KafkaError
from penstock.base.ports import Timer


class PendingWrite:
    """Completed exactly once: committed, refused, timed out, or ended with its shard."""

    __slots__ = ("_is_complete", "_on_complete", "_response", "end", "future", "name", "timer")

    def __init__(self, name: str, future: asyncio.Future[Any]) -> None:
        self.name = name
        self.future = future
        self.end = 0
        """The answer may go out when everything below this offset is committed."""
        self.timer: Timer | None = None
        self._response: Any = None
        self._on_complete: Callable[[KafkaError | None], None] | None = None
        self._is_complete = False

    def expect(self, response: Any, on_complete: Callable[[KafkaError | None], None] | None) -> None:
        self._response = response
        self._on_complete = on_complete

    def complete(self, error: KafkaError | None = None) -> None:
        if self._is_complete:
            return
        self._is_complete = True
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        # The client may have gone away meanwhile; the write happened nevertheless.
        if not self.future.done():
            if error is None:
                self.future.set_result(self._response)
            else:
                self.future.set_exception(error)
        if self._on_complete is not None:
            self._on_complete(error)
