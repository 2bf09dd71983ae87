"""`send_many`: many records at once, each batch made in one go by the kernel, one future per batch.

What the user gives becomes `Rows`: something that knows how many rows it has, which partition each belongs to, and how
to write a range of them into a batch. Rows with keys (or partitions of their own) are grouped by partition first, in
their order; rows without a key fill batch after batch, the partition changing between batches.

The batches are `send_many`'s own: they are closed behind their last row, larger than `batch.size`, and never shared
with `send`, so that one future can stand for a whole batch. They come behind whatever was sent to the partition before.
"""

from __future__ import annotations

import contextlib
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from penstock.client.producer.accumulator import PartitionQueue, TopicQueues
from penstock.client.producer.arrow import ArrowRows, is_arrow, record_batches
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import BatchDelivery, Delivery
from penstock.client.producer.memory import Ticket
from penstock.client.producer.preparing import Preparing, serialized
from penstock.client.producer.record import ProducerRecord, check_partition, check_timestamp, read_headers
from penstock.client.producer.waits import MemoryWait, Steps
from penstock.records.kernel import BatchWriter, group_rows, partition_keys
from penstock.records.record import Record

CHUNK_ROWS: Final = 20_000
"""Rows of an iterable that are looked at together: endless ones work, and batches are full."""


class Rows(Protocol):
    count: int

    def partitions(self, count: int) -> array[int] | None:
        """The partition of each row, -1 for one without a key; None when no row has one."""

    def fill(self, writer: BatchWriter, start: int, stop: int, order: Any) -> int:
        """Append rows `start` to `stop` (of `order`, if given) while they fit; how many that were."""


class HandedOver(list[BatchDelivery]):
    """The deliveries of one `send_many` so far; where it fails half-way, the error takes them to the caller."""

    def attach(self, error: BaseException) -> None:
        with contextlib.suppress(AttributeError, TypeError):  # an error of the user's own may have slots
            error.deliveries = self  # type: ignore[attr-defined]
        if self:
            count = sum(each.count for each in self)
            error.add_note(f"send_many() had handed over {count} records before: their deliveries are error.deliveries")

    def __reduce__(self) -> tuple[type[list[BatchDelivery]], tuple[()]]:
        # Errors travel between processes, futures do not.
        return list, ()


class ValueRows:
    """Bytes without headers, all with one timestamp."""

    def __init__(self, timestamp: int, keys: Sequence[bytes | None] | None, values: Sequence[bytes | None]) -> None:
        self.count = len(values)
        self._timestamp = timestamp
        self._keys = keys
        self._values = values

    def partitions(self, count: int) -> array[int] | None:
        return None if self._keys is None else partition_keys(self._keys, count)

    def fill(self, writer: BatchWriter, start: int, stop: int, order: Any) -> int:
        return writer.extend_values(self._timestamp, self._keys, self._values, start, stop, order)


class RecordRows:
    """Records with everything they may have."""

    def __init__(self, records: Sequence[Record], chosen: Sequence[int | None], by_key: bool) -> None:
        self.count = len(records)
        self._records = records
        self._chosen = chosen
        self._by_key = by_key

    def partitions(self, count: int) -> array[int] | None:
        keys = [record.key if self._by_key else None for record in self._records]
        hashed = partition_keys(keys, count)
        for row, chosen in enumerate(self._chosen):
            if chosen is not None:
                if not 0 <= chosen < count:
                    raise ValueError(f"row {row}: there is no partition {chosen}, the topic has {count}")
                hashed[row] = chosen
        return hashed

    def fill(self, writer: BatchWriter, start: int, stop: int, order: Any) -> int:
        rows = range(start, stop) if order is None else order[start:stop]
        return writer.extend([self._records[row] for row in rows], 0)


def chunks(records: Iterable[Any], size: int = CHUNK_ROWS) -> Iterator[list[Any]]:
    remaining = iter(records)
    while chunk := list(islice(remaining, size)):
        yield chunk


