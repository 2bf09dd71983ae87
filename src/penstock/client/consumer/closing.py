"""Steps of an end that all have to be made, whatever the user's own functions in them raise."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

log = logging.getLogger(__name__)


async def in_turn(*steps: Callable[[], Awaitable[object]]) -> None:
    """Make every step, then raise what the first of them that failed has raised; others are logged.

    A cancellation ends it at once: whoever cancels does not want to wait for good-byes.
    """
    first: Exception | None = None
    for step in steps:
        try:
            await step()
        except Exception as error:  # a store, a listener or a callback of the user: raised when all steps are made
            if first is None:
                first = error
            elif error is not first:
                log.error("another step of closing failed, too", exc_info=error)
    if first is not None:
        raise first
