"""What the blocking classes have in common: their thread, closing, guards, and documentation taken from the core.

A client that is still open when the interpreter ends gets a last word (`_at_exit`) while its thread, a daemon, still
runs: later, when module globals are deleted, the thread is gone and nothing can be sent any more.
"""

from __future__ import annotations

import atexit
import logging
import sys
import warnings
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from penstock.client.core.loop_thread import LoopThread

log = logging.getLogger(__name__)
T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Self = TypeVar("Self", bound="BlockingFace")


def documented_by(source: Any) -> Callable[[F], F]:
    """Take over the docstring of the method that does the work."""

    def decorate(function: F) -> F:
        function.__doc__ = source.__doc__
        return function

    return decorate


_open_faces: weakref.WeakSet[BlockingFace] = weakref.WeakSet()


def _end_open_faces() -> None:
    for face in list(_open_faces):
        if face._is_closed or face._thread.is_foreign:
            continue
        try:
            face._thread.look_up_here()
            face._at_exit()
        except Exception:
            # The next client must have its turn whatever became of this one.
            log.exception("%s could not be closed when Python ended", face._name)


atexit.register(_end_open_faces)


class BlockingFace:
    """The base of a blocking client: `self._thread`, and `self._core`, the asyncio client that works on it.

    A subclass makes the core and calls `super().__init__(core, name=...)`; if the core cannot be made, no thread is
    started. Use after `close`, in a forked child, or in the I/O thread itself raises; it never waits for ever.
    """

    def __init__(self, core: Any, *, name: str) -> None:
        self._core = core
        self._name = name
        self._is_closed = False
        self._thread = LoopThread(name)
        _open_faces.add(self)

    def _run(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        return self._thread.run(work, timeout_s)

    def close(self) -> None:
        """Close the client and end its thread. Again is no error."""
        self._close_with(self._core.close())

    def _close_with(self, work: Coroutine[Any, Any, Any]) -> None:
        """For subclasses whose `close` has parameters: do `work`, then end the thread whatever became of it."""
        # A forked child holds a copy of its parent's client: to close it is the parent's business.
        if self._is_closed or self._thread.is_foreign:
            self._is_closed = True
            work.close()
            return
        self._is_closed = True
        try:
            self._thread.run(work)
        finally:
            self._thread.close()

    def _at_exit(self) -> None:
        """The interpreter ends and the client is open. For those that hold something which would be lost."""

    def _disconnect(self) -> Callable[[], Coroutine[Any, Any, object]] | None:
        """What closes the connections of a client that was dropped, and nothing else; without reference to it."""
        return None

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._is_closed

    def __repr__(self) -> str:
        state = "closed" if self._is_closed else "open"
        return f"<{type(self).__name__} {self._describe()}, {state}>"

    def _describe(self) -> str:
        """What tells it from others of its kind."""
        return self._name

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_is_closed", True) or sys.is_finalizing():
            return
        self._is_closed = True
        if not hasattr(self, "_thread") or self._thread.is_foreign:
            return
        warnings.warn(f"{self._name} was not closed: use `with`, or call close()", ResourceWarning, stacklevel=2)
        self._thread.abandon(self._disconnect())
