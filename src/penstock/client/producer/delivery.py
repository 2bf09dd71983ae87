"""What `send` gives back: the future of one record, and of one batch.

A record has no future of its own. `Delivery` is a light view of (batch, index): everything that happens, happens to
batches, and one assignment, `batch.outcome = Outcome(...)`, ends all deliveries of a batch at once. So a million
records cost a million small objects, and no lock, event or callback list unless somebody asks for one.

Threads. The outcome is written once, in the I/O thread, and read anywhere without a lock. Those who wait are kept in
`batch.waiters`; that list and the step from "not finished" to "finished" are guarded by one lock of this module, taken
when somebody begins to wait and once per batch at its end, never per record. The order at the end is: the outcome can
be seen, the callbacks given to `send` have run (in the order of the records), waiters are woken.

To wait in the I/O thread for what only that thread can bring about would be a deadlock: it is refused (`InvalidState`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from penstock.base.errors import KafkaError
from penstock.client.core.types import RecordMetadata
from penstock.client.errors import InvalidState, KafkaTimeout
from penstock.records.kernel import Receipt

if TYPE_CHECKING:
    from penstock.client.producer.batch import ProducerBatch

WAITERS: Final = threading.Lock()
"""Guards `waiters` of every batch."""

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1


class Outcome(NamedTuple):
    """How a batch ended."""

    base_offset: int = -1
    """-1 when nobody told it: `acks=0`, or a duplicate that the broker had forgotten the offset of."""
    log_append_time: int = -1
    """-1 when the records keep their own timestamps."""
    error: KafkaError | None = None
    record_errors: dict[int, KafkaError] | None = None
    """Errors of single records, where the broker told them apart; `error` is for the others."""
    pieces: tuple[tuple[int, ProducerBatch], ...] = ()
    """A batch that had to be split: (first index, the batch that begins there), which are finished too."""

    def of(self, index: int) -> tuple[int, int, KafkaError | None]:
        """(offset, log append time, error) of one record."""
        for start, piece in reversed(self.pieces):
            if start <= index:
                assert piece.outcome is not None
                return piece.outcome.of(index - start)
        error = self.error
        if self.record_errors is not None:
            error = self.record_errors.get(index, error)
        return (self.base_offset + index if self.base_offset >= 0 else -1), self.log_append_time, error


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """Where a batch of `send_many` was written."""

    topic: str
    partition: int
    base_offset: int
    """The first record's offset; the others follow. -1 with `acks=0`."""
    count: int
    log_append_time: int
    """-1 when the records keep their own timestamps."""


