"""The asyncio producer: puts the parts together and waits in asyncio's way.

Everything a caller does between `send` and an appended record is in `preparing` and `bulk`, everything behind it in
`sender`. This class starts and ends them, drives the former's waits, and hands transactions to their manager.
"""

# ruff: noqa: ASYNC109 - both faces have the same signatures, and `timeout` is what users of futures expect

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, TypeVar, Unpack

from penstock.base.config.declaration import Key
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, ClientKind, ProducerOptions, producer_keys
from penstock.client.config.resolving import Resolving
from penstock.client.core.client import ClientCore, describe_client
from penstock.client.core.types import ClusterSnapshot, ConsumerGroupMetadata, OffsetAndMetadata, PartitionInfo
from penstock.client.errors import BufferFull, ClientClosed, InvalidState, KafkaTimeout
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.arrow import ArrowRows, is_arrow, record_batches
from penstock.client.producer.batch import OnDelivery
from penstock.client.producer.bulk import chunks, rows_of, sending_rows
from penstock.client.producer.delivery import BatchDelivery, Delivery
from penstock.client.producer.idempotence import Idempotence
from penstock.client.producer.interceptors import Interceptors
from penstock.client.producer.memory import MemoryPool, Ticket
from penstock.client.producer.partitioner import Keyless, RandomChoice, RoundRobin, Sticky
from penstock.client.producer.preparing import Partition, Preparing
from penstock.client.producer.record import HeadersInput, ProducerRecord
from penstock.client.producer.sender import Sender
from penstock.client.producer.settings import ProducerSettings, read_settings
from penstock.client.producer.transactions import TransactionManager
from penstock.client.producer.waits import MemoryWait, Steps, TopicWait, Wait
from penstock.serde.interface import Serialize
from penstock.serde.resolving import close_serde, default_serialize, resolve_serializer

T = TypeVar("T")
Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


_BUILT_IN_PARTITIONERS = ("DefaultPartitioner", "UniformStickyPartitioner", "")


