"""Outgoing connections on real sockets: to a broker, and to servers that do everything wrong."""

from __future__ import annotations

import asyncio
import random
import socket
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvloop

from penstock.base.system import SystemWorld
from penstock.network.address import Address
from penstock.network.encoding import EncodedBody
from penstock.network.errors import (
    ConnectFailed,
    Disconnected,
    NetworkError,
    ProtocolViolation,
    RequestTimedOut,
)
from penstock.network.pool import ChannelPool
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.codec import encode
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from penstock.protocol.messages.metadata import MetadataRequest
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import batch, create_topic, fetch_request, fetch_topic, produce_request, read_values
from tests.integration.misbehaving import Peer, Script, misbehaving
from tests.support.brokers import PenstockBroker
from tests.support.ports import free_port

Run = Callable[[Coroutine[Any, Any, None]], None]

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a coroutine on one loop and then the other: they treat protocols differently."""
    factory = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run_it(work: Coroutine[Any, Any, None]) -> None:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(work, 60))

    return run_it


@asynccontextmanager
async def pool_to(address: Address, **settings: Any) -> AsyncIterator[ChannelPool]:
    world = SystemWorld(asyncio.get_running_loop(), threads=1)
    pool = ChannelPool(
        endpoints=lambda node_id: address,
        ports=NetworkPorts(network=world.network, clock=world.clock, tasks=world.tasks, rng=random.Random(1)),
        settings=NetworkSettings(client_id="test", **settings),
    )
    try:
        yield pool
    finally:
        await pool.close()
        await world.close()


async def beat(pool: ChannelPool, **options: Any) -> HeartbeatResponse:
    response: HeartbeatResponse = await pool.send(1, ApiKey.HEARTBEAT, HEARTBEAT, **options)
    return response


async def error_of(script: Script, *, timeout_ms: int = 5_000, **settings: Any) -> NetworkError:
    """The one request against this script fails; how."""
    async with misbehaving(script) as address, pool_to(address, **settings) as pool:
        with pytest.raises(NetworkError) as caught:
            await beat(pool, timeout_ms=timeout_ms)
        assert str(address) in str(caught.value)
        return caught.value


# Against servers that do it wrong.


def test_never_answers(run: Run) -> None:
    """A half-open connection: the request ends in time, and the next one is sent over a new connection."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        if peer.number == 0:
            await asyncio.sleep(60)
        await peer.answer_all(HeartbeatResponse())

    async def work() -> None:
        async with misbehaving(script) as address, pool_to(address) as pool:
            await pool.ready(1)
            began = time.monotonic()
            with pytest.raises(RequestTimedOut) as caught:
                await beat(pool, timeout_ms=300)
            assert time.monotonic() - began > 0.25
            assert caught.value.was_sent
            assert (await beat(pool)).error_code == 0

    run(work())


