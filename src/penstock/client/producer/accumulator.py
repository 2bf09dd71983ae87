"""Records waiting to be sent: per partition a queue of batches, of which only the last may be open.

Threads and locks. Any thread may append; only the I/O thread takes batches out, gives them back and finishes them.

- `PartitionQueue.lock` guards `batches`, `open` and every append to the open batch. It is held for one append, or for
  one step of the I/O thread; never while anything is awaited, called back or compressed.
- A batch is begun and filled out of sight, under the lock of its queue, and published with its first record in it.
- The memory pool has its own lock, taken behind a queue's lock, never in front of one.
- `TopicQueues.queues` is replaced, never changed; readers take it without a lock. `_active` and `_incomplete` are
  changed by single steps of dict, which the interpreter makes atomic; the I/O thread copies them before it walks.
- What only the I/O thread touches (attempts, sequences, retry times) has no lock.

Waking the I/O thread costs more than twenty appends, so it is done when a batch is begun in an empty queue (somebody
must watch its linger) and when one is full, and not again while a wake-up is under way: `woken` is set here before the
wake-up and cleared by the I/O thread before it looks at the queues. A batch put in before `woken` was read is therefore
seen by the look that follows.

Invariants: the batches of a queue are in the order of their sequences, those without a sequence behind those with one;
`open` is None or the last of `batches`; a batch is in exactly one of: its queue, a request, finished; memory that was
taken for a batch is given back when it is finished.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from penstock.base.ports import Clock
from penstock.base.types import TopicPartition
from penstock.client.errors import ClientClosed
from penstock.client.producer.batch import ProducerBatch, nobody
from penstock.client.producer.delivery import Outcome
from penstock.client.producer.memory import MemoryPool, Ticket
from penstock.client.producer.partitioner import Keyless
from penstock.records.record import Header

RECORD_OVERHEAD: Final = 61 + 36
"""Header of a batch and the widest fields of a record: what a record may need beside key, value and headers."""


class PartitionQueue:
    __slots__ = ("batches", "lock", "open", "topic", "tp")

    def __init__(self, topic: TopicQueues, tp: TopicPartition) -> None:
        self.topic = topic
        self.tp = tp
        self.lock = threading.Lock()
        self.batches: deque[ProducerBatch] = deque()
        self.open: ProducerBatch | None = None

    def close_open(self) -> None:
        """Under the lock. The batch that was open is only waiting to be taken from now on."""
        batch = self.open
        if batch is not None:
            self.open = None
            batch.close()
            self.topic.keyless.batch_closed(self.tp.partition, batch.size)


class TopicQueues:
    """One topic as the callers see it."""

    __slots__ = ("available", "count", "keyless", "name", "queues")

    def __init__(self, name: str, keyless: Keyless) -> None:
        self.name = name
        self.keyless = keyless
        self.queues: tuple[PartitionQueue, ...] = ()
        self.count = 0
        """Partitions; 0 when the topic is not known (any more), and must be looked up before a record is taken."""
        self.available: tuple[int, ...] = ()

    def update(self, count: int, available: Sequence[int]) -> None:
        """What the metadata say now. In the I/O thread; queues stay, even of partitions that are gone."""
        if count > len(self.queues):
            missing = range(len(self.queues), count)
            self.queues += tuple(PartitionQueue(self, TopicPartition(self.name, index)) for index in missing)
        if self.available != tuple(available) or count != self.count:
            self.available = tuple(available)
            self.keyless.current = -1
        self.count = count

    def choose(self) -> int:
        """The partition of the next record without a key."""
        current = self.keyless.current
        if current >= 0:
            return current
        candidates = self.available or range(self.count)
        queues = self.queues
        return self.keyless.next(candidates, [len(queues[index].batches) for index in candidates])


class Accumulator:
    def __init__(
        self,
        *,
        clock: Clock,
        memory: MemoryPool,
        delivery_timeout_ms: float,
        wake: Callable[[], None],
        make_keyless: Callable[[], Keyless],
        io_thread: Callable[[], int] = nobody,
    ) -> None:
        self.memory = memory
        self.topics: dict[str, TopicQueues] = {}
        self.flushing = 0
        """How many wait in `flush`: while there are any, no batch lingers."""
        self.closed = False
        """Set before the last batches are taken out: none can be begun behind them."""
        self.woken = False
        self._clock = clock
        self._delivery_timeout_s = delivery_timeout_ms / 1000
        self._wake = wake
        self._make_keyless = make_keyless
        self._io_thread = io_thread
        self._active: dict[PartitionQueue, None] = {}
        self._incomplete: dict[ProducerBatch, None] = {}

    # In any thread.

    def topic(self, name: str) -> TopicQueues:
        found = self.topics.get(name)
        return found if found is not None else self.topics.setdefault(name, TopicQueues(name, self._make_keyless()))

    def begin(
        self, queue: PartitionQueue, size_max: int, needed_bytes: int, grant: Ticket | None
    ) -> ProducerBatch | None:
        """A new batch, which nobody else sees before `publish`; None when there is no memory for it.

        Under the queue's lock, with no batch open. `grant` is memory that was waited for; it is used first.
        """
        self._check_open()
        if grant is not None and grant.granted and not grant.used and grant.size >= needed_bytes:
            grant.used = True
            needed_bytes = grant.size
        elif not self.memory.try_take(needed_bytes):
            return None
        now = self._clock.monotonic()
        return ProducerBatch(
            queue.tp,
            size_max=size_max,
            now=now,
            deadline=now + self._delivery_timeout_s,
            reserved_bytes=needed_bytes,
            io_thread=self._io_thread,
        )

    def publish(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Open a batch to everybody. Under the same hold of the lock in which it was begun.

        It holds a record by now: an append that fails must leave nothing behind, and an empty batch would take a first
        record of any size without waking anybody.
        """
        self._put(queue, batch)
        queue.open = batch

    def publish_closed(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        """Put a batch that takes no more records in its place, likewise. Spare memory is given back."""
        batch.close()
        self._put(queue, batch)
        queue.topic.keyless.batch_closed(queue.tp.partition, batch.size)
        spare = batch.reserved_bytes - batch.size
        if spare > 0:
            batch.reserved_bytes -= spare
            self.memory.give(spare)
        self.wake()

    def drop(self, batch: ProducerBatch) -> None:
        """Undo `begin`, in place of `publish`."""
        self.memory.give(batch.reserved_bytes)

    def _put(self, queue: PartitionQueue, batch: ProducerBatch) -> None:
        self._check_open()
        queue.batches.append(batch)
        self._incomplete[batch] = None
        self._active[queue] = None

    def _check_open(self) -> None:
        if self.closed:
            raise ClientClosed("the producer was closed: make a new one")

    def wake(self) -> None:
        if not self.woken:
            self.woken = True
            self._wake()

    # In the I/O thread.

    @property
    def incomplete(self) -> list[ProducerBatch]:
        """Every batch that is not finished."""
        return list(self._incomplete)

    @property
    def has_batches(self) -> bool:
        """Whether any batch waits to be taken."""
        return any(queue.batches for queue in list(self._active))

    def queues(self) -> list[PartitionQueue]:
        """Queues that hold something, oldest first; empty ones drop out."""
        active = list(self._active)
        for queue in active:
            if not queue.batches:
                with queue.lock:
                    if not queue.batches:
                        self._active.pop(queue, None)
        return active

    def is_full(self, queue: PartitionQueue) -> bool:
        """Whether the first batch is closed: waiting longer would not make it larger."""
        return queue.open is None or len(queue.batches) > 1

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """The first batch, closed. It is the caller's until it is given back or finished."""
        with queue.lock:
            batch = queue.batches.popleft()
            if batch is queue.open:
                queue.close_open()
        return batch

    def give_back(self, batches: Iterable[ProducerBatch]) -> None:
        """Batches to be sent again go in front, in the order of their sequences (without sequences: as they come)."""
        for batch in batches:
            queue = self.queue_of(batch)
            with queue.lock:
                _insert_in_order(queue.batches, batch)
                self._active[queue] = None

    def split(self, batch: ProducerBatch, pieces: Sequence[ProducerBatch]) -> None:
        """Put the pieces of a batch where it was, in front of its queue. Its memory is theirs, by their sizes."""
        total = sum(piece.size for piece in pieces)
        reserved_bytes, batch.reserved_bytes = batch.reserved_bytes, 0
        for piece in pieces:
            piece.reserved_bytes = reserved_bytes * piece.size // total
            self._incomplete[piece] = None
        self.memory.give(reserved_bytes - sum(piece.reserved_bytes for piece in pieces))
        self._incomplete.pop(batch, None)
        queue = self.queue_of(batch)
        with queue.lock:
            for piece in reversed(pieces):
                _insert_in_order(queue.batches, piece)
            self._active[queue] = None

    def queue_of(self, batch: ProducerBatch) -> PartitionQueue:
        return self.topics[batch.tp.topic].queues[batch.tp.partition]

    def rotate(self, queue: PartitionQueue) -> None:
        """The others come first next time."""
        if self._active.pop(queue, _ABSENT) is not _ABSENT:
            self._active[queue] = None

    def finish(self, batch: ProducerBatch, outcome: Outcome) -> None:
        """The end of a batch: its memory is free, then callbacks run and those who wait are woken."""
        if self._incomplete.pop(batch, _ABSENT) is _ABSENT:
            return
        reserved_bytes, batch.reserved_bytes = batch.reserved_bytes, 0
        if reserved_bytes:
            self.memory.give(reserved_bytes)
        batch.finish(outcome)

    def remove(self, wanted: Callable[[ProducerBatch], bool]) -> list[ProducerBatch]:
        """Take every waiting batch that is `wanted` out of its queue, closed."""
        taken: list[ProducerBatch] = []
        for queue in list(self._active):
            with queue.lock:
                taken += _removed(queue, wanted)
        return taken

    def expired(self, now: float) -> list[ProducerBatch]:
        """Waiting batches whose time is over."""
        return self.remove(lambda batch: batch.deadline <= now) if self._has_expired(now) else []

    def _has_expired(self, now: float) -> bool:
        return any(batch.deadline <= now for batch in self._heads())

    def next_deadline(self, *, default: float) -> float:
        return min((batch.deadline for batch in self._heads()), default=default)

    def _heads(self) -> Iterator[ProducerBatch]:
        for queue in list(self._active):
            with queue.lock:
                head = queue.batches[0] if queue.batches else None
            if head is not None:
                yield head


_ABSENT: Final = object()


def record_bytes(key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
    """At most so many bytes are needed for a batch of this one record."""
    size = RECORD_OVERHEAD + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
    for name, data in headers:
        size += 10 + 4 * len(name) + (len(data) if data is not None else 0)
    return size


def _insert_in_order(batches: deque[ProducerBatch], batch: ProducerBatch) -> None:
    """In front of everything, but behind batches of the same epoch with an earlier sequence."""
    place = 0
    if batch.has_sequence:
        while place < len(batches) and batches[place].has_sequence and _is_before(batches[place], batch):
            place += 1
    batches.insert(place, batch)


def _is_before(one: ProducerBatch, other: ProducerBatch) -> bool:
    distance = (other.base_sequence - one.base_sequence) % (1 << 31)
    return 0 < distance < 1 << 30


def _removed(queue: PartitionQueue, wanted: Callable[[ProducerBatch], bool]) -> list[ProducerBatch]:
    taken = [batch for batch in queue.batches if wanted(batch)]
    for batch in taken:
        if batch is queue.open:
            queue.close_open()
        queue.batches.remove(batch)
    return taken