class AsyncProducer:
    """A producer for asyncio. Use `async with`, or `await start()` and `await close()`.

    `await producer.send(...)` hands a record over and returns its `Delivery`; `await` that for the record's offset::

        async with penstock.aio.Producer(bootstrap_servers="localhost:9092") as producer:
            delivery = await producer.send("orders", b"42", key=b"customer 7")
            metadata = await delivery
    """

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        self._config = ClientConfig(ClientKind.PRODUCER, config, options)
        self._settings: ProducerSettings = read_settings(self._config)
        self._client = ClientCore(self._config)
        self._partitioner_object = self._config[producer_keys.PARTITIONER_CLASS]
        resolving = Resolving()
        self._key_serializer, self._value_serializer = (
            _serializer(self._config, key, resolving)
            for key in (producer_keys.KEY_SERIALIZER, producer_keys.VALUE_SERIALIZER)
        )
        self._partitioner = resolving.value(
            producer_keys.PARTITIONER_CLASS, lambda: resolve_partitioner(self._partitioner_object), None
        )
        resolving.check()
        interceptors: tuple[object, ...] = self._config[producer_keys.INTERCEPTOR_CLASSES]
        self._interceptors = Interceptors(
            interceptors,
            {name: key.value for name, key in self._config.describe().items()},
        )
        self._transactions: TransactionManager | None = None
        self._preparing: Preparing | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._io_thread = 0
        self._is_closed = False

    # Life.

    async def start(self) -> None:
        """Bind to the running loop. Every method does it by itself; again is no error."""
        if self._preparing is not None:
            self._check_open()
            return
        self._check_open()
        await self._client.start()
        self._loop = asyncio.get_running_loop()
        self._io_thread = threading.get_ident()
        settings = self._settings
        self._memory = MemoryPool(settings.buffer_memory)
        self._accumulator = Accumulator(
            clock=self._client.ports.clock,
            memory=self._memory,
            delivery_timeout_ms=settings.delivery_timeout_ms,
            wake=self._wake,
            make_keyless=self._make_keyless,
            io_thread=lambda: self._io_thread,
        )
        identity = Idempotence(transactional=settings.transactional_id is not None) if settings.idempotent else None
        self._sender = Sender(self._client, settings, self._accumulator, identity)
        if settings.transactional_id is not None and identity is not None:
            self._transactions = self._sender.transactions = TransactionManager(
                self._client,
                transactional_id=settings.transactional_id,
                identity=identity,
                hooks=self._sender,
                transaction_timeout_ms=settings.transaction_timeout_ms,
            )
        self._client.metadata.on_change(self._metadata_changed)
        self._preparing = Preparing(
            accumulator=self._accumulator,
            settings=settings,
            time_ms=self._client.ports.clock.time_ms,
            snapshot=lambda: self._client.metadata.snapshot,
            interceptors=self._interceptors,
            key_serializer=self._key_serializer,
            value_serializer=self._value_serializer,
            partitioner=self._partitioner,
            transactions=self._transactions,
        )

    async def close(self, timeout: float | None = None) -> None:
        """Send what waits, for up to `timeout` seconds (None: as long as it takes), then end.

        What is not sent by then fails with ClientClosed; an open transaction is aborted. Again is no error.
        """
        if self._is_closed:
            return
        self._is_closed = True
        if self._preparing is not None:
            self._preparing.is_plain = False
            await self._end_sending(timeout)
        await self._client.close()
        self._interceptors.close()
        for resource in (self._key_serializer, self._value_serializer):
            close_serde(resource)
        close = getattr(self._partitioner_object, "close", None)
        if callable(close):
            close()

    async def _end_sending(self, timeout: float | None) -> None:
        deadline = None if timeout is None else self._client.ports.clock.monotonic() + timeout
        try:
            async with asyncio.timeout(timeout):
                if self._transactions is None:
                    await self._sender.flush()
        except TimeoutError:
            pass
        if self._transactions is not None:
            left = None if deadline is None else max(deadline - self._client.ports.clock.monotonic(), 0.0) * 1000
            await self._transactions.close(left)
        self._accumulator.closed = True
        self._sender.close()
        self._sender.fail_all(
            ClientClosed("the producer was closed before the record was sent: close it later, or with more time")
        )

    def __repr__(self) -> str:
        state = "closed" if self._client.is_closed else "open"
        return f"<{type(self).__name__} {describe_client(self._client)}, {state}>"

    async def __aenter__(self) -> AsyncProducer:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # Sending.

    async def send(
        self,
        topic: str | ProducerRecord,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: HeadersInput | None = None,
        on_delivery: OnDelivery | None = None,
    ) -> Delivery:
        """Hand a record over; its `Delivery` tells how it ends.

        Waits only for metadata of a topic that is new, and for memory (`buffer.memory`), up to `max.block.ms`; then
        KafkaTimeout or BufferFull. `topic` may be a `ProducerRecord`, which has all the rest in it.

        What cannot be sent at all is raised here, at once, and `on_delivery` is not called for it: RecordTooLarge above
        `max.request.size` or `buffer.memory`, SerializationError, what a partitioner raises, a topic that does not
        exist or is not allowed. Everything later goes to the `Delivery`.
        `on_delivery(metadata | None, error | None)` is called in the I/O thread when the record is written or failed.
        """
        preparing = self._preparing
        if preparing is None or self._is_closed:
            preparing = await self._ready()
        delivery = preparing.try_send(topic, value, key, partition, timestamp_ms, headers, on_delivery)  # type: ignore[arg-type]
        if delivery is not None:
            return delivery
        record = as_record(topic, value, key, partition, timestamp_ms, headers)
        return await self._drive(preparing.sending(record, on_delivery))

    async def send_many(self, topic: str, records: Any, *, partition: int | None = None) -> list[BatchDelivery]:
        """Hand many records over at once; one `BatchDelivery` per batch that was made of them.

        `records` is an iterable of values, (key, value) pairs or `ProducerRecord`s, or an Arrow table or record batch
        with the column value, and key, timestamp, headers and partition where wanted. Keys, serializers, partitioners
        and interceptors work as in `send`; waits as `send` does, for each batch.
        """
        preparing = await self._ready()
        deliveries: list[BatchDelivery] = []
        for rows in all_rows(preparing, topic, records):
            deliveries += await self._drive(sending_rows(preparing, topic, rows, partition))
        return deliveries

    async def flush(self, timeout: float | None = None) -> None:
        """Send everything handed over so far and wait until its end is known. KafkaTimeout after `timeout` seconds."""
        await self._ready()
        try:
            async with asyncio.timeout(timeout):
                await self._sender.flush()
        except TimeoutError:
            left = len(self._accumulator.incomplete)
            raise KafkaTimeout(f"flush() did not end within {timeout} s: {left} batches are under way") from None

    async def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        """The topic's partitions with their leaders and replicas; waits up to `max.block.ms` for them."""
        await self._ready()
        return (await self._client.metadata.topic(topic, self._settings.max_block_ms)).partitions

    def metrics(self) -> dict[str, float]:
        """Kafka's producer and connection metrics by name: totals since the start, averages over everything."""
        if self._preparing is None:
            return {}
        return {**self._client.metrics.read(), **self._sender.metrics.snapshot()}

    # Transactions.

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Take over the transactional id: finish or abort what its last user left, and fence that one off.

        Once, before the first transaction. May be called again after a time-out.
        """
        await (await self._manager()).init(_ms(timeout))

    async def begin_transaction(self) -> None:
        """Records sent from now on belong to one transaction, until it is committed or aborted."""
        await (await self._manager()).begin()

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what waits, then make the whole transaction visible. After a time-out it may be called again."""
        await (await self._manager()).commit(_ms(timeout))

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """Drop the transaction: its records are never seen by readers of committed records."""
        await (await self._manager()).abort(_ms(timeout))

    async def send_offsets(
        self, offsets: Offsets, group_metadata: ConsumerGroupMetadata | str, timeout: float | None = None
    ) -> None:
        """Commit consumed offsets with the transaction. `group_metadata` is the consumer's `group_metadata()`."""
        await (await self._manager()).send_offsets(offsets, group_metadata, _ms(timeout))

    send_offsets_to_transaction = send_offsets

    @contextlib.asynccontextmanager
    async def transaction(self) -> AsyncIterator[AsyncProducer]:
        """`async with producer.transaction(): ...` commits at the end, and aborts when the block raises."""
        await self.begin_transaction()
        try:
            yield self
        except BaseException:
            with contextlib.suppress(KafkaError):
                await self.abort_transaction()
            raise
        await self.commit_transaction()

    async def _manager(self) -> TransactionManager:
        await self._ready()
        if self._transactions is None:
            raise InvalidState("transactions need a transactional.id: give the producer one")
        return self._transactions

    # Inside.

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the producer was closed: make a new one")

    async def _ready(self) -> Preparing:
        if self._preparing is None or self._is_closed:
            await self.start()
        assert self._preparing is not None
        return self._preparing

    async def _drive(self, steps: Steps[T]) -> T:
        """Do what `steps` wants to wait for, for `max.block.ms` in all."""
        deadline = self._client.ports.clock.monotonic() + self._settings.max_block_ms / 1000
        try:
            wait = next(steps)
            while True:
                try:
                    answer = await self.serve(wait, deadline)
                except BaseException as error:  # noqa: BLE001 - the generator decides what becomes of it
                    wait = steps.throw(error)
                else:
                    wait = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def serve(self, wait: Wait, deadline: float) -> Ticket | None:
        """Wait for a topic or for memory, on the loop."""
        if isinstance(wait, TopicWait):
            await self._know(wait, deadline)
            return None
        return await self._take_memory(wait, deadline)

    async def _know(self, wait: TopicWait, deadline: float) -> None:
        metadata = self._client.metadata
        left_ms = self._left_ms(deadline)
        info = await metadata.topic(wait.topic, left_ms)
        while wait.partition is not None and wait.partition >= len(info.partitions):
            count = len(info.partitions)
            try:
                snapshot = await metadata.update(self._left_ms(deadline))
            except KafkaTimeout:
                raise KafkaTimeout(
                    f"topic {wait.topic!r} has {count} partitions and no partition {wait.partition}, even after"
                    f" max.block.ms={self._settings.max_block_ms}: choose another one, or add partitions"
                ) from None
            info = snapshot.topics.get(wait.topic, info)
            if wait.partition >= len(info.partitions):
                await asyncio.sleep(min(0.1, max(self._left_ms(deadline), 0.0) / 1000))
        self._metadata_changed(metadata.snapshot)

    async def _take_memory(self, wait: MemoryWait, deadline: float) -> Ticket:
        loop = asyncio.get_running_loop()
        granted: asyncio.Future[None] = loop.create_future()

        def grant() -> None:
            if not granted.done():
                granted.set_result(None)

        def on_grant() -> None:
            loop.call_soon_threadsafe(grant)

        ticket = self._memory.ask(wait.size, on_grant)
        self._accumulator.wake()
        try:
            async with asyncio.timeout(max(self._left_ms(deadline), 0.0) / 1000):
                await granted
        except TimeoutError:
            self._memory.give_up(ticket)
            raise self.buffer_full() from None
        except BaseException:
            self._memory.give_up(ticket)
            raise
        return ticket

    def buffer_full(self) -> BufferFull:
        """The error of one who waited too long for memory."""
        return BufferFull(
            f"buffer.memory={self._settings.buffer_memory} stayed full for max.block.ms="
            f"{self._settings.max_block_ms}: records come faster than they are written; send fewer, or raise one"
        )

    def _left_ms(self, deadline: float) -> float:
        return (deadline - self._client.ports.clock.monotonic()) * 1000

    def _wake(self) -> None:
        assert self._loop is not None
        if threading.get_ident() == self._io_thread:
            self._loop.call_soon(self._sender.run_round)
            return
        try:
            self._loop.call_soon_threadsafe(self._sender.run_round)
        except RuntimeError:
            raise ClientClosed("the producer's event loop was closed: make a new producer") from None

    def _metadata_changed(self, snapshot: ClusterSnapshot) -> None:
        for name, queues in list(self._accumulator.topics.items()):
            info = snapshot.topics.get(name)
            known = info is not None and info.error is ErrorCode.NONE
            queues.update(len(info.partitions) if known and info else 0, snapshot.available_partitions(name))
        self._accumulator.wake()

    def _make_keyless(self) -> Keyless:
        rng = self._client.ports.rng
        if self._settings.keyless == "round_robin":
            return RoundRobin(rng.randrange(1 << 16))
        if self._settings.keyless == "random":
            return RandomChoice(rng)
        return Sticky(rng, switch_bytes=self._settings.batch_size, adaptive=self._settings.adaptive)