def all_rows(preparing: Preparing, topic: str, records: Any, partition: int | None = None) -> Iterable[Rows]:
    """What `send_many` was given, piece by piece, as rows."""
    if not isinstance(topic, str):
        raise TypeError(f"a topic's name must be text, not {topic!r}")
    check_partition(partition)
    if is_arrow(records):
        by_key = not preparing.settings.ignore_keys
        return (ArrowRows(batch, preparing.time_ms(), by_key=by_key) for batch in record_batches(records))
    check_iterable(records)
    return (rows_of(preparing, topic, chunk, partition) for chunk in chunks(records))


def check_iterable(records: object) -> None:
    """TypeError, with what to do, for what is no iterable of records, or would give something else than records."""
    kind = type(records).__name__
    if isinstance(records, (str, bytes, bytearray, memoryview, Mapping, ProducerRecord)):
        raise TypeError(f"send_many() takes many records, and {kind} is one: use send()")
    if hasattr(records, "columns"):
        raise TypeError(
            f"send_many() cannot read this {kind}: it does not offer itself as Arrow (__arrow_c_stream__). Make it a"
            " pyarrow.Table, or give its rows as (key, value) pairs"
        )
    if hasattr(records, "__aiter__"):
        raise TypeError(f"send_many() takes no asynchronous iterable ({kind}): collect its items in a list first")
    if not isinstance(records, Iterable) and not hasattr(records, "__getitem__"):
        raise TypeError(
            f"send_many() takes an iterable of values, (key, value) pairs or ProducerRecords, or an Arrow table, not"
            f" {kind}"
        )


def rows_of(preparing: Preparing, topic: str, items: list[Any], partition: int | None = None) -> Rows:
    """Items of a user's iterable as rows: plain bytes stay what they are, all else is made into records."""
    if preparing.has_default_serializers and not preparing.interceptors and preparing.partitioner is None:
        kinds = set(map(type, items))
        if kinds <= _PLAIN:
            return ValueRows(preparing.time_ms(), None, items)
        if kinds == {tuple}:
            pairs = _plain_pairs(items)
            if pairs is not None and not preparing.settings.ignore_keys:
                return ValueRows(preparing.time_ms(), *pairs)
    return _record_rows(preparing, topic, items, partition)


_PLAIN: Final = {bytes, type(None)}


def _plain_pairs(items: list[Any]) -> tuple[tuple[Any, ...], tuple[Any, ...]] | None:
    if set(map(len, items)) != {2}:
        return None
    keys, values = zip(*items, strict=True)
    return (keys, values) if set(map(type, keys)) <= _PLAIN and set(map(type, values)) <= _PLAIN else None


def _record_rows(preparing: Preparing, topic: str, items: list[Any], partition: int | None) -> Rows:
    now = preparing.time_ms()
    made: list[tuple[Record, int | None]] = []
    try:
        made.extend(_record(preparing, topic, item, now) for item in items)
    except Exception as error:
        # Those before it in the chunk are not sent either.
        for _, chosen in made:
            preparing.interceptors.on_refused(topic, chosen if partition is None else partition, error)
        raise
    return RecordRows(
        [record for record, _ in made], [chosen for _, chosen in made], not preparing.settings.ignore_keys
    )


def _record(preparing: Preparing, topic: str, item: Any, now: int) -> tuple[Record, int | None]:
    given = _as_producer_record(topic, item)
    if not preparing.interceptors:
        return _serialized(preparing, topic, given, now)
    given = preparing.interceptors.on_send(given)
    try:
        return _serialized(preparing, topic, given, now)
    except Exception as error:
        preparing.interceptors.on_refused(given.topic, given.partition, error)
        raise


def _serialized(preparing: Preparing, topic: str, given: ProducerRecord, now: int) -> tuple[Record, int | None]:
    if given.topic != topic:
        raise ValueError(f"send_many() to topic {topic!r} was given a record for {given.topic!r}: send it by itself")
    check_partition(given.partition)
    if given.timestamp_ms is not None:
        check_timestamp(given.timestamp_ms)
    headers: Any = list(read_headers(given.headers))
    key = serialized(preparing.key_serializer, "key", topic, given.key, headers)
    value = serialized(preparing.value_serializer, "value", topic, given.value, headers)
    timestamp = now if given.timestamp_ms is None else given.timestamp_ms
    chosen = given.partition
    if chosen is None and preparing.partitioner is not None:
        chosen = preparing.choose(given, key, value)
    return Record(timestamp, key, value, tuple(headers)), chosen


