"""The queue between the feeder on the loop and whoever takes records from one stream, in any thread.

Taking the next record says that the one before it is finished; only finished records are counted for a commit. A record
of a partition that is revoked meanwhile no longer counts: another consumer reads it again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable

from penstock.base.types import TopicPartition
from penstock.records.record import ConsumerRecord


class StreamBuffer:
    """Thread safe. `on_low` is called by the taker when a full buffer is half empty again."""

    def __init__(self, size_max: int, on_low: Callable[[], None]) -> None:
        self.size_max = size_max
        self.is_full = False
        """Set by the feeder, who has paused; cleared when `on_low` is called."""
        self._on_low = on_low
        self._items: deque[ConsumerRecord] = deque()
        self._current: ConsumerRecord | None = None
        self._finished: dict[TopicPartition, int] = {}
        self._changed = threading.Condition()
        self._wake_task: Callable[[], None] | None = None
        self._is_closed = False
        self._error: BaseException | None = None

    def __len__(self) -> int:
        return len(self._items)

    @property
    def room(self) -> int:
        return max(0, self.size_max - len(self._items))

    @property
    def room_when_low(self) -> int:
        """The least room that a full buffer has when it is filled again."""
        return self.size_max - self.size_max // 2

    # The feeder's side.

    def put(self, records: Iterable[ConsumerRecord]) -> None:
        with self._changed:
            self._items.extend(records)
            self._wake()

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """These are no longer ours: neither what waits nor what was finished counts."""
        with self._changed:
            self._items = deque(each for each in self._items if _partition(each) not in partitions)
            if self._current is not None and _partition(self._current) in partitions:
                self._current = None
            for partition in partitions:
                self._finished.pop(partition, None)

    def finished(self, *, with_current: bool = False) -> dict[TopicPartition, int]:
        """Partition to the offset behind the last finished record; `with_current` counts the one that is out too."""
        with self._changed:
            if with_current:
                self._finish_current()
            return dict(self._finished)

    def close(self, error: BaseException | None = None) -> None:
        """Nothing more comes: takers get `error`, or the end."""
        with self._changed:
            if self._is_closed:
                return
            self._is_closed = True
            self._error = error
            self._items.clear()
            self._wake()

    # The taker's side.

    def take(self) -> ConsumerRecord | None:
        """The next record, if one is there; EOFError at the end, or the error that ended it."""
        with self._changed:
            self._finish_current()
            self._check_open()
            if not self._items:
                return None
            record = self._current = self._items.popleft()
            is_low = self.is_full and len(self._items) <= self.size_max // 2
            if is_low:
                self.is_full = False
        if is_low:
            self._on_low()
        return record

    def wait(self, timeout_s: float | None) -> bool:
        """In a thread: until something changed; False when the time is over."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._items) or self._is_closed, timeout_s)

    def wake_with(self, wake: Callable[[], None] | None) -> None:
        """On the loop: what to call when something changed."""
        with self._changed:
            self._wake_task = wake

    def _wake(self) -> None:
        self._changed.notify_all()
        if self._wake_task is not None:
            self._wake_task()

    def _finish_current(self) -> None:
        record = self._current
        if record is not None:
            self._current = None
            self._finished[_partition(record)] = record.offset + 1

    def _check_open(self) -> None:
        if not self._is_closed:
            return
        if self._error is not None:
            raise self._error
        raise EOFError


def _partition(record: ConsumerRecord) -> TopicPartition:
    return TopicPartition(record.topic, record.partition)
