"""How a server in the foreground is told to stop: SIGTERM, Ctrl-C, or the end of standard input."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

INTERRUPTED: Final = 130
_SECOND_THOUGHT_S: Final = 1.0


def stop_on_signals(loop: asyncio.AbstractEventLoop, stop: asyncio.Event, *, until_stdin_closes: bool) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, _stop_handler(stop, number))
    if until_stdin_closes:
        threading.Thread(target=_wait_for_end_of_input, args=(loop, stop), name="stdin", daemon=True).start()


def _stop_handler(stop: asyncio.Event, number: signal.Signals) -> Callable[[], None]:
    """The first signal stops cleanly. A later Ctrl-C means that somebody does not want to wait; recovery copes.

    A signal to a whole process group can arrive twice at nearly the same time, so only a second thought counts.
    """
    asked_at = 0.0

    def stop_or_exit() -> None:
        nonlocal asked_at
        now = time.monotonic()
        if not stop.is_set():
            asked_at = now
            stop.set()
        elif number is signal.SIGINT and now - asked_at > _SECOND_THOUGHT_S:
            os._exit(INTERRUPTED)

    return stop_or_exit


def _wait_for_end_of_input(loop: asyncio.AbstractEventLoop, stop: asyncio.Event) -> None:
    # The descriptor and not sys.stdin, whose lock would keep the interpreter from ending.
    try:
        while os.read(0, 65536):
            pass
    except OSError:
        # It was never open.
        pass
    try:
        loop.call_soon_threadsafe(stop.set)
    except RuntimeError:
        # The server has ended for another reason.
        pass
