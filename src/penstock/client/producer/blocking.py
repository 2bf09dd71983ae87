"""The blocking producer: `send` works in the caller's thread; everything else is one call on the loop of its thread.

`send` and `send_many` append by themselves and wait for memory on an event of their own; only the metadata of a new
topic are asked for on the loop. Any number of threads may send at once; see `accumulator` for what guards what.

A producer that is still open when Python ends is closed then: what waits is sent for up to `EXIT_TIMEOUT_S`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
import weakref
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any, Final, Self, TypeVar, Unpack

from penstock.base.errors import KafkaError
from penstock.client.config import ProducerOptions
from penstock.client.core.client import describe_client
from penstock.client.core.face import BlockingFace, documented_by
from penstock.client.core.types import ConsumerGroupMetadata, PartitionInfo
from penstock.client.producer.batch import OnDelivery
from penstock.client.producer.bulk import HandedOver, all_rows, sending_rows
from penstock.client.producer.delivery import BatchDelivery, Delivery
from penstock.client.producer.memory import Ticket
from penstock.client.producer.preparing import Preparing
from penstock.client.producer.producer import AsyncProducer, Offsets
from penstock.client.producer.record import HeadersInput, ProducerRecord, as_record, check_callback, check_timestamp
from penstock.client.producer.transactions.verdicts import raise_worse
from penstock.client.producer.waits import MemoryWait, Steps, Wait

log = logging.getLogger(__name__)
T = TypeVar("T")

EXIT_TIMEOUT_S: Final = 10.0
"""How long the end of the interpreter is held up for records of a producer that nobody closed."""

_open: weakref.WeakSet[Producer] = weakref.WeakSet()


class Producer(BlockingFace):
    """A producer for threads. Use `with`, or `close()`.

    `send` hands a record over and returns its `Delivery` at once; `result()` of that waits for the record's offset::

        with penstock.Producer(bootstrap_servers="localhost:9092") as producer:
            delivery = producer.send("orders", b"42", key=b"customer 7")
            metadata = delivery.result(timeout=10)
    """

    _core: AsyncProducer

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        core = AsyncProducer(config, **options)
        core._has_face = True
        super().__init__(core, name=f"penstock-producer-{id(core):x}")
        try:
            self._run(core.start())
        except BaseException:
            self._is_closed = True
            self._thread.close()
            raise
        assert core._preparing is not None
        self._preparing: Preparing = core._preparing
        self._try_send = self._preparing.try_send
        _open.add(self)

    def __enter__(self) -> Self:
        self._thread.check_usable()
        return super().__enter__()

    def send(
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
        if timestamp_ms is not None:
            check_timestamp(timestamp_ms)
        if on_delivery is not None:
            check_callback(on_delivery)
        delivery = self._try_send(topic, value, key, partition, timestamp_ms, headers, on_delivery)
        if delivery is not None:
            return delivery
        if not self._thread.is_current:  # a delivery callback may send, as long as it need not wait
            self._thread.check_usable()
        record = as_record(topic, value, key, partition, timestamp_ms, headers)
        return self._drive(self._preparing.sending(record, on_delivery))

    send.__doc__ = AsyncProducer.send.__doc__

    @documented_by(AsyncProducer.send_many)
    def send_many(self, topic: str, records: Any, *, partition: int | None = None) -> list[BatchDelivery]:
        self._thread.check_usable()
        deliveries = HandedOver()
        try:
            for rows in all_rows(self._preparing, topic, records, partition):
                self._drive(sending_rows(self._preparing, topic, rows, partition, deliveries))
        except BaseException as error:
            deliveries.attach(error)
            raise
        return list(deliveries)

    @documented_by(AsyncProducer.flush)
    def flush(self, timeout: float | None = None) -> None:
        self._run(self._core.flush(timeout))

    @documented_by(AsyncProducer.partitions_for)
    def partitions_for(self, topic: str) -> tuple[PartitionInfo, ...]:
        return self._run(self._core.partitions_for(topic))

    @documented_by(AsyncProducer.metrics)
    def metrics(self) -> dict[str, float]:
        return self._core.metrics()

    @documented_by(AsyncProducer.close)
    def close(self, timeout: float | None = None) -> None:
        self._close_with(self._core.close(timeout))

    @documented_by(AsyncProducer.init_transactions)
    def init_transactions(self, timeout: float | None = None) -> None:
        self._run(self._core.init_transactions(timeout))

    @documented_by(AsyncProducer.begin_transaction)
    def begin_transaction(self) -> None:
        self._run(self._core.begin_transaction())

    @documented_by(AsyncProducer.commit_transaction)
    def commit_transaction(self, timeout: float | None = None) -> None:
        self._run(self._core.commit_transaction(timeout))

    @documented_by(AsyncProducer.abort_transaction)
    def abort_transaction(self, timeout: float | None = None) -> None:
        self._run(self._core.abort_transaction(timeout))

    @documented_by(AsyncProducer.send_offsets)
    def send_offsets(
        self, offsets: Offsets, group_metadata: ConsumerGroupMetadata | str, timeout: float | None = None
    ) -> None:
        self._run(self._core.send_offsets(offsets, group_metadata, timeout))

    send_offsets_to_transaction = send_offsets

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Producer]:
        """`with producer.transaction(): ...` commits at the end; aborts when the block or the commit raises.

        What was raised is raised on, and the next transaction may begin; but where the abort finds that the producer is
        of no further use (another one has taken over), that is raised, as the error is only its consequence.
        """
        self.begin_transaction()
        try:
            yield self
            self.commit_transaction()
        except BaseException as error:
            try:
                self.abort_transaction()
            except KafkaError as found:
                raise_worse(error, found)
            raise

    # Waiting in the caller's thread.

    def _drive(self, steps: Steps[T]) -> T:
        deadline = time.monotonic() + self._preparing.settings.max_block_ms / 1000
        try:
            wait = next(steps)
            while True:
                try:
                    answer = self._serve(wait, deadline)
                except BaseException as error:  # noqa: BLE001 - the generator decides what becomes of it
                    wait = steps.throw(error)
                else:
                    wait = steps.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result

    def _serve(self, wait: Wait, deadline: float) -> Ticket | None:
        if isinstance(wait, MemoryWait):
            return self._take_memory(wait.size, deadline)
        return self._run(self._core._waiting.serve(wait, deadline))

    def _take_memory(self, size: int, deadline: float) -> Ticket:
        self._thread.check_usable()
        memory = self._preparing.accumulator.memory
        granted = threading.Event()
        ticket = memory.ask(size, granted.set)
        self._preparing.accumulator.wake()
        try:
            if granted.wait(max(deadline - time.monotonic(), 0.0)):
                return ticket
        except BaseException:
            memory.give_up(ticket)
            raise
        memory.give_up(ticket)
        raise self._core._waiting.buffer_full()

    # Left open.

    def _unsent(self) -> int:
        """Records that are neither written nor failed."""
        batches = self._preparing.accumulator.incomplete if hasattr(self, "_preparing") else []
        return sum(batch.record_count for batch in batches)

    def _at_exit(self) -> None:
        waiting = self._unsent()
        if waiting:
            log.warning(
                "%s was not closed when Python ended, and sends its last %d records now, for up to %.0f s: "
                "use `with`, or call close()",
                self._name,
                waiting,
                EXIT_TIMEOUT_S,
            )
        batches = self._preparing.accumulator.incomplete
        self.close(EXIT_TIMEOUT_S)
        lost = sum(batch.record_count for batch in batches if batch.outcome is None or batch.outcome.error is not None)
        if lost:
            log.error("%s: %d records were not written before Python ended", self._name, lost)

    def __del__(self) -> None:
        if not getattr(self, "_is_closed", True) and not self._thread.is_foreign and (waiting := self._unsent()):
            log.error(
                "%s was dropped without close(), and %d records with it that were not written: "
                "use `with`, or call close()",
                self._name,
                waiting,
            )
        super().__del__()

    def _describe(self) -> str:
        return describe_client(self._core._client)

    def _disconnect(self) -> Callable[[], Coroutine[Any, Any, object]]:
        return self._core.abandon

    def _forked(self) -> None:
        """In a forked child: close the short way, so that the next call finds out where it is."""
        self._preparing.short_way.is_open = False


def _after_fork() -> None:
    for producer in list(_open):
        producer._forked()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
