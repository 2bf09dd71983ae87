"""One connection on a transport made of lists."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.network.connection import Connection
from penstock.network.encoding import EncodedBody
from penstock.network.errors import (
    ClosedHere,
    Disconnected,
    InvalidRequest,
    NetworkError,
    ProtocolViolation,
    RequestTimedOut,
)
from penstock.network.in_flight import Frame
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.requests import encode_response, read_request_header
from tests.unit.network.fakes import ADDRESS, FakeTransport, FakeWorld, settle


def heartbeat(connection: Connection, generation: int = 0, **options: Any) -> asyncio.Future[Any]:
    return connection.send(
        ApiKey.HEARTBEAT, 4, HeartbeatRequest(group_id="g", generation_id=generation, member_id="m"), **options
    )


def answer(correlation_id: int, error_code: int = 0) -> bytes:
    return encode_response(ApiKey.HEARTBEAT, 4, correlation_id, HeartbeatResponse(error_code=error_code))


def raw(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def error_of(future: asyncio.Future[Any]) -> NetworkError:
    await settle()
    assert future.done(), "the request hangs"
    error = future.exception()
    assert isinstance(error, NetworkError)
    assert str(ADDRESS) in str(error)
    return error


async def test_answers_come_to_their_requests() -> None:
    connection, transport = FakeWorld().connection()
    futures = [heartbeat(connection) for _ in range(3)]
    ids = [read_request_header(written[4:]).correlation_id for written in transport.writes]
    assert ids == [0, 1, 2]
    transport.feed(answer(0, 5) + answer(1, 6))
    assert [future.done() for future in futures] == [True, True, False]
    transport.feed(answer(2, 7), chunk=1)
    assert [future.result().error_code for future in futures] == [5, 6, 7]
    assert connection.in_flight == 0


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(0, 3), min_size=1, max_size=40), st.integers(1, 200))
def test_any_interleaving(steps: list[int], chunk: int) -> None:
    async def run() -> None:
        world = FakeWorld(max_in_flight_requests_per_connection=4)
        connection, transport = world.connection()
        rooms: list[bool] = []
        connection.on_room = lambda: rooms.append(connection.has_room)
        waiting: list[tuple[int, asyncio.Future[Any]]] = []
        sent = 0
        for step in steps:
            if step == 0 and waiting:
                number, future = waiting.pop(0)
                had_room = connection.has_room
                rooms.clear()
                transport.feed(answer(number, number % 100), chunk)
                assert future.result().error_code == number % 100
                assert rooms == ([] if had_room else [True])
            elif connection.has_room:
                waiting.append((sent, heartbeat(connection)))
                sent += 1
            assert connection.in_flight == len(waiting)
            assert connection.has_room == (len(waiting) < 4)
        connection.close()
        for _, future in waiting:
            assert isinstance(future.exception(), ClosedHere)

    asyncio.run(run())


async def test_a_large_answer_is_handed_out_without_a_copy() -> None:
    connection, transport = FakeWorld().connection()
    seen: list[Any] = []

    def keep(frame: Frame, version: int) -> Frame:
        seen.append((frame, version))
        return frame

    future = heartbeat(connection, decode=keep)
    body = struct.pack(">i", 0) + b"x" * 300_000
    transport.feed(raw(body), chunk=50_000)
    frame = future.result()
    assert isinstance(frame, memoryview)
    assert seen == [(frame, 4)]
    later = heartbeat(connection, decode=lambda frame, version: frame)
    transport.feed(raw(struct.pack(">i", 1) + b"y" * 300_000))
    assert bytes(frame) == body
    assert bytes(later.result()[4:8]) == b"yyyy"


async def test_a_body_in_parts() -> None:
    connection, transport = FakeWorld().connection()
    small = connection.send(ApiKey.HEARTBEAT, 4, EncodedBody([b"ab", memoryview(b"cd")]))
    assert len(transport.writes) == 1
    assert transport.writes[0].endswith(b"\x00\x04test\x00abcd")
    large = memoryview(bytes(100_000))
    connection.send(ApiKey.HEARTBEAT, 4, EncodedBody([b"head", large]))
    assert [len(part) for part in transport.writes[2:]] == [4, 100_000]
    connection.close()
    assert isinstance(small.exception(), ClosedHere)


async def test_a_request_without_an_answer() -> None:
    connection, transport = FakeWorld().connection()
    assert heartbeat(connection, expects_answer=False).result() is None
    assert connection.in_flight == 0
    answered = heartbeat(connection)
    transport.feed(answer(1))
    assert answered.result().error_code == 0


async def test_no_room_while_the_transport_is_full() -> None:
    connection, _ = FakeWorld().connection()
    calls: list[int] = []
    connection.on_room = lambda: calls.append(1)
    connection.pause_writing()
    assert not connection.has_room
    connection.resume_writing()
    assert connection.has_room
    assert calls == [1]


async def test_time_out_ends_the_connection() -> None:
    world = FakeWorld()
    connection, transport = world.connection()
    patient = heartbeat(connection, timeout_ms=5_000)
    hasty = heartbeat(connection, timeout_ms=1_000)
    closed: list[NetworkError] = []
    connection.on_closed = closed.append
    await world.time.advance(0.999)
    assert not hasty.done()
    await world.time.advance(0.001)
    timed_out = await error_of(hasty)
    assert isinstance(timed_out, RequestTimedOut)
    assert timed_out.was_sent
    assert "no answer to Heartbeat in time" in str(timed_out)
    other = await error_of(patient)
    assert isinstance(other, Disconnected)
    assert other.was_sent
    assert transport.aborted
    assert [type(error) for error in closed] == [RequestTimedOut]
    assert world.time.timers() == 0


async def test_the_time_out_of_the_settings_and_answers_in_time() -> None:
    world = FakeWorld(request_timeout_ms=2_000)
    connection, transport = world.connection()
    for number in range(10):
        future = heartbeat(connection)
        await world.time.advance(1.5)
        transport.feed(answer(number))
        assert future.result().error_code == 0
    assert world.time.timers() == 1
    late = heartbeat(connection)
    await world.time.advance(2)
    assert isinstance(await error_of(late), RequestTimedOut)


async def test_a_cancelled_request_keeps_its_place() -> None:
    world = FakeWorld()
    connection, transport = world.connection()
    given_up, wanted = heartbeat(connection), heartbeat(connection)
    given_up.cancel()
    transport.feed(answer(0, 1) + answer(1, 2))
    assert wanted.result().error_code == 2
    cancelled = heartbeat(connection)
    cancelled.cancel()
    await world.time.advance(30)
    assert isinstance(connection.close_reason, RequestTimedOut)
    assert "given up" in str(connection.close_reason)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (answer(1), "correlation id 1 came where 0 was expected"),
        (raw(b"ab"), "2 bytes is shorter than its header"),
        (struct.pack(">i", 0), "0 bytes"),
        (struct.pack(">i", -5), "-5 bytes"),
        (struct.pack(">i", 2**31 - 1), "over the limit"),
        (b"HTTP/1.1 400 Bad Request", "an HTTP server answers here"),
        (raw(struct.pack(">i", 0) + b"\x00\x01"), "the answer to Heartbeat v4 cannot be read"),
    ],
)
async def test_what_is_no_answer_ends_the_connection(data: bytes, words: str) -> None:
    connection, transport = FakeWorld().connection()
    futures = [heartbeat(connection), heartbeat(connection)]
    transport.feed(data)
    for future in futures:
        error = await error_of(future)
        assert isinstance(error, ProtocolViolation)
        assert words in str(error)
        assert error.was_sent
    assert transport.aborted


async def test_an_answer_nobody_asked_for() -> None:
    connection, transport = FakeWorld().connection()
    transport.feed(answer(0))
    assert isinstance(connection.close_reason, ProtocolViolation)


@given(st.binary(max_size=200), st.integers(1, 50))
@settings(max_examples=100, deadline=None)
def test_garbage_ends_it_or_waits_for_more(data: bytes, chunk: int) -> None:
    async def run() -> None:
        connection, transport = FakeWorld().connection()
        future = heartbeat(connection)
        transport.feed(data, chunk)
        transport.lose()
        assert future.done()
        assert future.exception() is None or isinstance(future.exception(), NetworkError)
        assert connection.close_reason is not None

    asyncio.run(run())


@pytest.mark.parametrize(
    ("before", "error", "words"),
    [
        (b"", None, "the broker closed the connection"),
        (b"", ConnectionResetError("reset by peer"), "reset by peer"),
        (answer(0)[:3], None, "after 3 of 4 bytes"),
        (answer(0)[:6], None, "after 2 of"),
        (raw(bytes(200_000))[:100_000], None, "after 99996 of 200000 bytes"),
    ],
)
async def test_the_broker_goes_away(before: bytes, error: Exception | None, words: str) -> None:
    connection, transport = FakeWorld().connection()
    future = heartbeat(connection)
    transport.feed(before)
    transport.lose(error)
    found = await error_of(future)
    assert isinstance(found, Disconnected)
    assert words in str(found)
    assert found.was_sent
    # And nothing more can be sent.
    after = await error_of(heartbeat(connection))
    assert isinstance(after, Disconnected)
    assert not after.was_sent
    assert not connection.has_room


async def test_closed_here_lets_written_bytes_go() -> None:
    world = FakeWorld()
    connection, transport = world.connection()
    transport.unsent = 100
    heartbeat(connection, expects_answer=False)
    closed: list[NetworkError] = []
    connection.on_closed = closed.append
    connection.close()
    connection.close()
    assert transport.closing
    assert not transport.aborted
    assert [type(error) for error in closed] == [ClosedHere]
    await world.time.advance(5)
    assert transport.aborted


async def test_a_message_that_fits_no_version_is_our_own_mistake() -> None:
    connection, transport = FakeWorld().connection()
    broken = connection.send(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(key_type=1000))
    assert isinstance(await error_of(broken), InvalidRequest)
    assert transport.writes == []
    good = connection.send(ApiKey.FIND_COORDINATOR, 4, FindCoordinatorRequest(coordinator_keys=["k"]))
    header = read_request_header(transport.writes[0][4:])
    transport.feed(encode_response(ApiKey.FIND_COORDINATOR, 4, header.correlation_id, FindCoordinatorResponse()))
    assert good.result() == FindCoordinatorResponse()


async def test_a_decoder_that_fails_leaves_no_request_behind() -> None:
    connection, transport = FakeWorld().connection()

    def broken(frame: object, version: int) -> object:
        raise RuntimeError("a mistake in the caller's own code")

    future = heartbeat(connection, decode=broken)
    with pytest.raises(RuntimeError):
        transport.feed(answer(0))
    # The loop answers such an error by breaking the connection.
    transport.lose(RuntimeError("a mistake in the caller's own code"))
    assert isinstance(await error_of(future), Disconnected)


async def test_answers_of_a_handshake_are_small() -> None:
    world = FakeWorld()
    connection = Connection(ADDRESS, world.ports, world.settings)
    transport: Any = FakeTransport(connection, None)
    connection.connection_made(transport)
    future = heartbeat(connection)
    # A TLS alert, which is a size below the limit for ordinary answers.
    transport.feed(b"\x15\x03\x03\x00\x02\x02\x46")
    error = await error_of(future)
    assert isinstance(error, ProtocolViolation)
    assert "a TLS server answers here" in str(error)
