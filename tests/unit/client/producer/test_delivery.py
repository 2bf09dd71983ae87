"""Futures of records and batches: threads, loops, callbacks, splits."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.errors import InvalidState, KafkaTimeout, RecordTooLarge, error_for
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import BatchDelivery, Delivery, Outcome

TP = TopicPartition("t", 2)


def batch_of(count: int = 3, io_thread: int = 0) -> ProducerBatch:
    batch = ProducerBatch(TP, size_max=1000, now=0.0, deadline=1.0, io_thread=lambda: io_thread)
    assert batch.writer is not None
    for _ in range(count):
        batch.writer.append(5, None, b"v")
    batch.close()
    return batch


def test_the_outcome_of_a_batch_is_that_of_its_records() -> None:
    batch = batch_of()
    first, last = Delivery(batch, 0, 5, -1, 1), Delivery(batch, 2, 5, -1, 1)
    assert not first.done()
    batch.finish(Outcome(100, -1))
    assert first.result() == ("t", 2, 100, 5, 0, -1, 1)
    assert last.result().offset == 102
    assert last.exception() is None


def test_log_append_time_replaces_the_timestamp() -> None:
    batch = batch_of()
    batch.finish(Outcome(0, 77))
    metadata = Delivery(batch, 1, 5, -1, 1).result()
    assert (metadata.timestamp, metadata.timestamp_type) == (77, 1)


def test_without_acknowledgement_there_is_no_offset() -> None:
    batch = batch_of()
    batch.finish(Outcome())
    assert Delivery(batch, 1, 5, -1, 1).result().offset == -1


def test_records_at_fault_are_told_apart() -> None:
    batch = batch_of()
    guilty = error_for(ErrorCode.INVALID_RECORD, "bad")
    innocent = error_for(ErrorCode.INVALID_RECORD, "others")
    batch.finish(Outcome(error=innocent, record_errors={1: guilty}))
    assert Delivery(batch, 1, 5, -1, 1).exception() is guilty
    assert Delivery(batch, 0, 5, -1, 1).exception() is innocent


def test_result_waits_for_another_thread() -> None:
    batch = batch_of()
    delivery = Delivery(batch, 0, 5, -1, 1)
    threading.Timer(0.02, lambda: batch.finish(Outcome(9))).start()
    assert delivery.result(5).offset == 9


def test_result_times_out() -> None:
    with pytest.raises(KafkaTimeout, match="t-2"):
        Delivery(batch_of(), 0, 5, -1, 1).result(0.01)


def test_waiting_in_the_io_thread_is_refused() -> None:
    delivery = Delivery(batch_of(io_thread=threading.get_ident()), 0, 5, -1, 1)
    with pytest.raises(InvalidState, match="await"):
        delivery.result()


def test_await_from_another_loop_than_the_one_that_finishes() -> None:
    batch = batch_of()

    async def wait() -> int:
        threading.Timer(0.02, lambda: batch.finish(Outcome(4))).start()
        return (await Delivery(batch, 1, 5, -1, 1)).offset

    assert asyncio.run(asyncio.wait_for(wait(), 5)) == 5


async def test_a_cancelled_wait_does_no_harm() -> None:
    batch = batch_of()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await Delivery(batch, 0, 5, -1, 1)
    batch.finish(Outcome(1))
    assert (await Delivery(batch, 0, 5, -1, 1)).offset == 1


def test_callbacks_run_in_order_before_waiters_and_one_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    batch = batch_of()
    seen: list[Any] = []

    def bad(*_: object) -> None:
        raise ValueError("user")

    one, two = Delivery(batch, 0, 5, -1, 1), Delivery(batch, 1, 5, -1, 1)
    two.add_done_callback(lambda delivery: seen.append(("done", delivery.result().offset)))
    batch.add_callback(one, bad)
    batch.add_callback(two, lambda metadata, error: seen.append((metadata.offset, error)))
    batch.finish(Outcome(7))
    assert seen == [(8, None), ("done", 8)]
    assert "a delivery callback failed" in caplog.text
    two.add_done_callback(lambda delivery: seen.append("at once"))
    assert seen[-1] == "at once"


def test_a_batch_ends_once() -> None:
    batch = batch_of()
    assert batch.finish(Outcome(error=error_for(ErrorCode.REQUEST_TIMED_OUT)))
    assert not batch.finish(Outcome(5))
    assert isinstance(Delivery(batch, 0, 5, -1, 1).exception(), KafkaTimeout)


def test_a_split_batch_ends_with_its_last_piece() -> None:
    batch, left, right = batch_of(3), batch_of(1), batch_of(2)
    left.parent = right.parent = batch
    batch.pieces = [(0, left), (1, right)]
    delivery, whole = Delivery(batch, 2, 5, -1, 1), BatchDelivery(batch)
    left.finish(Outcome(10))
    assert not delivery.done()
    right.finish(Outcome(20))
    assert delivery.result().offset == 21
    assert Delivery(batch, 0, 5, -1, 1).result().offset == 10
    assert whole.result().base_offset == 10


def test_a_batch_delivery_fails_with_the_first_failed_piece() -> None:
    batch, left, right = batch_of(2), batch_of(1), batch_of(1)
    left.parent = right.parent = batch
    batch.pieces = [(0, left), (1, right)]
    left.finish(Outcome(10))
    right.finish(Outcome(error=RecordTooLarge("x")))
    with pytest.raises(RecordTooLarge):
        BatchDelivery(batch).result()
    assert "RecordTooLarge" in repr(BatchDelivery(batch).exception())
