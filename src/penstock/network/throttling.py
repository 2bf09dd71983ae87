"""When a broker asks for a pause (KIP-219).

A broker that is over a quota answers at once and says in `throttle_time_ms` how long it will not read from this
connection. A client that obeys keeps its requests, and its choice of another broker, for that time. Older versions of
the APIs said the same number after the broker had waited itself; for those there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from penstock.base.ports import Clock, Tasks, Timer
from penstock.protocol.apis import ApiKey

FIRST_VERSIONS: Final = {
    ApiKey.PRODUCE: 6,
    ApiKey.FETCH: 8,
    ApiKey.LIST_OFFSETS: 3,
    ApiKey.METADATA: 6,
    ApiKey.OFFSET_COMMIT: 4,
    ApiKey.OFFSET_FETCH: 4,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.JOIN_GROUP: 3,
    ApiKey.HEARTBEAT: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.SYNC_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.API_VERSIONS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 2,
    ApiKey.DESCRIBE_CONFIGS: 2,
}
"""The first version in which the pause is the client's to make; 1 for an API that is not here."""


def throttle_of(api_key: int, version: int, response: object) -> int:
    """The pause in ms that an answer asks for; 0 for none."""
    pause_ms: int = getattr(response, "throttle_time_ms", 0)
    if pause_ms <= 0:
        return 0
    return pause_ms if version >= _FIRST.get(api_key, 1) else 0


_FIRST: Final[dict[int, int]] = {int(key): version for key, version in FIRST_VERSIONS.items()}


class Pause:
    """One pause at a time; a longer one replaces it. `done` is called when it is over."""

    __slots__ = ("_clock", "_done", "_tasks", "_timer", "until")

    def __init__(self, clock: Clock, tasks: Tasks, done: Callable[[], None]) -> None:
        self.until = 0.0
        self._clock = clock
        self._tasks = tasks
        self._done = done
        self._timer: Timer | None = None

    def extend(self, pause_ms: float) -> None:
        seconds = pause_ms / 1000
        until = self._clock.monotonic() + seconds
        if until <= self.until:
            return
        self.stop()
        self.until = until
        self._timer = self._tasks.call_later(seconds, self._over)

    def stop(self) -> None:
        self.until = 0.0
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _over(self) -> None:
        self.stop()
        self._done()
