"""The log of each broker in this process, kept apart from the others' and from the application's.

A broker logs through the loggers of its modules like any process, but here those are shared with whatever else runs in
the process. While a broker runs, one filter stands on them: a line from a thread that belongs to a broker goes to that
broker's `BrokerLog` and nowhere else, so that a test's own log and pytest's `caplog` stay free of it; every other line
goes on as if nothing was there. A filter and not a handler, because pytest puts its handlers on every logger that does
not propagate.
"""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Final, TypeVar

from penstock.base.logs import TextFormatter

LINES_MAX: Final = 10_000
"""What a broker's log keeps; older lines go."""

T = TypeVar("T")
_owner = threading.local()


class BrokerLog:
    """The lines of one broker. Written by its threads, read by the test's."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=LINES_MAX)
        self._formatter = TextFormatter()
        self._count = 0

    def add(self, record: logging.LogRecord) -> None:
        self._lines.append(self._formatter.format(record))
        self._count += 1

    def text(self, since: int = 0) -> str:
        """All lines, or those after the first `since` that ever were."""
        lines = list(self._lines)
        return "\n".join(lines[max(0, len(lines) - (self._count - since)) :])

    @property
    def count(self) -> int:
        return self._count

    def claim_thread(self) -> None:
        """What the calling thread logs belongs to this broker from now on."""
        _owner.log = self

    def claiming(self, work: Callable[[], T]) -> Callable[[], T]:
        def run() -> T:
            _owner.log = self
            return work()

        return run


class _Router(logging.Filter):
    """Installed on the loggers while at least one broker runs."""

    def __init__(self) -> None:
        super().__init__()
        self._users = 0
        self._levels: dict[str, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        owner: BrokerLog | None = getattr(_owner, "log", None)
        if owner is None:
            return record.levelno >= self._level_before(record.name)
        owner.add(record)
        return False

    def _level_before(self, name: str) -> int:
        """The level that the logger would have without the router."""
        logger: logging.Logger | None = logging.getLogger(name)
        while logger is not None:
            if level := self._levels.get(logger.name, logger.level):
                return level
            logger = logger.parent
        return logging.NOTSET

    def install(self) -> None:
        with _lock:
            self._users += 1
            for name, logger in list(logging.root.manager.loggerDict.items()):
                if isinstance(logger, logging.Logger) and name.startswith("penstock.") and name not in self._levels:
                    self._levels[name] = logger.level
                    logger.setLevel(min(logger.getEffectiveLevel(), logging.INFO))
                    logger.addFilter(self)

    def remove(self) -> None:
        with _lock:
            self._users -= 1
            if self._users:
                return
            for name, level in self._levels.items():
                logger = logging.getLogger(name)
                logger.removeFilter(self)
                logger.setLevel(level)
            self._levels.clear()


_lock = threading.Lock()
ROUTER: Final = _Router()
