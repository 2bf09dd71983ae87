"""An answer that a member waits for.

The state machine completes it; whoever serves the client is called back. It may be completed before anybody listens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Answer(Generic[T]):
    """Completed exactly once."""

    __slots__ = ("_listener", "value")

    def __init__(self) -> None:
        self.value: T | None = None
        self._listener: Callable[[T], None] | None = None

    @classmethod
    def ready(cls, value: T) -> Answer[T]:
        answer = cls()
        answer.value = value
        return answer

    @property
    def is_complete(self) -> bool:
        return self.value is not None

    def complete(self, value: T) -> None:
        assert self.value is None, "an answer is given once"
        self.value = value
        if self._listener is not None:
            self._listener(value)

    def listen(self, listener: Callable[[T], None]) -> None:
        """Call `listener` when the answer is there, perhaps at once. There is one listener at most."""
        assert self._listener is None, "an answer has one listener"
        self._listener = listener
        if self.value is not None:
            listener(self.value)


class Caller(NamedTuple):
    """Who sent a request, as far as groups care."""

    client_id: str
    client_host: str
    api_version: int
