"""The short way of a producer's record into an open batch, in plain Python: the reference for `_sending.pyx`.

It is taken when nothing stands in the way: bytes, a topic that is known, a batch with room. Whatever else there may be
to do (serializers, waiting, another batch), it gives None before anything has changed, and the producer goes the whole
way. What it needs of the producer's own objects is the few attributes named here:

    topics[name].count, .keyless.current, .queues[partition].lock, .open, .open.writer, .open.add_callback
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from penstock.records.pure_partitioning import partition_for_key


class Receipt:
    """Which record of which batch; what is said of it is up to subclasses."""

    __slots__ = ("_batch", "_index", "_key_size", "_timestamp", "_value_size")

    def __init__(self, batch: Any, index: int, timestamp: int, key_size: int, value_size: int) -> None:
        self._batch = batch
        self._index = index
        self._timestamp = timestamp
        self._key_size = key_size
        self._value_size = value_size


class ShortWay:
    __slots__ = ("_ignore_keys", "_read_headers", "_receipt_type", "_time_ns", "_topics", "is_open")

    def __init__(
        self,
        topics: Mapping[str, Any],
        receipt_type: type[Receipt],
        *,
        time_ns: Callable[[], int],
        read_headers: Callable[[Any], Any],
        ignore_keys: bool = False,
    ) -> None:
        self.is_open = True
        self._topics = topics
        self._receipt_type = receipt_type
        self._time_ns = time_ns
        self._read_headers = read_headers
        self._ignore_keys = ignore_keys

    def send(
        self,
        topic: Any,
        value: Any,
        key: Any,
        partition: int | None,
        timestamp_ms: int | None,
        headers: Any,
        on_delivery: Any,
    ) -> Any:
        """The receipt of a record that is in a batch now, or None."""
        queues = self._topics.get(topic) if self.is_open and type(topic) is str else None
        if queues is None or not _is_plain(key) or not _is_plain(value):
            return None
        if partition is None:
            partition = self._choose(queues, key)
        if type(partition) is not int or not 0 <= partition < queues.count:
            return None
        # Before the lock: a user's headers may run a user's code.
        record_headers = () if headers is None else self._read_headers(headers)
        timestamp = self._time_ns() // 1_000_000 if timestamp_ms is None else timestamp_ms
        queue = queues.queues[partition]
        with queue.lock:
            batch = queue.open
            writer = None if batch is None else batch.writer
            index = -1 if writer is None else writer.append(timestamp, key, value, record_headers)
            if index < 0:
                return None
            receipt = self._receipt_type(batch, index, timestamp, _size(key), _size(value))
            if on_delivery is not None:
                batch.add_callback(receipt, on_delivery)
        return receipt

    def _choose(self, queues: Any, key: bytes | None) -> Any:
        """Minus one when that takes more than a look."""
        if key is None or self._ignore_keys:
            return queues.keyless.current
        return partition_for_key(key, queues.count) if queues.count else -1


def _is_plain(data: Any) -> bool:
    return data is None or type(data) is bytes


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)
