"""The caller's side without a network: what is waited for, what is refused, what goes where."""

from __future__ import annotations

from array import array
from typing import Any

import pytest

from penstock.client.errors import ClientClosed, RecordTooLarge
from penstock.client.producer.bulk import RecordRows, ValueRows, chunks, rows_of, sending_rows
from penstock.client.producer.delivery import Delivery
from penstock.client.producer.interceptors import Interceptors, ProducerInterceptor
from penstock.client.producer.record import ProducerRecord, read_headers
from penstock.client.producer.waits import MemoryWait, TopicWait
from penstock.records.record import Record
from tests.unit.client.producer.caller_side import end, make, send


def test_the_short_way_takes_what_fits_and_leaves_the_rest() -> None:
    preparing = make()

    def short(value: Any = b"v", key: Any = None, partition: Any = None) -> Delivery | None:
        return preparing.try_send("t", value, key, partition, None, None, None)

    assert short() is None, "there is no batch yet"
    chosen = send(preparing).partition
    delivery = short()
    assert delivery is not None
    assert delivery.partition == chosen
    assert short("text") is None
    assert short(b"v", "text") is None
    assert short(b"v", None, 5) is None
    assert short(b"v", None, True) is None
    assert short(b"x" * 600) is None, "a batch that is full"
    assert preparing.try_send("unknown", b"", None, None, None, None, None) is None
    preparing.short_way.is_open = False
    assert short() is None


def test_an_unknown_topic_is_waited_for() -> None:
    preparing = make(known=False)
    steps = preparing.sending(ProducerRecord(topic="t", value=b"v"))
    assert next(steps) == TopicWait("t", None)
    preparing.accumulator.topic("t").update(1, [0])
    with pytest.raises(StopIteration) as stopped:
        steps.send(None)
    assert stopped.value.value.partition == 0


def test_memory_is_waited_for_and_a_grant_that_is_not_needed_goes_back() -> None:
    preparing = make(memory=500)
    first = send(preparing, partition=0)
    steps = preparing.sending(ProducerRecord(topic="t", value=b"v", partition=1))
    assert next(steps) == MemoryWait(500)
    pool = preparing.accumulator.memory
    ticket = pool.ask(500, lambda: None)
    pool.give(500)  # as if the first batch were finished
    first._batch.reserved_bytes = 0
    with pytest.raises(StopIteration):
        steps.send(ticket)
    assert ticket.used
    assert pool.free_bytes == 0


def test_a_full_keyless_batch_moves_the_sticky_partition_on() -> None:
    preparing = make()
    partitions = [send(preparing, b"x" * 100).partition for _ in range(200)]
    runs = [partitions[0]]
    for partition in partitions:
        if partition != runs[-1]:
            runs.append(partition)
    assert set(partitions) == {0, 1, 2}
    assert len(runs) < 60


def test_keys_headers_and_sizes() -> None:
    preparing = make()
    assert send(preparing, key=b"k").partition == send(preparing, key="k").partition
    with pytest.raises(RecordTooLarge, match=r"max\.request\.size=5000"):
        send(preparing, b"x" * 6_000)
    with pytest.raises(ValueError, match="from 0 on"):
        send(preparing, partition=-3)
    with pytest.raises(TypeError, match="text"):
        end(preparing.sending(ProducerRecord(topic=5)))  # type: ignore[arg-type]
    assert read_headers([("a", "x"), ("b", bytearray(b"y"))]) == (("a", b"x"), ("b", b"y"))


def test_a_closed_producer_takes_nothing() -> None:
    preparing = make()
    preparing.accumulator.closed = True
    with pytest.raises(ClientClosed):
        send(preparing)


def test_interceptors_are_a_chain_and_a_broken_link_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    class Add(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return ProducerRecord(topic=record.topic, value=record.value + b"+")

    class Bad(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> Any:
            raise RuntimeError

    class Nothing(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> Any:
            return None

    chain = Interceptors([Add(), Bad(), Nothing(), Add], {})
    assert chain.on_send(ProducerRecord(topic="t", value=b"v")).value == b"v++"
    assert "without it" in caplog.text
    assert "no ProducerRecord" in caplog.text


def test_bulk_rows_fill_large_batches_of_their_own() -> None:
    preparing = make()
    before = send(preparing, partition=1)
    rows = ValueRows(5, None, [b"x" * 50] * 100)
    deliveries = end(sending_rows(preparing, "t", rows, 1))
    assert sum(each.count for each in deliveries) == 100
    assert len(deliveries) < 8
    batches = list(preparing.accumulator.topic("t").queues[1].batches)
    assert batches[0] is before._batch
    assert batches[0].writer is None, "closed, so that the order is kept"
    used = sum(batch.reserved_bytes for batch in batches)
    assert preparing.accumulator.memory.free_bytes == 100_000 - used


def test_bulk_rows_with_keys_are_grouped_in_their_order() -> None:
    preparing = make()
    pairs = [(b"k%d" % (i % 7) if i % 3 else None, b"%d" % i) for i in range(300)]
    deliveries = end(sending_rows(preparing, "t", rows_of(preparing, "t", pairs), None))
    assert sum(each.count for each in deliveries) == 300
    assert {each.partition for each in deliveries} == {0, 1, 2}


def test_a_row_that_is_too_large_undoes_its_batch() -> None:
    preparing = make()
    with pytest.raises(RecordTooLarge):
        end(sending_rows(preparing, "t", ValueRows(0, None, [b"x" * 9_000]), 0))
    assert preparing.accumulator.memory.free_bytes == 100_000
    assert preparing.accumulator.incomplete == []


def test_kinds_of_rows() -> None:
    preparing = make()
    assert isinstance(rows_of(preparing, "t", [b"a", None]), ValueRows)
    assert isinstance(rows_of(preparing, "t", [(b"a", b"b")]), ValueRows)
    assert isinstance(rows_of(preparing, "t", ["text", (b"a", "b")]), RecordRows)
    with pytest.raises(TypeError, match="pairs"):
        rows_of(preparing, "t", [(1, 2, 3)])
    rows = RecordRows([Record(0, None, b"")] * 2, [2, None], True)
    assert rows.partitions(3) == array("i", [2, -1])
    with pytest.raises(ValueError, match="no partition 2"):
        rows.partitions(2)
    assert [len(chunk) for chunk in chunks(range(5), 2)] == [2, 2, 1]