def _as_producer_record(topic: str, item: Any) -> ProducerRecord:
    if isinstance(item, ProducerRecord):
        return item
    if isinstance(item, tuple):
        if len(item) != 2:
            raise TypeError(f"send_many() takes values, (key, value) pairs or ProducerRecords, not {item!r}")
        return ProducerRecord(topic=topic, key=item[0], value=item[1])
    return ProducerRecord(topic=topic, value=item)


def sending_rows(
    preparing: Preparing,
    topic: str,
    rows: Rows,
    partition: int | None,
    deliveries: list[BatchDelivery] | None = None,
) -> Steps[list[BatchDelivery]]:
    """Write all rows into batches. Their deliveries come behind those given, also when it fails half-way."""
    deliveries = [] if deliveries is None else deliveries
    left = [(partition, rows.count)]
    try:
        if preparing.transactions is not None:
            preparing.transactions.check_can_append()
        queues = yield from preparing.knowing(topic, partition)
        runs = list(_plan(queues, rows, partition))
        left = [(chosen, stop - start) for chosen, start, stop, _ in runs]
        for number, (chosen, start, stop, order) in enumerate(runs):
            while start < stop:
                target = queues.choose() if chosen is None else chosen
                batch, taken = yield from _fill_batch(preparing, queues.queues[target], rows, start, stop, order)
                start += taken
                left[number] = (chosen, stop - start)
                deliveries.append(BatchDelivery(batch))
    except Exception as error:
        _refuse(preparing, topic, rows, left, error)
        raise
    return deliveries


def _refuse(preparing: Preparing, topic: str, rows: Rows, left: list[tuple[int | None, int]], error: Exception) -> None:
    """Tell interceptors of rows that they have seen and that are in no batch: (partition, how many)."""
    if preparing.interceptors and isinstance(rows, RecordRows):
        for partition, count in left:
            for _ in range(count):
                preparing.interceptors.on_refused(topic, partition, error)


def _plan(queues: TopicQueues, rows: Rows, partition: int | None) -> Iterator[tuple[int | None, int, int, Any]]:
    """(partition or None, start, stop, order) of each run of rows."""
    hashed = None if partition is not None else rows.partitions(queues.count)
    if hashed is None:
        yield partition, 0, rows.count, None
        return
    order, bounds = group_rows(hashed, queues.count)
    for index in range(queues.count):
        if bounds[index] < bounds[index + 1]:
            yield index, bounds[index], bounds[index + 1], order
    if bounds[queues.count] < bounds[queues.count + 1]:
        yield None, bounds[queues.count], bounds[queues.count + 1], order


def _fill_batch(
    preparing: Preparing, queue: PartitionQueue, rows: Rows, start: int, stop: int, order: Any
) -> Steps[tuple[ProducerBatch, int]]:
    size_max = preparing.settings.bulk_batch_size
    grant: Ticket | None = None
    while True:
        try:
            filled = _try_fill(preparing, queue, rows, (start, stop, order), grant)
        finally:
            if grant is not None:
                preparing.accumulator.memory.give_up(grant)
        if filled is not None:
            return filled
        grant = yield MemoryWait(size_max)


def _try_fill(
    preparing: Preparing, queue: PartitionQueue, rows: Rows, span: tuple[int, int, Any], grant: Ticket | None
) -> tuple[ProducerBatch, int] | None:
    accumulator = preparing.accumulator
    size_max = preparing.settings.bulk_batch_size
    with queue.lock:
        queue.close_open()
        batch = accumulator.begin(queue, size_max, size_max, grant)
        if batch is None:
            accumulator.wake()
            return None
        try:
            assert batch.writer is not None
            taken = rows.fill(batch.writer, *span)
            preparing.check_size(queue.tp.topic, batch.writer.size)
        except BaseException:
            accumulator.drop(batch)
            raise
        accumulator.publish_closed(queue, batch)
        if preparing.interceptors and isinstance(rows, RecordRows):
            acknowledge = preparing.interceptors.acknowledging(queue.tp)
            for index in range(taken):
                delivery = Delivery(batch, index, batch.base_timestamp, -1, -1)
                batch.add_callback(delivery, acknowledge)
        preparing.joined(queue.tp)
    return batch, taken
