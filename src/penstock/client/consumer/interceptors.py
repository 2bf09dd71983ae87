"""Functions of the user that see every record a poll gives, and every commit.

An interceptor has any of `configure(config)`, `on_consume(records) -> records`, `on_commit(offsets)` and `close()`. The
output of one is the input of the next. One that fails is logged and left out of that call; it breaks nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any

from penstock.base.types import TopicPartition
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.core.types import OffsetAndMetadata

log = logging.getLogger(__name__)


class ConsumerInterceptor:
    """A base to derive from; every method may be left as it is."""

    def configure(self, config: Mapping[str, object]) -> None:
        """Called once, with the consumer's configuration."""

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        """Called before a poll returns, with what it is about to give."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Called after a commit has succeeded."""

    def close(self) -> None:
        """The consumer was closed."""


class Interceptors:
    def __init__(self, interceptors: Iterable[object], config: Mapping[str, object]) -> None:
        self._all = [each() if isinstance(each, type) else each for each in interceptors]
        for each in self._all:
            self._call(each, "configure", config)

    def __bool__(self) -> bool:
        return bool(self._all)

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        for each in self._all:
            changed = self._call(each, "on_consume", records)
            if changed is not None:
                records = changed if isinstance(changed, ConsumerRecords) else ConsumerRecords(changed)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        for each in self._all:
            self._call(each, "on_commit", dict(offsets))

    def close(self) -> None:
        for each in self._all:
            self._call(each, "close")

    def _call(self, interceptor: object, name: str, *args: Any) -> Any:
        method = getattr(interceptor, name, None)
        if method is None:
            return None
        try:
            return method(*args)
        except Exception:
            log.exception("the interceptor %s failed in %s and was left out", type(interceptor).__name__, name)
            return None
