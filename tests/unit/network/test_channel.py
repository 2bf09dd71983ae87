"""Reaching a broker: handshake, queue, deadlines, back-off; then the pool of all of them."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.network.address import Address
from penstock.network.channel import TRANSITIONS, ChannelState, NodeChannel
from penstock.network.errors import (
    ClosedHere,
    ConnectFailed,
    Disconnected,
    NetworkError,
    ProtocolViolation,
    QueueFull,
    RequestTimedOut,
    UnknownNode,
    UnsupportedVersion,
)
from penstock.network.handshake import Opening, agree_on_versions, fallback_version, open_connection
from penstock.network.pool import ChannelPool
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.requests import encode_response
from tests.unit.network.fakes import ADDRESS, FakeWorld, settle

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
REFUSED = ConnectionRefusedError(111, "Connect call failed")


def make_channel(world: FakeWorld, **options: Any) -> NodeChannel:
    return NodeChannel("node 1", lambda: ADDRESS, world.ports, world.settings, **options)


def send(channel: NodeChannel, **options: Any) -> asyncio.Future[Any]:
    return channel.send(ApiKey.HEARTBEAT, HEARTBEAT, **options)


def answer_next(world: FakeWorld, error_code: int = 0) -> None:
    world.broker.asked.pop(0).answer(HeartbeatResponse(error_code=error_code))


async def error_of(future: asyncio.Future[Any]) -> NetworkError:
    await settle()
    assert future.done(), "the request hangs"
    error = future.exception()
    assert isinstance(error, NetworkError), error
    return error


# Handshake.


async def test_the_highest_common_version_is_spoken() -> None:
    world = FakeWorld()
    world.broker.served = (
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=9),
        ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=1, max_version=3),
    )
    channel = make_channel(world)
    future = send(channel)
    await settle()
    assert world.broker.asked[0].version == 3
    answer_next(world)
    assert (await future).error_code == 0
    assert world.broker.handshakes == 1
    narrowed = send(channel, at_most=2)
    assert world.broker.asked[0].version == 2
    answer_next(world)
    await narrowed
    assert isinstance(await error_of(send(channel, at_least=4)), UnsupportedVersion)
    assert isinstance(await error_of(channel.send(ApiKey.FETCH, object())), UnsupportedVersion)


@pytest.mark.parametrize(("broker_highest", "expected"), [(0, 0), (2, 2), (3, 3)])
async def test_an_older_broker_is_asked_again(broker_highest: int, expected: int) -> None:
    world = FakeWorld()
    world.broker.served = (
        ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=broker_highest),
        ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=4),
    )
    channel = make_channel(world)
    versions = await channel.ready()
    assert world.broker.handshakes == 2
    assert versions.pick(ApiKey.HEARTBEAT) == 4
    assert versions.features == ({"transaction.version": 2} if expected >= 3 else {})


def test_a_broker_too_old_to_say_what_it_knows_is_asked_in_version_0() -> None:
    refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    assert fallback_version(ADDRESS, refusal) == 0


async def test_a_refused_handshake() -> None:
    world = FakeWorld()
    world.broker.greets = False
    future = send(make_channel(world))
    await settle()
    refusal = ApiVersionsResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    world.network.transports[0].feed(encode_response(ApiKey.API_VERSIONS, 4, 0, refusal))
    error = await error_of(future)
    assert isinstance(error, ConnectFailed)
    assert "ILLEGAL_SASL_STATE" in str(error)
    assert world.network.transports[0].closing


async def test_a_stranger_at_the_address() -> None:
    world = FakeWorld()
    world.broker.greets = False
    future = send(make_channel(world))
    await settle()
    world.network.transports[0].feed(b"HTTP/1.1 400 Bad Request\r\n")
    error = await error_of(future)
    assert isinstance(error, ProtocolViolation)
    assert str(error).startswith("broker.example:9092: an HTTP server answers here")


async def test_a_broker_that_closes_during_the_handshake() -> None:
    world = FakeWorld()
    world.broker.greets = False
    future = send(make_channel(world))
    await settle()
    world.network.transports[0].lose()
    error = await error_of(future)
    assert isinstance(error, ConnectFailed)
    assert "security.protocol" in str(error)


async def test_steps_are_taken_in_order_and_one_that_fails_closes() -> None:
    world = FakeWorld()
    order: list[str] = []

    async def second(opening: Opening) -> None:
        order.append(f"versions {opening.versions.pick(ApiKey.HEARTBEAT)}")
        raise ConnectFailed(opening.connection.address, "authentication was refused")

    with pytest.raises(ConnectFailed, match="authentication was refused"):
        await open_connection(ADDRESS, world.ports, world.settings, timeout_ms=1000, steps=(agree_on_versions, second))
    assert order == ["versions 4"]
    assert world.network.transports[0].closing
    await settle()
    assert world.time.timers() == 0


# Connecting.


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (REFUSED, "nothing listens there"),
        (socket.gaierror(-2, "Name or service not known"), "the host name 'broker.example' is not known"),
        (OSError(101, "Network is unreachable"), "Network is unreachable"),
    ],
)
async def test_failures_to_connect_have_words(failure: OSError, words: str) -> None:
    world = FakeWorld()
    world.network.script = [failure]
    error = await error_of(send(make_channel(world)))
    assert isinstance(error, ConnectFailed)
    assert error.retriable
    assert not error.was_sent
    assert words in str(error)
    assert "broker.example:9092" in str(error)


@pytest.mark.parametrize("silent", ["network", "broker"])
async def test_a_connection_that_does_not_come_about_in_time(silent: str) -> None:
    world = FakeWorld(socket_connection_setup_timeout_ms=1_000, socket_connection_setup_timeout_max_ms=3_000)
    if silent == "network":
        world.network.script = ["hang", "hang", "hang"]
    world.broker.greets = False
    channel = make_channel(world)
    for patience in (1.0, 2.0, 3.0):
        future = send(channel)
        await world.time.advance(patience - 0.01)
        assert not future.done()
        await world.time.advance(0.01)
        error = await error_of(future)
        assert isinstance(error, ConnectFailed)
        assert f"within {patience * 1000:.0f} ms" in str(error)
        await world.time.advance(2)
    assert all(transport.closing for transport in world.network.transports)


async def test_back_off_doubles_and_is_forgotten_after_a_success() -> None:
    world = FakeWorld(reconnect_backoff_ms=100, reconnect_backoff_max_ms=1_000)
    world.network.script = [REFUSED] * 7
    channel = make_channel(world)
    waits = []
    while world.network.script:
        assert isinstance(await error_of(send(channel)), ConnectFailed)
        failed_at = world.time.now
        attempts = len(world.network.attempts)
        # Until the back-off is over every request fails at once, without an attempt.
        while len(world.network.attempts) == attempts and world.network.script:
            await world.time.advance(0.01)
            error = await error_of(send(channel))
            assert isinstance(error, ConnectFailed)
        waits.append(world.time.now - failed_at)
    for wait, expected in zip(waits[:-1], [0.1, 0.2, 0.4, 0.8, 1.0, 1.0], strict=False):
        assert expected * 0.8 - 0.011 <= wait <= min(expected * 1.2, 1.0) + 0.011
    await world.time.advance(1.1)
    future = send(channel)
    await settle()
    answer_next(world)
    await future
    await world.time.advance(5)
    world.network.transports[-1].lose()
    world.network.script = [REFUSED]
    assert isinstance(await error_of(send(channel)), ConnectFailed)
    await world.time.advance(0.121)
    assert not send(channel).done()
    await channel.close()


async def test_everything_that_waits_fails_together() -> None:
    world = FakeWorld()
    world.network.script = [REFUSED]
    channel = make_channel(world)
    futures = [send(channel) for _ in range(5)]
    errors = [await error_of(future) for future in futures]
    assert all(isinstance(error, ConnectFailed) for error in errors)
    assert len(set(map(id, errors))) == 5
    assert len(world.network.attempts) == 1


async def test_a_node_without_an_address() -> None:
    world = FakeWorld()
    address: Address | None = None
    channel = NodeChannel("node 9", lambda: address, world.ports, world.settings)
    error = await error_of(send(channel))
    assert isinstance(error, UnknownNode)
    assert "node 9" in str(error)
    assert error.code is ErrorCode.BROKER_NOT_AVAILABLE
    address = ADDRESS
    await world.time.advance(0.1)
    future = send(channel)
    await settle()
    answer_next(world)
    await future


# Queue.


async def test_requests_wait_for_the_connection_and_for_room() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=2)
    channel = make_channel(world)
    futures = [send(channel) for _ in range(5)]
    assert not channel.has_room
    await settle()
    assert len(world.broker.asked) == 2
    for number in range(5):
        answer_next(world, number)
        assert len(world.broker.asked) == min(2, 4 - number)
    assert [(await future).error_code for future in futures] == [0, 1, 2, 3, 4]
    assert channel.has_room
    assert len(world.network.attempts) == 1


async def test_the_queue_is_bounded() -> None:
    world = FakeWorld(queued_requests_max=3)
    world.network.script = ["hang"]
    channel = make_channel(world)
    waiting = [send(channel) for _ in range(3)]
    error = await error_of(send(channel))
    assert isinstance(error, QueueFull)
    assert error.retriable
    # A request that was given up does not count.
    waiting[1].cancel()
    assert not send(channel).done()
    await channel.close()


async def test_deadlines_hold_in_the_queue_too() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=1)
    channel = make_channel(world)
    first = send(channel, timeout_ms=60_000)
    await settle()
    second, third = send(channel, timeout_ms=1_000), send(channel, timeout_ms=3_000)
    await world.time.advance(1)
    error = await error_of(second)
    assert isinstance(error, RequestTimedOut)
    assert not error.was_sent
    assert "not sent in time: earlier requests were not answered" in str(error)
    assert not first.done()
    # Waiting counts: only what is left of its time remains for the answer.
    await world.time.advance(1)
    answer_next(world)
    await first
    await settle()
    assert len(world.broker.asked) == 1
    await world.time.advance(0.999)
    assert not third.done()
    await world.time.advance(0.001)
    late = await error_of(third)
    assert isinstance(late, RequestTimedOut)
    assert late.was_sent


async def test_a_deadline_before_the_connection() -> None:
    world = FakeWorld()
    world.network.script = ["hang"]
    channel = make_channel(world)
    future = send(channel, timeout_ms=500)
    await world.time.advance(0.5)
    error = await error_of(future)
    assert isinstance(error, RequestTimedOut)
    assert "no connection came about" in str(error)
    await channel.close()


async def test_cancelled_requests_are_not_sent() -> None:
    world = FakeWorld()
    channel = make_channel(world)
    given_up, wanted = send(channel), send(channel)
    given_up.cancel()
    await settle()
    assert len(world.broker.asked) == 1
    answer_next(world, 9)
    assert (await wanted).error_code == 9


async def test_a_message_made_for_the_version() -> None:
    world = FakeWorld()
    channel = make_channel(world)
    made: list[int] = []

    def build(version: int) -> HeartbeatRequest:
        made.append(version)
        return HEARTBEAT

    future = channel.send(ApiKey.HEARTBEAT, build, at_most=3)
    await settle()
    assert made == [3]
    answer_next(world)
    await future

    def broken(version: int) -> HeartbeatRequest:
        raise LookupError("no such topic")

    with pytest.raises(LookupError):
        await channel.send(ApiKey.HEARTBEAT, broken)
    assert channel.has_room


async def test_room_is_announced() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=1)
    channel = make_channel(world)
    calls: list[bool] = []
    channel.on_room = lambda: calls.append(channel.has_room)
    await channel.ready()
    await settle()
    assert calls == [True]
    future = send(channel)
    assert not channel.has_room
    answer_next(world)
    await future
    assert calls == [True, True]


# Losing the connection.


async def test_the_next_request_connects_again() -> None:
    world = FakeWorld()
    channel = make_channel(world)
    await channel.ready()
    await world.time.advance(1)
    lost = send(channel)
    world.network.transports[0].lose()
    error = await error_of(lost)
    assert isinstance(error, Disconnected)
    assert error.was_sent
    assert channel.state is ChannelState.IDLE
    future = send(channel)
    await settle()
    answer_next(world)
    answer_next(world)
    await future
    assert len(world.network.attempts) == 2


async def test_what_was_not_sent_goes_over_the_next_connection() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=1)
    channel = make_channel(world)
    await channel.ready()
    await world.time.advance(1)
    sent, waiting = send(channel), send(channel)
    world.network.transports[0].lose()
    assert isinstance(await error_of(sent), Disconnected)
    await settle()
    assert world.broker.asked[1].transport is world.network.transports[1]
    world.broker.asked[1].answer(HeartbeatResponse(error_code=3))
    assert (await waiting).error_code == 3


async def test_a_connection_that_ends_at_once_is_not_made_again_at_once() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=1)
    channel = make_channel(world)
    await channel.ready()
    sent, waiting = send(channel), send(channel)
    world.network.transports[0].lose()
    assert (await error_of(sent)).was_sent
    unsent = await error_of(waiting)
    assert isinstance(unsent, Disconnected)
    assert not unsent.was_sent
    assert isinstance(await error_of(send(channel)), Disconnected)
    assert len(world.network.attempts) == 1
    await world.time.advance(0.06)
    assert not send(channel).done()
    await channel.close()


async def test_a_time_out_gives_the_others_a_new_connection() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=1)
    channel = make_channel(world)
    await channel.ready()
    hanging, waiting = send(channel, timeout_ms=1_000), send(channel, timeout_ms=10_000)
    await world.time.advance(1)
    assert isinstance(await error_of(hanging), RequestTimedOut)
    # A late answer goes nowhere.
    world.broker.asked[0].answer(HeartbeatResponse(error_code=1))
    world.broker.asked[1].answer(HeartbeatResponse(error_code=2))
    assert (await waiting).error_code == 2


# Closing.


async def test_close_fails_everything_and_refuses_the_rest() -> None:
    world = FakeWorld(max_in_flight_requests_per_connection=1)
    channel = make_channel(world)
    await channel.ready()
    futures = [send(channel), send(channel)]
    await channel.close()
    await channel.close()
    for future in [*futures, send(channel), channel.ready()]:
        assert isinstance(await error_of(future), ClosedHere)
    assert channel.state is ChannelState.CLOSED
    assert world.time.timers() == 0


async def test_close_while_connecting() -> None:
    world = FakeWorld()
    world.network.script = ["hang"]
    channel = make_channel(world)
    future = send(channel)
    await settle()
    await channel.close()
    assert isinstance(await error_of(future), ClosedHere)
    assert all(task.done() for task in world.time.tasks)
    assert world.time.timers() == 0


def test_every_state_has_its_transitions() -> None:
    assert set(TRANSITIONS) == set(ChannelState)
    assert TRANSITIONS[ChannelState.CLOSED] == set()


# The pool.


def make_pool(world: FakeWorld, addresses: dict[int, Address]) -> ChannelPool:
    return ChannelPool(endpoints=addresses.get, ports=world.ports, settings=world.settings)


async def test_one_channel_for_each_node() -> None:
    world = FakeWorld()
    addresses = {1: Address("one", 1), 2: Address("two", 2)}
    pool = make_pool(world, addresses)
    futures = [pool.send(node, ApiKey.HEARTBEAT, HEARTBEAT) for node in (1, 2, 1)]
    missing = pool.send(3, ApiKey.HEARTBEAT, HEARTBEAT)
    assert isinstance(await error_of(missing), UnknownNode)
    await settle()
    for _ in range(3):
        answer_next(world)
    await asyncio.gather(*futures)
    assert sorted(address for address, _ in world.network.attempts) == [("one", 1), ("two", 2)]
    assert pool.channel(1) is pool.channel(1)
    assert (await pool.ready(1)).features == {"transaction.version": 2}
    await pool.close()
    assert isinstance(await error_of(pool.send(1, ApiKey.HEARTBEAT, HEARTBEAT)), ClosedHere)
    assert isinstance(await error_of(pool.ready(1)), ClosedHere)
    assert all(transport.closing for transport in world.network.transports)
    assert world.time.timers() == 0


async def test_idle_connections_are_closed() -> None:
    world = FakeWorld(connections_max_idle_ms=8_000, request_timeout_ms=100_000)
    pool = make_pool(world, {1: Address("one", 1), 2: Address("two", 2)})
    await asyncio.gather(pool.ready(1), pool.ready(2))
    hanging = pool.send(2, ApiKey.HEARTBEAT, HEARTBEAT)
    await world.time.advance(7.9)
    assert not any(transport.closing for transport in world.network.transports)
    await world.time.advance(2.2)
    # One that waits for an answer is not idle.
    assert [transport.closing for transport in world.network.transports] == [True, False]
    answer_next(world)
    await hanging
    await world.time.advance(30)
    assert all(transport.closing for transport in world.network.transports)
    again = pool.send(1, ApiKey.HEARTBEAT, HEARTBEAT)
    await settle()
    answer_next(world)
    await again
    await pool.close()


async def test_a_node_that_moves() -> None:
    world = FakeWorld()
    addresses = {1: Address("old", 1), 2: Address("stays", 2)}
    pool = make_pool(world, addresses)
    await asyncio.gather(pool.ready(1), pool.ready(2))
    await world.time.advance(1)
    pool.check_addresses()
    lost = pool.send(1, ApiKey.HEARTBEAT, HEARTBEAT)
    addresses[1] = Address("new", 1)
    pool.check_addresses()
    error = await error_of(lost)
    assert isinstance(error, Disconnected)
    assert "node 1 has moved to new:1" in str(error)
    await pool.ready(1)
    assert [address.host for address, _ in world.network.attempts] == ["old", "stays", "new"]
    await pool.close()
