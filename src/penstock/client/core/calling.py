"""Where a user's function runs: here on the loop, or in the thread that waits for the call that led to it.

A blocking client works on the loop of a thread of its own, but its user expects his callbacks in the thread in which he
called. So whoever waits in `LoopThread.run` has a `Mailbox`; the task that works for him finds it in its context, and
posts functions to it. A coroutine function always runs on the loop.
"""

from __future__ import annotations

import asyncio
import inspect
import queue
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

MAILBOX: ContextVar[Mailbox | None] = ContextVar("penstock_mailbox", default=None)


class Letter:
    """A function to be called in the waiting thread, and the future of its result on the loop."""

    __slots__ = ("_future", "_loop", "args", "function")

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], loop: asyncio.AbstractEventLoop) -> None:
        self.function = function
        self.args = args
        self._loop = loop
        self._future: asyncio.Future[Any] = loop.create_future()

    async def answer(self) -> Any:
        return await self._future

    def call(self) -> None:
        """In the waiting thread. What ends the thread's work (KeyboardInterrupt) passes through."""
        try:
            result = self.function(*self.args)
        except Exception as error:  # noqa: BLE001 - the user's own function: its error goes to whoever called it
            self._loop.call_soon_threadsafe(self._finish, None, error)
        except BaseException:
            self._loop.call_soon_threadsafe(self._future.cancel)
            raise
        else:
            self._loop.call_soon_threadsafe(self._finish, result, None)

    def _finish(self, result: Any, error: Exception | None) -> None:
        if self._future.done():
            return
        if isinstance(error, StopIteration):
            # A future refuses this one.
            error = RuntimeError("the function raised StopIteration")
        if error is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(result)

    def refuse(self) -> None:
        self._loop.call_soon_threadsafe(self._future.cancel)


class Mailbox:
    """Of one thread that waits for one piece of work."""

    __slots__ = ("_lock", "is_open", "items")

    def __init__(self) -> None:
        self.items: queue.SimpleQueue[Letter | None] = queue.SimpleQueue()
        """None says that the work is done."""
        self.is_open = True
        self._lock = threading.Lock()

    def post(self, letter: Letter) -> bool:
        """False when nobody waits any more."""
        with self._lock:
            if self.is_open:
                self.items.put(letter)
            return self.is_open

    def close(self) -> None:
        with self._lock:
            self.is_open = False
        while not self.items.empty():
            letter = self.items.get_nowait()
            if letter is not None:
                letter.refuse()


async def call_user(function: Callable[..., Any], *args: Any) -> Any:
    mailbox = MAILBOX.get()
    if mailbox is not None and mailbox.is_open and not _is_async(function):
        letter = Letter(function, args, asyncio.get_running_loop())
        result = await letter.answer() if mailbox.post(letter) else function(*args)
    else:
        result = function(*args)
    return await result if inspect.isawaitable(result) else result


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004
