"""The asyncio producer: puts the parts together and waits in asyncio's way.

Everything a caller does between `send` and an appended record is in `preparing` and `bulk`, everything behind it in
`sender`. This class starts and ends them, and hands transactions to their manager.
"""

# ruff: noqa: ASYNC109 - both faces have the same signatures, and `timeout` is what users of futures expect

from __future__ import annotations

import asyncio
import atexit
import contextlib
import logging
import os
import sys
import threading
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Unpack

from penstock.base.config.declaration import Key
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, ClientKind, ProducerOptions, producer_keys
from penstock.client.config.resolving import Resolving
from penstock.client.core.bound_loop import check_loop
from penstock.client.core.client import ClientCore, describe_client
from penstock.client.core.types import ClusterSnapshot, ConsumerGroupMetadata, OffsetAndMetadata, PartitionInfo
from penstock.client.errors import ClientClosed, InvalidState, KafkaTimeout
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.batch import OnDelivery
from penstock.client.producer.bulk import HandedOver, all_rows, sending_rows
from penstock.client.producer.delivery import BatchDelivery, Delivery, Outcome
from penstock.client.producer.idempotence import Idempotence
from penstock.client.producer.interceptors import Interceptors, resolve_interceptors
from penstock.client.producer.memory import MemoryPool
from penstock.client.producer.partitioner import make_keyless, resolve_partitioner
from penstock.client.producer.preparing import Preparing
from penstock.client.producer.record import HeadersInput, ProducerRecord, as_record, check_callback, check_timestamp
from penstock.client.producer.sender import Sender
from penstock.client.producer.settings import ProducerSettings, read_settings
from penstock.client.producer.transactions import TransactionManager
from penstock.client.producer.transactions.verdicts import raise_worse
from penstock.client.producer.waiting import LoopWaiting
from penstock.serde.interface import Serialize
from penstock.serde.resolving import close_serde, default_serialize, resolve_serializer

log = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]


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
        specs: tuple[object, ...] = self._config[producer_keys.INTERCEPTOR_CLASSES]
        none: list[object] = []
        interceptors = resolving.value(producer_keys.INTERCEPTOR_CLASSES, lambda: resolve_interceptors(specs), none)
        resolving.check()
        self._interceptors = Interceptors(
            interceptors,
            {name: key.value for name, key in self._config.describe().items()},
        )
        self._transactions: TransactionManager | None = None
        self._preparing: Preparing | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._io_thread = 0
        self._is_loop_running: Callable[[], bool] = lambda: False
        """For every record, and quicker than to ask which loop runs: a batch of a loop that has ended takes none."""
        self._is_closed = False
        self._pid = os.getpid()
        self._has_face = False
        """A blocking producer stands in front and says by itself what became of it."""

    # Life.

    async def start(self) -> None:
        """Bind to the running loop. Every method does it by itself; again is no error."""
        self._check_open()
        if self._preparing is not None:
            self._check_loop()
            return
        await self._client.start()
        self._loop = asyncio.get_running_loop()
        self._is_loop_running = self._loop.is_running
        self._io_thread = io_thread = threading.get_ident()
        settings, clock = self._settings, self._client.ports.clock
        self._accumulator = Accumulator(
            clock=clock,
            memory=MemoryPool(settings.buffer_memory),
            delivery_timeout_ms=settings.delivery_timeout_ms,
            wake=self._wake,
            make_keyless=lambda: make_keyless(settings, self._client.ports.rng),
            # Without `self`: a delivery that somebody keeps must not keep a producer that was dropped.
            io_thread=lambda: io_thread,
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
        self._waiting = LoopWaiting(self._client, settings, self._accumulator, self._metadata_changed)
        self._preparing = Preparing(
            accumulator=self._accumulator,
            settings=settings,
            clock=clock,
            snapshot=lambda: self._client.metadata.snapshot,
            interceptors=self._interceptors,
            key_serializer=self._key_serializer,
            value_serializer=self._value_serializer,
            partitioner=self._partitioner,
            transactions=self._transactions,
        )
        _open.add(self)

    async def close(self, timeout: float | None = None) -> None:
        """Send what waits, for up to `timeout` seconds (None: as long as it takes), then end.

        What is not sent by then fails with ClientClosed; an open transaction is aborted. Again is no error.
        """
        if self._is_closed:
            return
        self._check_loop()
        self._is_closed = True
        if self._preparing is not None:
            self._preparing.short_way.is_open = False
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
        self._fail_unsent("the producer was closed before the record was sent: close it later, or with more time")

    async def abandon(self) -> None:
        """End without sending anything more, because nobody has the producer any longer: nobody may wait for ever."""
        self._is_closed = True
        try:
            if self._preparing is not None:
                self._fail_unsent(_DROPPED)
        finally:
            await self._client.close()

    def _fail_unsent(self, why: str) -> None:
        self._accumulator.closed = True
        self._sender.close()
        self._sender.fail_all(ClientClosed(why))

    def __del__(self) -> None:
        if sys.is_finalizing() or not getattr(self, "_is_mine", False):
            return
        warnings.warn(f"{self!r} was not closed: use `async with`, or await close()", ResourceWarning, stacklevel=2)
        self._tell_lost("was dropped without close()")

    @property
    def _is_mine(self) -> bool:
        """Whether it was started in this process, and nobody else says how it ends."""
        return self._preparing is not None and not self._is_closed and not self._has_face and self._pid == os.getpid()

    def _tell_lost(self, what: str) -> None:
        """The loop has ended without `close`: say what is lost, and let nobody wait for it."""
        batches = self._accumulator.incomplete
        self._is_closed = True
        if batches:
            log.error(
                "%s %s, and %d records with it that were not written: use `async with`, or await close()",
                describe_client(self._client),
                what,
                sum(batch.record_count for batch in batches),
            )
        for batch in batches:
            self._accumulator.finish(batch, Outcome(error=ClientClosed(_DROPPED)))

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
        if preparing is None or self._is_closed or not self._is_loop_running():
            preparing = await self._ready()
        if timestamp_ms is not None:
            check_timestamp(timestamp_ms)
        if on_delivery is not None:
            check_callback(on_delivery)
        delivery = preparing.try_send(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is not None:
            return delivery
        self._check_loop()
        record = as_record(topic, value, key, partition, timestamp_ms, headers)
        return await self._waiting.drive(preparing.sending(record, on_delivery))

    async def send_many(self, topic: str, records: Any, *, partition: int | None = None) -> list[BatchDelivery]:
        """Hand many records over at once; one `BatchDelivery` per batch that was made of them.

        `records` is an iterable of values, (key, value) pairs or `ProducerRecord`s, or an Arrow table or record batch
        with the column value, and key, timestamp, headers and partition where wanted. Keys, serializers, partitioners
        and interceptors work as in `send`; waits as `send` does, for each batch. A frame of pandas or polars is taken
        as the Arrow table that it says it is.

        When it raises half-way, batches before that were handed over and go their way: the error, whatever its type,
        has them in its attribute `deliveries`, the list that would have been returned so far.
        """
        preparing = await self._ready()
        deliveries = HandedOver()
        try:
            for rows in all_rows(preparing, topic, records, partition):
                await self._waiting.drive(sending_rows(preparing, topic, rows, partition, deliveries))
        except BaseException as error:
            deliveries.attach(error)
            raise
        return list(deliveries)

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
        """Kafka's producer and connection metrics by name: totals since the start; rates and averages of late."""
        if self._preparing is None:
            return {}
        return self._client.metrics.read()

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
        """`async with producer.transaction(): ...` commits at the end; aborts when the block or the commit raises.

        What was raised is raised on, and the next transaction may begin; but where the abort finds that the producer is
        of no further use (another one has taken over), that is raised, as the error is only its consequence.
        """
        await self.begin_transaction()
        try:
            yield self
            await self.commit_transaction()
        except BaseException as error:
            try:
                await self.abort_transaction()
            except KafkaError as found:
                raise_worse(error, found)
            raise

    async def _manager(self) -> TransactionManager:
        await self._ready()
        if self._transactions is None:
            raise InvalidState("transactions need a transactional.id: give the producer one")
        return self._transactions

    # Inside.

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClientClosed("the producer was closed: make a new one")

    def _check_loop(self) -> None:
        check_loop(self._loop, f"the producer {self._client.client_id}")

    async def _ready(self) -> Preparing:
        await self.start()
        assert self._preparing is not None
        return self._preparing

    def _wake(self) -> None:
        assert self._loop is not None
        try:
            if threading.get_ident() == self._io_thread:
                self._loop.call_soon(self._sender.run_round)
                return
            self._loop.call_soon_threadsafe(self._sender.run_round)
        except RuntimeError:
            raise ClientClosed("the producer's event loop was closed: make a new producer") from None

    def _metadata_changed(self, snapshot: ClusterSnapshot) -> None:
        for name, queues in list(self._accumulator.topics.items()):
            info = snapshot.topics.get(name)
            known = info is not None and info.error is ErrorCode.NONE
            queues.update(len(info.partitions) if known and info else 0, snapshot.available_partitions(name))
        self._accumulator.wake()


_DROPPED = (
    "the producer was dropped without close() before the record was known to be written: keep the producer until the"
    " delivery has ended, with `with` or close()"
)

_open: weakref.WeakSet[AsyncProducer] = weakref.WeakSet()


def _tell_of_open_producers() -> None:
    for producer in list(_open):
        # Where the loop is still open, somebody may close the producer yet, at the end of Python too.
        if producer._is_mine and producer._loop is not None and producer._loop.is_closed():
            producer._tell_lost("was not closed when Python ended")


atexit.register(_tell_of_open_producers)


def _serializer(config: ClientConfig, key: Key[Any], resolving: Resolving) -> Serialize:
    default: Serialize = default_serialize
    return resolving.value(key, lambda: resolve_serializer(config[key]), default)


def _ms(timeout: float | None) -> float | None:
    return None if timeout is None else timeout * 1000
