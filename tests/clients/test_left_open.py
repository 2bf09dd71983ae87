"""Clients that nobody closed: a producer's records are still written, and a consumer that was dropped is noticed."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import penstock
from penstock.client.errors import ClientClosed, InvalidState
from penstock.client.producer.producer import AsyncProducer


def test_a_producer_left_open_at_exit_writes_what_waits(bootstrap: str, topic: Callable[..., str]) -> None:
    name = topic()
    code = (
        "import penstock\n"
        f"producer = penstock.Producer(bootstrap_servers={bootstrap!r}, linger_ms=60_000)\n"
        f"for i in range(3): producer.send({name!r}, str(i))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "was not closed when Python ended, and sends its last 3 records now" in run.stderr
    with penstock.Consumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign([penstock.TopicPartition(name, 0)])
        values = [record.value for _, record in zip(range(3), consumer, strict=False)]
    assert values == [b"0", b"1", b"2"]


def test_a_producer_dropped_with_records_says_so(
    bootstrap: str, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    producers = [penstock.Producer(bootstrap_servers=bootstrap, linger_ms=60_000)]
    producers[0].send(topic(), b"1")
    with pytest.warns(ResourceWarning, match="was not closed"):
        _drop(producers)
    assert "dropped without close(), and 1 records with it" in caplog.text


def test_the_delivery_of_a_dropped_producer_ends(bootstrap: str, topic: Callable[..., str]) -> None:
    name = topic()
    with pytest.warns(ResourceWarning, match="was not closed"):
        delivery = penstock.Producer(bootstrap_servers=bootstrap, linger_ms=60_000).send(name, b"1")
    with pytest.raises(ClientClosed, match=r"dropped without close\(\)"):
        delivery.result(30)


def test_an_asyncio_producer_dropped_with_records_says_so(
    bootstrap: str, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    name = topic()

    async def leave_open() -> Any:
        producer = AsyncProducer(bootstrap_servers=bootstrap, linger_ms=60_000)
        return await producer.send(name, b"1")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        delivery = asyncio.run(leave_open())
        gc.collect()
    assert any("was not closed: use `async with`" in str(each.message) for each in caught)
    assert "dropped without close(), and 1 records with it" in caplog.text
    with pytest.raises(ClientClosed, match="dropped"):
        delivery.result(0)


def test_an_asyncio_producer_left_open_at_exit_says_so(bootstrap: str, topic: Callable[..., str]) -> None:
    name = topic()
    code = (
        "import asyncio, penstock.aio\n"
        f"producer = penstock.aio.Producer(bootstrap_servers={bootstrap!r}, linger_ms=60_000)\n"
        f"asyncio.run(producer.send({name!r}, b'1'))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert "was not closed when Python ended, and 1 records with it" in run.stderr


def test_an_asyncio_producer_belongs_to_one_event_loop(bootstrap: str, topic: Callable[..., str]) -> None:
    name = topic()
    producer = AsyncProducer(bootstrap_servers=bootstrap)

    async def first() -> None:
        await (await producer.send(name, b"1"))

    async def elsewhere() -> None:
        for use in (producer.send(name, b"2"), producer.send_many(name, [b"3"]), producer.flush(), producer.close()):
            with pytest.raises(InvalidState, match="belongs to the event loop"):
                await asyncio.wait_for(use, 10)
        with pytest.raises(InvalidState, match="is another one"):
            async with producer:
                pass

    async def both() -> None:
        await first()
        await asyncio.to_thread(asyncio.run, elsewhere())
        await producer.close()

    asyncio.run(both())


def test_a_consumer_dropped_after_a_poll_warns(
    bootstrap: str, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    name = topic()
    consumers = [penstock.Consumer(bootstrap_servers=bootstrap, group_id=f"{name}-left")]
    told: list[bool] = []
    consumers[0].subscribe([name], on_assign=lambda consumer, _: told.append(isinstance(consumer, penstock.Consumer)))
    while not told:
        consumers[0].poll(300)
    assert told == [True]
    with pytest.warns(ResourceWarning, match="was not closed") as warned:
        _drop(consumers)
    assert len(warned) == 1, "the face speaks for what it stands before"
    assert f"was dropped without close(): group {name}-left keeps its partitions" in caplog.text


def test_streams_dropped_while_they_are_open_say_so_once(
    bootstrap: str, topic: Callable[..., str], caplog: pytest.LogCaptureFixture
) -> None:
    name = topic()
    streams = [penstock.MessageStreams(bootstrap_servers=bootstrap, group_id=f"{name}-left", topics=name)]
    with pytest.warns(ResourceWarning, match="message streams was not closed") as warned:
        _drop(streams)
    assert len(warned) == 1
    assert caplog.text.count(f"was dropped without close(): group {name}-left keeps its partitions") == 1


def _drop(clients: list[Any]) -> None:
    clients.clear()
    gc.collect()
