"""One daemon thread with one event loop: what a blocking client runs on.

`run` hands a coroutine to the loop and waits. While it waits it calls the user's functions that the work posts
(`calling`), so callbacks run in the caller's thread and may call the client again. The thread never outlives the
interpreter (it is a daemon), and a forked child, which has no such thread, is told so instead of waiting for ever.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import socket
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, Final, TypeVar

from penstock.base.system import new_event_loop
from penstock.client.core.hand_over import CANCEL_TIMEOUT_S, HandOver
from penstock.client.errors import ClientClosed, ForkedClient, InvalidState

T = TypeVar("T")

_START_TIMEOUT_S: Final = 30.0
_END_TIMEOUT_S: Final = 10.0
_LINGER_S: Final = 0.2
"""How long `close` waits for a loop that has nothing left to do but to close itself."""
_LAST_TIMEOUT_S: Final = 5.0
_LOOK_UP_TIMEOUT_S: Final = 60.0
_GOOD_BYES: Final = 3
_CLOSE_TRIES: Final = 50
_CLOSE_PAUSE_S: Final = 0.02


_lingering: Final[weakref.WeakSet[threading.Thread]] = weakref.WeakSet()
"""Threads of closed clients whose loops may still be closing.

uvloop closes only when every look-up of a host name has ended. No user should wait for that, but the interpreter must:
a loop that comes back to an interpreter which is gone crashes the process.
"""


def _await_lingering() -> None:
    for thread in list(_lingering):
        thread.join(_LOOK_UP_TIMEOUT_S)


atexit.register(_await_lingering)


class LoopThread:
    def __init__(self, name: str = "penstock-client") -> None:
        self.name = name
        self._pid = os.getpid()
        self._closed = False
        self._lock = threading.Lock()
        """Nothing is handed to the loop behind its end: whoever hands over and whoever ends it take turns."""
        self._started = threading.Event()
        self._finished = threading.Event()
        """All work is over."""
        self._loop: asyncio.AbstractEventLoop
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        if not self._started.wait(_START_TIMEOUT_S):
            raise InvalidState(f"the thread {name} did not start")

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        return self._loop

    @property
    def is_current(self) -> bool:
        """Whether this is the thread of the loop itself."""
        return threading.get_ident() == self._thread.ident

    @property
    def is_foreign(self) -> bool:
        """Whether this process is a forked child of the one that made the thread."""
        return os.getpid() != self._pid

    def check_usable(self) -> None:
        """Raise unless a call from this thread can be served."""
        if os.getpid() != self._pid:
            raise ForkedClient(
                f"{self.name} was made in process {self._pid}, and this is its forked child {os.getpid()}, which has "
                "neither its thread nor its connections: make a new client in the child"
            )
        if self._closed:
            raise ClientClosed(f"{self.name} was closed: make a new client")
        if self.is_current:
            raise InvalidState(
                f"a blocking call inside a callback that runs in the I/O thread of {self.name} would wait for itself: "
                "call it from another thread"
            )

    def run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """The result of `work`, done on the loop. From any thread but the loop's own."""
        run: HandOver | None = None
        try:
            # Before the lock too: another thread may have held it when the process forked.
            self.check_usable()
            with self._lock:
                self.check_usable()
                run = HandOver(self._loop, work)
            result: T = run.wait(timeout_s)
        except BaseException:
            # An interrupt may come between any two steps.
            if run is None:
                work.close()
            elif not run.is_over:
                run.cancel()
            raise
        return result

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """A future of `work`, done on the loop. A future may be made in any thread; only to wait for it in the client's
        own would never end."""
        try:
            self.check_usable()
            with self._lock:
                self.check_usable()
                return asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call a function on the loop; from any thread. After `close` it is dropped."""
        with self._lock:
            if not self._closed:
                self._loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        """Cancel what still runs and end the thread. Again is no error."""
        self.abandon()
        if not self.is_current and not self.is_foreign:
            self._finished.wait(_END_TIMEOUT_S)
            self._thread.join(_LINGER_S)
            _lingering.add(self._thread)

    def look_up_here(self) -> None:
        """The interpreter ends and its thread pools are closed: the standard loop looks up host names by itself."""
        if isinstance(self._loop, asyncio.BaseEventLoop):
            setattr(self._loop, "getaddrinfo", _look_up)  # noqa: B010 - mypy lets no method be assigned

    def abandon(self, last: Callable[[], Coroutine[Any, Any, object]] | None = None) -> None:
        """End the thread without waiting for it: for finalizers. `last` is done on the loop before, if it is quick."""
        if self.is_foreign:
            # Another thread may have held the lock when the process forked.
            self._closed = True
            return
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._end, last)

    def _end(self, last: Callable[[], Coroutine[Any, Any, object]] | None) -> None:
        if last is None:
            self._loop.stop()
            return
        work = self._loop.create_task(asyncio.wait_for(last(), _LAST_TIMEOUT_S))
        work.add_done_callback(lambda done: (done.cancelled() or done.exception(), self._loop.stop()))

    def _serve(self) -> None:
        self._loop = loop = new_event_loop()
        self._started.set()
        try:
            loop.run_forever()
        finally:
            try:
                _finish_tasks(loop)
                loop.run_until_complete(loop.shutdown_asyncgens())
            finally:
                self._finished.set()
                # What becomes of an abandoned look-up is nobody's concern.
                loop.set_exception_handler(lambda *_: None)
                asyncio.set_event_loop(None)
                _close(loop)


async def _look_up(host: Any, port: Any, **options: Any) -> Any:
    return socket.getaddrinfo(host, port, **options)


def _finish_tasks(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.wait(tasks, timeout=CANCEL_TIMEOUT_S))


def _close(loop: asyncio.AbstractEventLoop) -> None:
    """Close the loop; sockets that are just saying good-bye get a moment for it, without which uvloop refuses."""
    for _ in range(_GOOD_BYES):
        loop.run_until_complete(asyncio.sleep(0))
    for _ in range(_CLOSE_TRIES):
        try:
            loop.close()
        except OSError:
            if loop.is_closed():
                return  # uvloop counts as closed although it has refused
            loop.run_until_complete(asyncio.sleep(_CLOSE_PAUSE_S))
        else:
            return