class _Waiting:
    """What both kinds of delivery have in common; `_batch` is all they need."""

    __slots__ = ()

    _batch: ProducerBatch

    def done(self) -> bool:
        """Whether the end is known. Never blocks."""
        return self._batch.outcome is not None

    def _wait(self, timeout: float | None) -> None:
        batch = self._batch
        if batch.outcome is not None:
            return
        if threading.get_ident() == batch.io_thread():
            raise InvalidState(
                "result() was called in the thread that sends the records, which would wait for itself:"
                " await the delivery, or wait in another thread"
            )
        # A bare lock, opened by the end: an Event would do the same with three times the work on both sides.
        gate = threading.Lock()
        gate.acquire()
        if not add_waiter(batch, gate.release):
            return
        if not gate.acquire(timeout=-1 if timeout is None else max(timeout, 0.0)):
            raise KafkaTimeout(f"a record for {batch.tp} was neither written nor refused within {timeout} s")

    def _watch(self, callback: Callable[[], None]) -> None:
        if not add_waiter(self._batch, callback):
            callback()

    def _suspend(self) -> Generator[Any, None, None]:
        """Wait on the running loop, whichever it is."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        if add_waiter(self._batch, lambda: _wake(loop, future)):
            yield from future


def add_waiter(batch: ProducerBatch, callback: Callable[[], None]) -> bool:
    """Have `callback` called once when the batch is finished; False, and nothing kept, when it is already."""
    with WAITERS:
        if batch.outcome is not None:
            return False
        if batch.waiters is None:
            batch.waiters = []
        batch.waiters.append(callback)
    return True


def _wake(loop: asyncio.AbstractEventLoop, future: asyncio.Future[None]) -> None:
    try:
        loop.call_soon_threadsafe(_finish, future)
    except RuntimeError:
        # The loop that waited was closed meanwhile: nobody waits any more.
        return


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Delivery(Receipt, _Waiting):
    """The future of one record. `await` it, or call `result()` in a thread other than the producer's own."""

    __slots__ = ()

    _batch: ProducerBatch

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._batch.tp.topic

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self._batch.tp.partition

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record was written; waits for it up to `timeout` seconds. Raises why it was not."""
        self._wait(timeout)
        return self._ended()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Why the record was not written, or None when it was; waits like `result`."""
        self._wait(timeout)
        return self.outcome()[1]

    def add_done_callback(self, callback: Callable[[Delivery], object]) -> None:
        """Call `callback(delivery)` at the end, in the I/O thread; at once when that has come already."""
        self._watch(lambda: _call(callback, self))

    def __await__(self) -> Generator[Any, None, RecordMetadata]:
        if self._batch.outcome is None:
            yield from self._suspend()
        return self._ended()

    def outcome(self) -> tuple[RecordMetadata | None, KafkaError | None]:
        """(metadata, None) or (None, error), once it is done."""
        batch = self._batch
        assert batch.outcome is not None, "asked for the outcome of a delivery that is under way"
        offset, append_time, error = batch.outcome.of(self._index)
        if error is not None:
            return None, error
        timestamp, kind = (self._timestamp, CREATE_TIME) if append_time < 0 else (append_time, LOG_APPEND_TIME)
        topic, partition = batch.tp
        return RecordMetadata(topic, partition, offset, timestamp, kind, self._key_size, self._value_size), None

    def _ended(self) -> RecordMetadata:
        metadata, error = self.outcome()
        if metadata is None:
            assert error is not None
            raise error
        return metadata

    def __repr__(self) -> str:
        state = "under way" if not self.done() else str(self.outcome()[1] or "written")
        return f"<Delivery to {self._batch.tp}: {state}>"


class BatchDelivery(_Waiting):
    """The future of one batch of `send_many`: all its records are written, or the first error is raised."""

    __slots__ = ("_batch",)

    def __init__(self, batch: ProducerBatch) -> None:
        self._batch = batch

    @property
    def topic(self) -> str:
        """The topic's name."""
        return self._batch.tp.topic

    @property
    def partition(self) -> int:
        """The partition's number."""
        return self._batch.tp.partition

    @property
    def count(self) -> int:
        """Records in the batch."""
        return self._batch.count

    def result(self, timeout: float | None = None) -> BatchMetadata:
        """Where the batch was written; waits for it up to `timeout` seconds. Raises why it was not."""
        self._wait(timeout)
        return self._ended()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        """Why the batch was not written, or None when it was; waits like `result`."""
        self._wait(timeout)
        return self._error()

    def add_done_callback(self, callback: Callable[[BatchDelivery], object]) -> None:
        """Call `callback(delivery)` at the end, in the I/O thread; at once when that has come already."""
        self._watch(lambda: _call(callback, self))

    def __await__(self) -> Generator[Any, None, BatchMetadata]:
        if self._batch.outcome is None:
            yield from self._suspend()
        return self._ended()

    def _error(self) -> KafkaError | None:
        return first_error(self._batch)

    def _ended(self) -> BatchMetadata:
        error = self._error()
        if error is not None:
            raise error
        batch = self._batch
        assert batch.outcome is not None
        offset, append_time, _ = batch.outcome.of(0)
        topic, partition = batch.tp
        return BatchMetadata(topic, partition, offset, batch.count, append_time)

    def __repr__(self) -> str:
        state = "under way" if not self.done() else str(self._error() or "written")
        return f"<BatchDelivery of {self._batch.count} records to {self._batch.tp}: {state}>"


def first_error(batch: ProducerBatch) -> KafkaError | None:
    """The error of a finished batch, or of the first of its pieces that has one."""
    outcome = batch.outcome
    assert outcome is not None, "asked for the outcome of a batch that is under way"
    if outcome.pieces:
        return next((error for _, piece in outcome.pieces if (error := first_error(piece)) is not None), None)
    return outcome.error


def _call(callback: Callable[[Any], object], delivery: _Waiting) -> None:
    from penstock.client.producer.batch import run_callback

    run_callback(callback, delivery)