def as_record(
    topic: str | ProducerRecord,
    value: Any,
    key: Any,
    partition: int | None,
    timestamp_ms: int | None,
    headers: HeadersInput | None,
) -> ProducerRecord:
    if isinstance(topic, ProducerRecord):
        return topic
    return ProducerRecord(
        topic=topic, value=value, key=key, partition=partition, timestamp_ms=timestamp_ms, headers=headers
    )


def all_rows(preparing: Preparing, topic: str, records: Any) -> Iterable[Any]:
    """What `send_many` was given, piece by piece, as rows."""
    if is_arrow(records):
        by_key = not preparing.settings.ignore_keys
        return (ArrowRows(batch, preparing.time_ms(), by_key=by_key) for batch in record_batches(records))
    if isinstance(records, (str, bytes, Mapping)):
        raise TypeError(f"send_many() takes many records, and {type(records).__name__} is one: use send()")
    return (rows_of(preparing, topic, chunk) for chunk in chunks(records))


def resolve_partitioner(spec: Any) -> Partition | None:
    """A user's partitioner as a function; None for the built-in one."""
    if spec is None or (isinstance(spec, str) and spec.rpartition(".")[2] in _BUILT_IN_PARTITIONERS):
        return None
    try:
        instance = spec() if isinstance(spec, type) else spec
    except TypeError as error:
        raise _no_partitioner(f"an object of {spec.__qualname__} cannot be made without arguments: {error}") from error
    # Text has a method of that name too.
    method = None if isinstance(spec, str) else getattr(instance, "partition", instance)
    if not callable(method):
        raise _no_partitioner(f"{spec!r} cannot choose partitions")
    chosen: Callable[..., int] = method
    return chosen


def _serializer(config: ClientConfig, key: Key[Any], resolving: Resolving) -> Serialize:
    default: Serialize = default_serialize
    return resolving.value(key, lambda: resolve_serializer(config[key]), default)


def _no_partitioner(why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_CONFIG,
        f"{why}: give a function of (topic, key, key_bytes, value, value_bytes, snapshot), or an object with such a "
        "method `partition`; for keyless records only, set penstock.partitioner.keyless to sticky, round_robin or "
        "random",
    )


def _ms(timeout: float | None) -> float | None:
    return None if timeout is None else timeout * 1000
