"""An asyncio client belongs to the event loop in which it was started: its connections, timers and futures live there.

Used in another one it would wait for what never comes, so every entry asks here first.
"""

from __future__ import annotations

import asyncio

from penstock.client.errors import InvalidState


def check_loop(bound: asyncio.AbstractEventLoop | None, what: str) -> None:
    """InvalidState unless the running loop is the one that `what` is bound to; None is bound to no loop yet."""
    if bound is None or asyncio.get_running_loop() is bound:
        return
    fate = "has been closed" if bound.is_closed() else "is another one"
    raise InvalidState(
        f"{what} belongs to the event loop in which it was started, and that {fate}: make, use and close a client in"
        " one loop, such as inside of one asyncio.run()"
    )