def test_answers_late(run: Run) -> None:
    """The late answer to one request is not taken for the answer to the next."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        header = await peer.request()
        if peer.number == 0:
            await asyncio.sleep(0.4)
            peer.answer(header, HeartbeatResponse(error_code=1))
            await peer.answer_all(HeartbeatResponse(error_code=2))
        peer.answer(header, HeartbeatResponse(error_code=3))
        await peer.answer_all(HeartbeatResponse(error_code=3))

    async def work() -> None:
        async with misbehaving(script) as address, pool_to(address) as pool:
            await pool.ready(1)
            with pytest.raises(RequestTimedOut):
                await beat(pool, timeout_ms=200)
            for _ in range(5):
                assert (await beat(pool)).error_code == 3
                await asyncio.sleep(0.1)

    run(work())


def test_slow_but_right(run: Run) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        frame = peer.frame(await peer.request(), HeartbeatResponse(error_code=7))
        for position in range(len(frame)):
            peer.writer.write(frame[position : position + 1])
            await asyncio.sleep(0.01)
        await asyncio.sleep(60)

    async def work() -> None:
        async with misbehaving(script) as address, pool_to(address) as pool:
            assert (await beat(pool)).error_code == 7

    run(work())


def test_wrong_correlation_id(run: Run) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        header = await peer.request()
        peer.answer(header._replace(correlation_id=header.correlation_id + 1), HeartbeatResponse())
        await asyncio.sleep(60)

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, ProtocolViolation)
        assert "correlation id 2 came where 1 was expected" in str(error)

    run(work())


def test_closes_inside_an_answer(run: Run) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        peer.writer.write(peer.frame(await peer.request(), HeartbeatResponse())[:-3])

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, Disconnected)
        assert error.was_sent
        assert "bytes of an answer" in str(error)

    run(work())


def test_closes_inside_a_large_answer(run: Run) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        peer.writer.write((100 << 20).to_bytes(4, "big") + bytes(300_000))
        await peer.writer.drain()

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, Disconnected)
        assert "after 300000 of 104857600 bytes" in str(error)

    run(work())


def test_resets_the_connection(run: Run) -> None:
    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.request()
        peer.reset()

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, Disconnected)
        assert error.retriable

    run(work())


@pytest.mark.parametrize(
    ("greeting", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n", "an HTTP server answers here"),
        (b"\x15\x03\x03\x00\x02\x02\x46", "a TLS server answers here"),
        (b"SSH-2.0-OpenSSH_9.6\r\n", "an SSH server answers here"),
        (b"\xff" * 64, "is this a Kafka broker?"),
        (b"\x00" * 64, "is this a Kafka broker?"),
        (b"\x00\x00\x00\x10" + b"\x00" * 4 + b"\xff" * 12, "the answer to ApiVersions"),
    ],
)
def test_something_else_listens_there(run: Run, greeting: bytes, words: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        peer.writer.write(greeting)
        await asyncio.sleep(60)

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, ProtocolViolation)
        assert words in str(error)

    run(work())


def test_something_else_speaks_first(run: Run) -> None:
    async def script(peer: Peer) -> None:
        peer.writer.write(b"220 mail.example ESMTP\r\n")
        await asyncio.sleep(60)

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, ProtocolViolation)
        assert "a mail or FTP server" in str(error)

    run(work())


def test_closes_at_once(run: Run) -> None:
    async def script(peer: Peer) -> None:
        return

    async def work() -> None:
        error = await error_of(script)
        assert isinstance(error, ConnectFailed)
        assert "during the handshake" in str(error)

    run(work())


def test_silent_from_the_start(run: Run) -> None:
    async def script(peer: Peer) -> None:
        await asyncio.sleep(60)

    async def work() -> None:
        error = await error_of(
            script, socket_connection_setup_timeout_ms=200, socket_connection_setup_timeout_max_ms=400
        )
        assert isinstance(error, ConnectFailed)
        assert "within 200 ms" in str(error)

    run(work())


def test_nobody_accepts(run: Run) -> None:
    """The backlog is full: packets to it are dropped, and only the time-out ends the attempt."""

    async def work() -> None:
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen(0)
            address = Address("127.0.0.1", listening.getsockname()[1])
            fillers = [socket.socket() for _ in range(4)]
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(address)
            async with pool_to(
                address, socket_connection_setup_timeout_ms=300, socket_connection_setup_timeout_max_ms=300
            ) as pool:
                with pytest.raises(ConnectFailed, match="within 300 ms"):
                    await beat(pool)
            for filler in fillers:
                filler.close()

    run(work())


def test_nobody_listens(run: Run) -> None:
    async def work() -> None:
        address = Address("127.0.0.1", free_port())
        async with pool_to(address) as pool:
            results = await asyncio.gather(*(beat(pool) for _ in range(20)), return_exceptions=True)
        assert all(isinstance(result, ConnectFailed) for result in results)
        assert f"{address}: nothing listens there" in str(results[0])

    run(work())


def test_a_host_that_is_not_known(run: Run) -> None:
    async def work() -> None:
        async with pool_to(Address("no-such-host.invalid", 9092)) as pool:
            with pytest.raises(ConnectFailed, match=r"'no-such-host\.invalid' is not known"):
                await beat(pool)

    run(work())


def test_many_requests_one_after_the_other_in_flight(run: Run) -> None:
    """More than fit in flight, answered out of step with the sending, some in one packet."""

    async def script(peer: Peer) -> None:
        await peer.greet()
        number = 0
        while True:
            frames = []
            for _ in range(3):
                frames.append(peer.frame(await peer.request(), HeartbeatResponse(error_code=number % 100)))
                number += 1
            peer.writer.write(b"".join(frames))

    async def work() -> None:
        async with misbehaving(script) as address, pool_to(address, max_in_flight_requests_per_connection=4) as pool:
            answers = await asyncio.gather(*(beat(pool) for _ in range(600)))
            assert [answer.error_code for answer in answers] == [number % 100 for number in range(600)]

    run(work())


def test_large_answers(run: Run) -> None:
    groups = [ListedGroup(group_id=f"group {number:07}", protocol_type="consumer") for number in range(20_000)]

    async def script(peer: Peer) -> None:
        await peer.greet()
        await peer.answer_all(ListGroupsResponse(groups=groups))

    async def work() -> None:
        async with misbehaving(script) as address, pool_to(address) as pool:
            requests = [pool.send(1, ApiKey.LIST_GROUPS, ListGroupsRequest()) for _ in range(3)]
            for response in await asyncio.gather(*requests):
                assert len(response.groups) == 20_000
                assert response.groups[-1].group_id == "group 0019999"

    run(work())


# Against a broker.


def test_a_broker(run: Run, broker: PenstockBroker) -> None:
    async def work() -> None:
        async with pool_to(Address("127.0.0.1", broker.port)) as pool:
            versions = await pool.ready(1)
            assert versions.pick(ApiKey.METADATA) == APIS[ApiKey.METADATA].highest_version
            metadata = await pool.send(1, ApiKey.METADATA, MetadataRequest(topics=[]))
            assert [node.port for node in metadata.brokers] == [broker.port]

    run(work())


@pytest.mark.parametrize("records_bytes", [100, 3_000_000])
def test_produce_in_parts_and_fetch_the_frame(
    run: Run, broker: PenstockBroker, connect: Connect, topic: str, records_bytes: int
) -> None:
    """What a fast client does: batches go out from where they are, fetched frames come in without a copy."""
    client = connect()
    topic_id = create_topic(client, topic, max_message_bytes="4000000")
    records = batch(b"x" * records_bytes)

    def body(version: int) -> EncodedBody:
        whole = encode(produce_request(topic_id, {0: records}), version, flexible=True)
        return EncodedBody([whole[:10], memoryview(whole)[10:]])

    async def work() -> None:
        async with pool_to(Address("127.0.0.1", broker.port)) as pool:
            answer = await pool.send(1, ApiKey.PRODUCE, body, at_least=13)
            assert answer.responses[0].partition_responses[0].error_code == 0
            none = await pool.send(
                1,
                ApiKey.PRODUCE,
                produce_request(topic_id, {0: batch(b"y")}, acks=0),
                at_least=13,
                expects_answer=False,
            )
            assert none is None
            fetch = fetch_request(fetch_topic(topic_id, {0: 0}, partition_max_bytes=8 << 20), min_bytes=1)
            frame = await pool.send(1, ApiKey.FETCH, fetch, decode=lambda frame, version: frame)
            assert isinstance(frame, bytes if records_bytes < 60_000 else memoryview)
            assert records[21:] in bytes(frame)

    run(work())
    assert [len(value or b"") for value in read_values(client, topic)] == [records_bytes, 1]


def test_a_broker_that_is_killed_and_comes_back(run: Run, start_broker: StartBroker) -> None:
    own = start_broker()

    async def work() -> None:
        async with pool_to(Address("127.0.0.1", own.port), reconnect_backoff_max_ms=100) as pool:
            request = MetadataRequest(topics=[])
            await pool.send(1, ApiKey.METADATA, request)
            await asyncio.to_thread(own.kill)
            for _ in range(10):
                with pytest.raises((Disconnected, ConnectFailed)):
                    await pool.send(1, ApiKey.METADATA, request, timeout_ms=2_000)
                await asyncio.sleep(0.03)
            await asyncio.to_thread(own.start)
            deadline = time.monotonic() + 5
            while True:
                try:
                    await pool.send(1, ApiKey.METADATA, request)
                except NetworkError as error:
                    if not error.retriable or time.monotonic() > deadline:
                        raise
                    await asyncio.sleep(0.02)
                else:
                    break

    run(work())


def test_a_broker_that_is_stopped_in_mid_air(run: Run, start_broker: StartBroker) -> None:
    """SIGSTOP: the socket is open, the kernel takes the request, nobody answers it."""
    own = start_broker()
    assert own.process is not None
    process = own.process.process

    async def work() -> None:
        async with pool_to(Address("127.0.0.1", own.port)) as pool:
            request = MetadataRequest(topics=[])
            await pool.send(1, ApiKey.METADATA, request)
            process.send_signal(19)
            try:
                with pytest.raises(RequestTimedOut):
                    await pool.send(1, ApiKey.METADATA, request, timeout_ms=300)
            finally:
                process.send_signal(18)
            answer = await pool.send(1, ApiKey.METADATA, request)
            assert answer.error_code == 0

    run(work())
