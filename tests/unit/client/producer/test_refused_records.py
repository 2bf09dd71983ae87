"""A record that is refused is refused at the call, names what is wrong, and leaves nothing behind: on both kernels."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from penstock.client.core.types import RecordMetadata
from penstock.client.errors import BufferFull, RecordTooLarge, SerializationError
from penstock.client.producer import batch as batch_module
from penstock.client.producer import preparing as preparing_module
from penstock.client.producer.bulk import HandedOver, ValueRows, all_rows, sending_rows
from penstock.client.producer.interceptors import Interceptors, ProducerInterceptor
from penstock.client.producer.preparing import Preparing
from penstock.client.producer.record import ProducerRecord, check_callback, read_headers
from penstock.client.producer.waits import MemoryWait
from penstock.records import kernel as kernel_in_use
from penstock.records import pure_sending, pure_writing
from penstock.serde.resolving import resolve_serializer
from tests.unit.client.producer.caller_side import end, make, send


@pytest.fixture(params=["pure", "compiled"], autouse=True)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(batch_module, "BatchWriter", pure_writing.BatchWriter)
        monkeypatch.setattr(preparing_module, "ShortWay", pure_sending.ShortWay)
    elif not kernel_in_use.COMPILED:
        pytest.skip("the compiled kernel is not built: install a C compiler, then `pip install -e .`")


def has_no_trace(preparing: Preparing) -> bool:
    queues = preparing.accumulator.topic("t").queues
    return (
        preparing.accumulator.memory.free_bytes == 100_000
        and not preparing.accumulator.incomplete
        and not any(queue.batches or queue.open for queue in queues)
    )


def test_a_serializer_that_returns_text_is_named_and_the_next_record_goes_its_way() -> None:
    preparing = make(value_serializer=resolve_serializer(json.dumps))
    with pytest.raises(SerializationError, match=r"serializer dumps returned str where bytes are wanted"):
        send(preparing, {"a": 1}, partition=0)
    assert has_no_trace(preparing)
    assert send(preparing, None, partition=0)._index == 0


def test_a_serializer_may_return_other_buffers() -> None:
    preparing = make(value_serializer=lambda topic, value, headers: memoryview(bytearray(value)))
    assert send(preparing, b"abc")._value_size == 3


@pytest.mark.parametrize("timestamp", [datetime(2026, 1, 1), 2**70, 2**63, -1, 1.5, "5"])
def test_a_bad_timestamp_is_refused_before_anything_has_changed(timestamp: Any) -> None:
    preparing = make()
    with pytest.raises((TypeError, ValueError), match="timestamp_ms must be"):
        send(preparing, partition=0, timestamp_ms=timestamp)
    with pytest.raises((TypeError, ValueError), match="timestamp_ms must be"):
        list(all_rows(preparing, "t", [ProducerRecord(topic="t", timestamp_ms=timestamp)]))
    assert has_no_trace(preparing)
    assert send(preparing, partition=0, timestamp_ms=2**63 - 1)._index == 0


def test_an_append_that_fails_leaves_no_batch_behind() -> None:
    preparing = make()
    queues = preparing.accumulator.topic("t")
    bad: Any = "no number"
    with pytest.raises(TypeError):
        preparing._append(queues, 0, bad, None, b"v", (), None, None)
    assert has_no_trace(preparing)
    send(preparing, partition=0)
    with pytest.raises(RecordTooLarge):
        send(preparing, b"x" * 6_000, partition=0)


def test_a_begun_batch_is_seen_with_its_first_record_only() -> None:
    preparing = make()
    seen: list[bool] = []

    class Prying(batch_module.BatchWriter):  # type: ignore[misc, name-defined, unused-ignore]
        def append(self, *arguments: Any) -> int:
            seen.append(has_queued(preparing))
            index: int = super().append(*arguments)
            return index

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch_module, "BatchWriter", Prying)
        send(preparing, partition=0)
    assert seen == [False]
    assert has_queued(preparing)


def has_queued(preparing: Preparing) -> bool:
    return any(queue.batches for queue in preparing.accumulator.topic("t").queues)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"partition": "0"}, "partition must be a number or None, not '0'"),
        ({"partition": -3}, "partition must be a number from 0 on"),
        ({"headers": ["a"]}, "headers must be a mapping, or pairs"),
        ({"headers": 5}, "headers must be a mapping, or pairs"),
        ({"headers": {"a": 5}}, "header 'a' must be bytes"),
    ],
)
def test_bad_fields_are_named(fields: dict[str, Any], message: str) -> None:
    preparing = make()
    with pytest.raises((TypeError, ValueError), match=message):
        send(preparing, **fields)
    with pytest.raises((TypeError, ValueError), match=message):
        list(all_rows(preparing, "t", [ProducerRecord(topic="t", **fields)]))
    assert has_no_trace(preparing)


def test_a_callback_that_cannot_be_called_is_refused() -> None:
    with pytest.raises(TypeError, match="on_delivery must be a function"):
        check_callback("x")
    with pytest.raises(TypeError, match="on_delivery must be a function"):
        end(make().sending(ProducerRecord(topic="t"), "x"))  # type: ignore[arg-type]
    assert read_headers((name, b"") for name in "ab") == (("a", b""), ("b", b""))


async def _endless() -> AsyncIterator[bytes]:
    yield b""


class _Frame:
    columns = ("value",)

    def __iter__(self) -> Any:
        return iter(self.columns)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        (None, "an iterable of values, .* not NoneType"),
        (5, "an iterable of values, .* not int"),
        (_endless(), "no asynchronous iterable"),
        (_Frame(), "cannot read this _Frame"),
        (b"one", r"use send\(\)"),
        (ProducerRecord(topic="t"), r"use send\(\)"),
    ],
    ids=lambda each: type(each).__name__,
)
def test_send_many_says_what_it_takes(records: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        all_rows(make(), "t", records)


def test_send_many_refuses_a_bad_partition_and_a_bad_topic_at_the_call() -> None:
    bad: Any = "0"
    with pytest.raises(TypeError, match="partition must be a number or None"):
        all_rows(make(), "t", [b""], bad)
    bad = 5
    with pytest.raises(TypeError, match="must be text"):
        all_rows(make(), bad, [b""])


class Hearing(ProducerInterceptor):
    def __init__(self) -> None:
        self.heard: list[tuple[str, int, int, str]] = []

    def on_acknowledgement(self, metadata: RecordMetadata, error: Any) -> None:
        self.heard.append((metadata.topic, metadata.partition, metadata.offset, type(error).__name__))


def test_interceptors_hear_of_a_record_that_send_refuses_and_where_it_was_to_go() -> None:
    hearing = Hearing()
    preparing = make(interceptors=Interceptors([hearing], {}))
    with pytest.raises(SerializationError):
        send(preparing, object())
    with pytest.raises(RecordTooLarge):
        send(preparing, b"x" * 6_000, partition=2)
    assert hearing.heard == [("t", -1, -1, "SerializationError"), ("t", 2, -1, "RecordTooLarge")]


def test_interceptors_hear_of_every_record_that_send_many_refuses() -> None:
    hearing = Hearing()
    preparing = make(interceptors=Interceptors([hearing], {}))
    with pytest.raises(SerializationError):
        list(all_rows(preparing, "t", [b"good", ("key", object()), b"never looked at"]))
    assert hearing.heard == [("t", -1, -1, "SerializationError")] * 2
    hearing.heard.clear()
    records = [ProducerRecord(topic="t", value=b"x" * size, partition=at) for size, at in ((9, 0), (6_000, 1), (9, 1))]
    (rows,) = all_rows(preparing, "t", records)
    deliveries = HandedOver()
    with pytest.raises(RecordTooLarge):
        end(sending_rows(preparing, "t", rows, None, deliveries))
    assert [each.partition for each in deliveries] == [0]
    assert hearing.heard == [("t", 1, -1, "RecordTooLarge")] * 2


def test_send_many_that_fails_half_way_tells_what_was_handed_over() -> None:
    preparing = make(memory=1_500)
    deliveries = HandedOver()
    steps = sending_rows(preparing, "t", ValueRows(0, None, [b"x" * 400] * 4), 0, deliveries)
    wait = next(steps)
    while not deliveries:  # a batch gives back what it does not need
        wait = steps.send(None)
    assert isinstance(wait, MemoryWait)
    with pytest.raises(BufferFull) as caught:
        steps.throw(BufferFull("full"))
    deliveries.attach(caught.value)
    assert caught.value.deliveries == deliveries  # type: ignore[attr-defined]
    assert "handed over" in caught.value.__notes__[0]
    assert pickle.loads(pickle.dumps(caught.value)).deliveries == []


def test_an_error_that_takes_no_attributes_stays_what_it_is() -> None:
    class Slotted(asyncio.CancelledError):
        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)

    HandedOver().attach(Slotted())
