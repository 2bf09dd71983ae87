"""The caller's side of `send`: from a user's record to a record in a batch, in the thread that called.

Two ways lead there. `try_send` is the short one: no interceptor, no serializer, no own partitioner, no transaction, the
topic known, memory free; the kernel has it (`ShortWay`), it costs little more than the append itself, and gives None
when anything is in the way, before it has changed anything. `sending` does everything: interceptors, serializers,
partitioner, waiting (see `waits`).

Order: records that one thread sends to one partition stay in the order of the calls.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from penstock.base.ports import Clock
from penstock.base.system import SystemClock
from penstock.base.types import TopicPartition
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import ClientError, RecordTooLarge, SerializationError
from penstock.client.producer.accumulator import Accumulator, TopicQueues, record_bytes
from penstock.client.producer.batch import OnDelivery, ProducerBatch
from penstock.client.producer.delivery import Delivery
from penstock.client.producer.interceptors import Interceptors
from penstock.client.producer.memory import Ticket
from penstock.client.producer.partitioner import partition_for_key
from penstock.client.producer.record import (
    ProducerRecord,
    check_callback,
    check_partition,
    check_timestamp,
    read_headers,
)
from penstock.client.producer.settings import ProducerSettings
from penstock.client.producer.waits import MemoryWait, Steps, TopicWait
from penstock.records.kernel import ShortWay
from penstock.records.record import Header
from penstock.serde.interface import Serialize
from penstock.serde.resolving import default_serialize

Partition = Callable[..., int]


class Preparing:
    def __init__(
        self,
        *,
        accumulator: Accumulator,
        settings: ProducerSettings,
        clock: Clock,
        snapshot: Callable[[], ClusterSnapshot],
        interceptors: Interceptors,
        key_serializer: Serialize,
        value_serializer: Serialize,
        partitioner: Partition | None,
        transactions: Any = None,
    ) -> None:
        self.accumulator = accumulator
        self.settings = settings
        self.time_ms = clock.time_ms
        self.interceptors = interceptors
        self.transactions = transactions
        self.key_serializer = key_serializer
        self.value_serializer = value_serializer
        self.partitioner = partitioner
        self.has_default_serializers = key_serializer is default_serialize and value_serializer is default_serialize
        self._snapshot = snapshot
        self._ignore_keys = settings.ignore_keys
        self._batch_size = settings.batch_size
        self.short_way = ShortWay(
            accumulator.topics, Delivery, time_ns=_time_ns(clock), read_headers=read_headers,
            ignore_keys=settings.ignore_keys,
        )  # fmt: skip
        """Open for plain records only, and not behind `close`."""
        self.short_way.is_open = (
            not interceptors and self.has_default_serializers and partitioner is None and transactions is None
        )
        self.try_send: Callable[..., Delivery | None] = self.short_way.send

    # The whole way.

    def sending(self, record: ProducerRecord, on_delivery: OnDelivery | None = None) -> Steps[Delivery]:
        record = self.interceptors.on_send(record) if self.interceptors else record
        try:
            return (yield from self._sending(record, on_delivery))
        except Exception as error:
            if self.interceptors:
                self.interceptors.on_refused(record.topic, record.partition, error)
            raise

    def _sending(self, record: ProducerRecord, on_delivery: OnDelivery | None) -> Steps[Delivery]:
        topic = record.topic
        if not isinstance(topic, str):
            raise TypeError(f"a topic's name must be text, not {topic!r}")
        if self.transactions is not None:
            self.transactions.check_can_append()
        check_partition(record.partition)
        if record.timestamp_ms is not None:
            check_timestamp(record.timestamp_ms)
        if on_delivery is not None:
            check_callback(on_delivery)
        headers: Any = list(read_headers(record.headers))
        queues = yield from self.knowing(topic, record.partition)
        key = serialized(self.key_serializer, "key", topic, record.key, headers)
        value = serialized(self.value_serializer, "value", topic, record.value, headers)
        self.check_size(topic, record_bytes(key, value, headers))
        partition = self._partition(record, key, value)
        if partition is not None and partition >= queues.count:
            queues = yield from self.knowing(topic, partition)
        timestamp = self.time_ms() if record.timestamp_ms is None else record.timestamp_ms
        grant: Ticket | None = None
        while True:
            try:
                delivery = self._append(queues, partition, timestamp, key, value, tuple(headers), on_delivery, grant)
            finally:
                if grant is not None:
                    self.accumulator.memory.give_up(grant)
            if delivery is not None:
                return delivery
            grant = yield MemoryWait(self._needed(key, value, headers))

    def knowing(self, topic: str, partition: int | None) -> Steps[TopicQueues]:
        """The queues of a topic, waited for until it is known with the partition."""
        queues = self.accumulator.topic(topic)
        if not queues.count or (partition is not None and partition >= queues.count):
            yield TopicWait(topic, partition)
        return queues

    def check_size(self, topic: str, size: int) -> None:
        limit = self.settings.max_request_size
        if size > limit:
            raise RecordTooLarge(
                f"a record of {size} bytes for topic {topic!r} is larger than max.request.size={limit}:"
                " raise it, or make the record smaller"
            )
        if size > self.settings.buffer_memory:
            raise RecordTooLarge(
                f"a record of {size} bytes for topic {topic!r} is larger than"
                f" buffer.memory={self.settings.buffer_memory}: raise it, or make the record smaller"
            )

    def _needed(self, key: bytes | None, value: bytes | None, headers: Sequence[Header]) -> int:
        return max(self._batch_size, record_bytes(key, value, headers))

    def _partition(self, record: ProducerRecord, key: bytes | None, value: bytes | None) -> int | None:
        """None leaves the choice to the moment of the append."""
        if record.partition is not None:
            return record.partition
        if self.partitioner is not None:
            return self.choose(record, key, value)
        if key is not None and not self._ignore_keys:
            return partition_for_key(key, self.accumulator.topic(record.topic).count)
        return None

    def choose(self, record: ProducerRecord, key: bytes | None, value: bytes | None) -> int:
        """What the user's partitioner says."""
        assert self.partitioner is not None
        try:
            chosen = self.partitioner(record.topic, record.key, key, record.value, value, self._snapshot())
        except Exception as error:
            raise ClientError(
                f"the partitioner failed for a record of topic {record.topic!r}: {type(error).__name__}: {error}"
            ) from error
        if not isinstance(chosen, int) or chosen < 0:
            raise ValueError(
                f"what the partitioner returned for topic {record.topic!r} must be a number from 0 on, not {chosen!r}"
            )
        return chosen

    def _append(
        self,
        queues: TopicQueues,
        partition: int | None,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        on_delivery: OnDelivery | None,
        grant: Ticket | None,
    ) -> Delivery | None:
        """The record in a batch, a new one if need be; None without memory for that."""
        accumulator = self.accumulator
        while True:
            chosen = queues.choose() if partition is None else partition
            queue = queues.queues[chosen]
            with queue.lock:
                batch = queue.open
                index = -1
                if batch is not None:
                    assert batch.writer is not None
                    index = batch.writer.append(timestamp, key, value, headers)
                if index < 0:
                    was_full = batch is not None
                    queue.close_open()
                    if was_full:
                        accumulator.wake()
                        if partition is None and queues.keyless.current != chosen:
                            continue  # enough for this partition: the record begins a batch elsewhere
                    batch = accumulator.begin(queue, self._batch_size, self._needed(key, value, headers), grant)
                    if batch is None:
                        return None
                    assert batch.writer is not None
                    try:
                        index = batch.writer.append(timestamp, key, value, headers)
                    except BaseException:
                        accumulator.drop(batch)
                        raise
                    accumulator.publish(queue, batch)
                    if batch.writer.size >= self._batch_size:
                        queue.close_open()
                    accumulator.wake()
                assert batch is not None
                return self._appended(batch, index, timestamp, key, value, on_delivery)

    def _appended(
        self,
        batch: ProducerBatch,
        index: int,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        on_delivery: OnDelivery | None,
    ) -> Delivery:
        """Under the queue's lock: nothing of the batch can be sent before its partition has joined the transaction."""
        delivery = Delivery(
            batch, index, timestamp, -1 if key is None else len(key), -1 if value is None else len(value)
        )
        if self.interceptors:
            batch.add_callback(delivery, self.interceptors.acknowledging(batch.tp))
        if on_delivery is not None:
            batch.add_callback(delivery, on_delivery)
        self.joined(batch.tp)
        return delivery

    def joined(self, tp: TopicPartition) -> None:
        if self.transactions is not None:
            self.transactions.partition_appended(tp)


