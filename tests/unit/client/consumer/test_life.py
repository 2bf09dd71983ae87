"""A consumer that is used in a second event loop, or dropped while it is open."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.errors import InvalidState
from tests.support.ports import free_port
from tests.unit.network.fakes import settle


def consumer(**options: Any) -> AsyncConsumer:
    return AsyncConsumer(bootstrap_servers=f"127.0.0.1:{free_port()}", **options)


CALLS: dict[str, Callable[[AsyncConsumer], Awaitable[object]]] = {
    "poll": lambda reader: reader.poll(10_000),
    "position": lambda reader: reader.position(("t", 0)),  # type: ignore[arg-type]
    "commit": lambda reader: reader.commit(),
    "committed": lambda reader: reader.committed([]),
    "list_topics": lambda reader: reader.list_topics(),
    "unsubscribe": lambda reader: reader.unsubscribe(),
    "start": lambda reader: reader.start(),
    "close": lambda reader: reader.close(),
}


@pytest.mark.filterwarnings("ignore:.*was not closed:ResourceWarning")
@pytest.mark.parametrize("call", CALLS)
def test_a_second_event_loop_is_refused(call: str) -> None:
    reader = consumer(group_id="g")
    reader.assign([("t", 0)])  # type: ignore[list-item]
    asyncio.run(reader.start())

    async def again() -> None:
        async with asyncio.timeout(5):
            await CALLS[call](reader)

    with pytest.raises(InvalidState, match="belongs to the event loop in which it was started, and that has been clo"):
        asyncio.run(again())


@pytest.mark.filterwarnings("ignore:.*was not closed:ResourceWarning")
def test_plain_calls_outside_of_the_loop_are_refused() -> None:
    reader = consumer(group_id="g")
    asyncio.run(reader.start())
    with pytest.raises(InvalidState, match="call it in the loop's own thread"):
        reader.subscribe(["t"])


def test_a_consumer_dropped_with_its_group_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def leave_open() -> None:
        reader = consumer(group_id="shop")
        reader.subscribe(["t"])
        await reader.poll(0)

    with pytest.warns(ResourceWarning, match="was not closed: use `async with`, or await close"):
        asyncio.run(leave_open())
    assert "was dropped without close(): group shop keeps its partitions" in caplog.text


async def test_a_dropped_consumer_ends_its_connections() -> None:
    readers = [consumer(group_id="shop")]
    readers[0].subscribe(["t"])
    await readers[0].poll(0)
    core = readers[0]._core
    with pytest.warns(ResourceWarning, match="was not closed"):
        readers.clear()
    await settle()
    assert core.is_closed


@pytest.mark.filterwarnings("error")
async def test_a_consumer_that_was_never_started_or_was_closed_says_nothing() -> None:
    with warnings.catch_warnings(action="ignore"):
        gc.collect()  # what other tests have left
    consumer(group_id="shop")
    async with consumer(group_id="shop"):
        pass
    gc.collect()


class Brittle:
    """Deserializer and interceptor in one: fails when it is closed."""

    def __init__(self) -> None:
        self.was_closed = False

    def deserialize(self, topic: str, value: bytes | None, headers: object) -> object:
        return value

    def close(self) -> None:
        self.was_closed = True
        raise OSError("the file is gone")


async def test_what_fails_when_it_is_closed_holds_up_nothing_else() -> None:
    key, value, interceptor = Brittle(), Brittle(), Brittle()
    reader = consumer(
        group_id="shop", key_deserializer=key, value_deserializer=value, interceptor_classes=[interceptor]
    )
    await reader.start()
    with pytest.raises(OSError, match="the file is gone"):
        await reader.close()
    assert [key.was_closed, value.was_closed, interceptor.was_closed, reader._core.is_closed] == [True] * 4
    await reader.close()
