"""Interceptors: a user's hooks in front of and behind every record.

`on_send(record) -> record` runs in the thread that called `send`, before anything is serialized or partitioned; what
one returns is what the next one gets. `on_acknowledgement(metadata, error | None)` runs in the I/O thread before the
user's callback, also when the record failed; if it never got as far as a batch, in the thread that called `send` or
`send_many`. The metadata of a record that failed say where it was to go, as far as that was known: offset and timestamp
are -1, and so is a partition that nobody had chosen yet.
One that raises is logged, and the record goes on as if that one were not there. `configure(config)` and `close()` are
called if they are there.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.core.types import RecordMetadata
from penstock.client.producer.record import ProducerRecord

log = logging.getLogger(__name__)


class ProducerInterceptor:
    """A base with methods that do nothing; any object with some of these methods will do."""

    def configure(self, config: Mapping[str, object]) -> None:
        """Once, before the first record, with the producer's configuration."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """In the caller's thread; the record to go on with."""
        return record

    def on_acknowledgement(self, metadata: RecordMetadata, error: KafkaError | None) -> None:
        """In the I/O thread, or in the caller's if `send` itself fails; with an error the offset is -1."""

    def close(self) -> None:
        """Once, when the producer is closed."""


class Interceptors:
    def __init__(self, specs: Iterable[object], config: Mapping[str, object]) -> None:
        self._all = resolve_interceptors(specs)
        self._on_send = _methods(self._all, "on_send")
        self._on_acknowledgement = _methods(self._all, "on_acknowledgement")
        for configure in _methods(self._all, "configure"):
            configure(config)

    def __bool__(self) -> bool:
        return bool(self._all)

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        for method in self._on_send:
            try:
                changed = method(record)
            except Exception:
                log.exception("interceptor %r failed in on_send; the record goes on without it", method)
                continue
            if isinstance(changed, ProducerRecord):
                record = changed
            else:
                log.error("interceptor %r returned no ProducerRecord from on_send, but %r", method, changed)
        return record

    def acknowledging(self, tp: TopicPartition) -> Callable[[RecordMetadata | None, BaseException | None], None]:
        """What a delivery callback does for a record in a batch of this partition."""

        def acknowledge(metadata: RecordMetadata | None, error: BaseException | None) -> None:
            self.on_acknowledgement(_unwritten(*tp) if metadata is None else metadata, error)

        return acknowledge

    def on_refused(self, topic: str, partition: int | None, error: BaseException) -> None:
        """A record that `on_send` has seen and that never got into a batch."""
        self.on_acknowledgement(_unwritten(topic, partition if isinstance(partition, int) else -1), error)

    def on_acknowledgement(self, metadata: RecordMetadata, error: BaseException | None) -> None:
        for method in self._on_acknowledgement:
            try:
                method(metadata, error)
            except Exception:
                log.exception("interceptor %r failed in on_acknowledgement", method)

    def close(self) -> None:
        for method in _methods(self._all, "close"):
            try:
                method()
            except Exception:
                log.exception("interceptor %r failed in close", method)


def _unwritten(topic: str, partition: int) -> RecordMetadata:
    return RecordMetadata(topic, partition, -1, -1, 0, -1, -1)


def _methods(objects: Iterable[object], name: str) -> list[Callable[..., Any]]:
    return [method for each in objects if callable(method := getattr(each, name, None))]


def resolve_interceptors(specs: Iterable[object]) -> list[object]:
    """The objects behind what a user named; KafkaError for what is none."""
    return [_made(spec) for spec in specs]


def _made(spec: object) -> object:
    """An object, a class, or `package.module.Class` as text."""
    given = spec
    if isinstance(spec, str):
        module, _, name = spec.rpartition(".")
        try:
            spec = getattr(importlib.import_module(module), name)
        except (ImportError, AttributeError, ValueError) as error:
            raise _refused(f"{spec!r} cannot be imported: {error}") from error
    try:
        made = spec() if isinstance(spec, type) else spec
    except TypeError as error:
        raise _refused(f"an object of {given!r} cannot be made without arguments: {error}") from error
    if not any(_methods([made], name) for name in ("on_send", "on_acknowledgement", "configure", "close")):
        raise _refused(f"{given!r} has neither on_send nor on_acknowledgement: give an object or a class with them")
    return made


def _refused(why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, why)