def _time_ns(clock: Clock) -> Callable[[], int]:
    """The function behind the system's clock, where it is that one: asked for every record, it must be quick."""
    return time.time_ns if isinstance(clock, SystemClock) else lambda: clock.time_ms() * 1_000_000


def serialized(serialize: Serialize, part: str, topic: str, value: Any, headers: Any) -> bytes | None:
    """Bytes; an error tells which part of which topic's record has none."""
    data: Any
    try:
        data = serialize(topic, value, headers)
    except SerializationError as error:
        if type(error) is not SerializationError:
            raise  # a user's own
        told = SerializationError(f"the {part} of a record for topic {topic}: {error.message}", code=error.code)
        told.topic = topic
        raise told from error.__cause__
    if data is None or isinstance(data, bytes):
        return data
    if isinstance(data, (bytearray, memoryview)):
        return bytes(data)
    refused = SerializationError(
        f"the {part} of a record for topic {topic}: {_name_of(serialize)} returned {type(data).__name__} where bytes"
        " are wanted: have it encode what it returns, such as `json.dumps(value).encode()`"
    )
    refused.topic = topic
    raise refused


def _name_of(serialize: Serialize) -> str:
    given = getattr(serialize, "serde", serialize)
    return f"the serializer {getattr(given, '__qualname__', type(given).__qualname__)}"
