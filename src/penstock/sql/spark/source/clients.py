"""Clients of a Python worker process, kept between tasks.

Spark uses its worker processes again and again; a new connection for every task would cost more than most tasks. A
client is taken out while it is used and put back when that went well; one that failed, or was not used for long, or is
too many, is closed. A forked child starts with none.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, Generic, Protocol, TypeVar

from penstock import Consumer, Producer

IDLE_S_MAX: Final = 300.0
KEPT_MAX: Final = 8


class Closing(Protocol):
    def close(self) -> None: ...


C = TypeVar("C", bound=Closing)


class ClientCache(Generic[C]):
    def __init__(self, make: Callable[[dict[str, object]], C], clock: Callable[[], float] = time.monotonic) -> None:
        self._make = make
        self._clock = clock
        self._pid = os.getpid()
        self._kept: list[tuple[str, C, float]] = []

    @contextmanager
    def lent(self, config: Mapping[str, object]) -> Iterator[C]:
        name = repr(sorted(config.items()))
        client = self._take(name) or self._make(dict(config))
        try:
            yield client
        except BaseException:
            client.close()
            raise
        self._put_back(name, client)

    def _take(self, name: str) -> C | None:
        if self._pid != os.getpid():
            # They belong to the parent.
            self._pid, self._kept = os.getpid(), []
        for index, (known, client, _) in enumerate(self._kept):
            if known == name:
                del self._kept[index]
                return client
        return None

    def _put_back(self, name: str, client: C) -> None:
        now = self._clock()
        self._kept.append((name, client, now))
        old = [each for each in self._kept if now - each[2] > IDLE_S_MAX] or self._kept[:-KEPT_MAX]
        for each in old:
            self._kept.remove(each)
            each[1].close()

    def close(self) -> None:
        while self._kept:
            self._kept.pop()[1].close()


def _consumer(config: dict[str, Any]) -> Consumer:
    return Consumer(config)


def _producer(config: dict[str, Any]) -> Producer:
    return Producer(config)


CONSUMERS: Final = ClientCache(_consumer)
PRODUCERS: Final = ClientCache(_producer)
