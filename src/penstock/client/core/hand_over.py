"""One coroutine on a loop of another thread, and the thread that waits for it and runs the functions it posts."""

from __future__ import annotations

import asyncio
import contextvars
import queue
import threading
import time
from collections.abc import Coroutine
from typing import Any, Final

from penstock.client.core.calling import MAILBOX, Mailbox
from penstock.client.errors import ClientClosed, KafkaTimeout

CANCEL_TIMEOUT_S: Final = 5.0
_SLICE_S: Final = 0.5


class HandOver:
    def __init__(self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any]) -> None:
        self._loop = loop
        self._work = work
        self._mailbox = Mailbox()
        self._task: asyncio.Task[Any] | None = None
        """While it runs."""
        self._result: Any = None
        self._error: BaseException | None = None
        self.is_over = False
        """Whether the work has ended, or was told to."""
        self._context = contextvars.copy_context()
        self._context.run(MAILBOX.set, self._mailbox)
        loop.call_soon_threadsafe(self._launch)

    def _launch(self) -> None:
        self._task = self._loop.create_task(self._work, context=self._context)
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[Any]) -> None:
        """The outcome without the task, which must not die in the waiting thread: asyncio strikes a dead task off its
        list in a function of Python's that runs then and there, and an interrupt that hits that one is lost."""
        self._task = None
        if task.cancelled():
            self._error = ClientClosed("the client was closed while the call waited")
        else:
            self._error = task.exception()
            self._result = None if self._error is not None else task.result()
        self._mailbox.items.put(None)

    def wait(self, timeout_s: float | None) -> Any:
        try:
            finished = self._serve_letters(timeout_s)
        finally:
            self._mailbox.close()
        if not finished:
            self.cancel()
            raise KafkaTimeout(f"the call took longer than {timeout_s} s")
        self.is_over = True
        error, self._error = self._error, None
        if error is None:
            return self._result
        try:
            raise error
        finally:
            del error  # breaks the cycle exception -> frame -> exception

    def _serve_letters(self, timeout_s: float | None) -> bool:
        """Until the work is done (True) or the time is over."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            # In slices: a signal that came just before the wait would otherwise be seen only at its end.
            slice_s = _SLICE_S if deadline is None else min(_SLICE_S, max(0.0, deadline - time.monotonic()))
            try:
                letter = self._mailbox.items.get(timeout=slice_s)
            except queue.Empty:
                if deadline is not None and time.monotonic() >= deadline:
                    return False
                continue
            if letter is None:
                return True
            letter.call()

    def cancel(self) -> None:
        """End the work; wait a while for it to have ended."""
        self.is_over = True
        done = threading.Event()

        def cancel() -> None:
            if self._task is None or self._task.done():
                done.set()
                return
            self._task.add_done_callback(lambda _: done.set())
            self._task.cancel()

        try:
            self._loop.call_soon_threadsafe(cancel)
        except RuntimeError:
            return  # the loop is closed, and the work with it
        done.wait(CANCEL_TIMEOUT_S)
