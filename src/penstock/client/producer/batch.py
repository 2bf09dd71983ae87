"""One batch from its first record to its end.

A batch is *open* while callers append to it, then *closed* (its writer has given its bytes away), then *in flight* as
often as it must be, then *finished*. Appending and closing happen under the lock of its partition's queue; everything
after closing belongs to the I/O thread alone, `outcome` and `waiters` excepted (see `delivery`).

A batch that a broker finds too large is split: the pieces are batches of their own, and the one that was split is
finished when all of them are. Deliveries keep looking at the batch they were made for, and find their piece through it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.producer.delivery import WAITERS, Delivery, Outcome
from penstock.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from penstock.records.kernel import BatchWriter

log = logging.getLogger(__name__)

OnDelivery = Callable[[Any, Any], object]
"""`(metadata | None, error | None)`"""


def nobody() -> int:
    """The I/O thread of a batch that has none: waiting for it is allowed anywhere."""
    return 0


class ProducerBatch:
    __slots__ = (
        "attempts",
        "base_sequence",
        "base_timestamp",
        "callbacks",
        "count",
        "created_at",
        "deadline",
        "io_thread",
        "last_error",
        "max_timestamp",
        "on_wire",
        "outcome",
        "parent",
        "pieces",
        "plain",
        "producer_epoch",
        "producer_id",
        "reserved_bytes",
        "retry_at",
        "sealed",
        "sealed_as",
        "sent_epoch",
        "sequence_was_reset",
        "size",
        "tp",
        "waiters",
        "writer",
    )  # fmt: skip

    def __init__(
        self,
        tp: TopicPartition,
        *,
        size_max: int,
        now: float,
        deadline: float,
        reserved_bytes: int = 0,
        io_thread: Callable[[], int] = nobody,
    ) -> None:
        self.tp = tp
        self.writer: BatchWriter | None = BatchWriter(size_max)
        self.created_at = now
        self.deadline = deadline
        """Monotonic time at which it fails unless it was written before."""
        self.reserved_bytes = reserved_bytes
        """Of the producer's memory; given back once, at the end."""
        self.io_thread = io_thread
        self.callbacks: list[tuple[Delivery, OnDelivery]] | None = None
        self.outcome: Outcome | None = None
        self.waiters: list[Callable[[], None]] | None = None
        self.plain: bytearray | None = None
        self.sealed: bytearray | None = None
        """As it goes over the wire; kept for retries."""
        self.sealed_as = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
        self.count = 0
        self.size = 0
        self.base_timestamp = -1
        self.max_timestamp = -1
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.sequence_was_reset = False
        """It has another sequence than the one it was first sent with."""
        self.on_wire = False
        """Sent, and neither answered nor given up by the connection."""
        self.attempts = 0
        self.retry_at = 0.0
        self.last_error: KafkaError | None = None
        self.sent_epoch = -1
        """Leader epoch of the last attempt: behind a failure, a newer leader is tried without waiting."""
        self.parent: ProducerBatch | None = None
        self.pieces: list[tuple[int, ProducerBatch]] = []

    @property
    def record_count(self) -> int:
        """Records in it so far. In any thread."""
        writer = self.writer
        return self.count if writer is None else writer.count

    @property
    def has_sequence(self) -> bool:
        return self.base_sequence != NO_SEQUENCE

    @property
    def last_sequence(self) -> int:
        return add_sequence(self.base_sequence, self.count - 1)

    def close(self) -> None:
        """No more records. Under the queue's lock; a second call does nothing."""
        writer = self.writer
        if writer is None:
            return
        # First: appends on the short way have no lock, and none can come in behind this.
        self.plain = writer.take()
        self.count = writer.count
        self.size = writer.size
        self.base_timestamp = writer.base_timestamp
        self.max_timestamp = writer.max_timestamp
        self.writer = None

    def add_callback(self, delivery: Delivery, callback: OnDelivery) -> None:
        """Under the queue's lock, right behind the append."""
        if self.callbacks is None:
            self.callbacks = []
        self.callbacks.append((delivery, callback))

    def finish(self, outcome: Outcome) -> bool:
        """The end, in the I/O thread; False when it has ended before (a late answer to a batch that expired)."""
        if self.outcome is not None:
            return False
        self.outcome = outcome
        self.plain = self.sealed = None
        for delivery, callback in self.callbacks or ():
            metadata, error = delivery.outcome()
            run_callback(callback, metadata, error)
        self.callbacks = None
        self._wake()
        if self.parent is not None:
            self.parent.piece_finished()
        return True

    def piece_finished(self) -> None:
        if all(piece.outcome is not None for _, piece in self.pieces):
            self.finish(Outcome(pieces=tuple(self.pieces)))

    def _wake(self) -> None:
        with WAITERS:
            waiters, self.waiters = self.waiters, None
        for waiter in waiters or ():
            waiter()

    def __repr__(self) -> str:
        return f"<ProducerBatch {self.tp} count={self.count} sequence={self.base_sequence} attempts={self.attempts}>"


SEQUENCE_MODULUS: Final = 1 << 31


def add_sequence(sequence: int, step: int) -> int:
    """Sequences are 31 bits wide and begin again at 0."""
    return (sequence + step) % SEQUENCE_MODULUS


def run_callback(callback: Callable[..., object], *arguments: object) -> None:
    """A user's callback in the I/O thread: one that raises is logged, and nothing else happens."""
    try:
        callback(*arguments)
    except Exception:
        log.exception("a delivery callback failed: %r; the record's fate is not changed by it", callback)
