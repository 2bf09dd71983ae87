"""Connections with real sockets, on both event loops: order, bad input, limits, back-pressure, closing."""

import asyncio
import logging
import resource
import ssl
import struct
from collections.abc import Awaitable, Callable

import pytest

from penstock.server.connection_quotas import ConnectionQuotas
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.session import CloseConnection, Session, SessionLimits
from tests.integration.io_harness import LOOPS, client_of, framed, run_on, serving, until

Run = Callable[[Callable[[], Awaitable[None]]], None]


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    return lambda work: run_on(request.param, work)


def echo(session: Session, frame: bytes) -> Answer:
    return framed(frame)


def test_delayed_answers_keep_the_order(run: Run) -> None:
    async def later(frame: bytes) -> bytes:
        await asyncio.sleep(0.001 * (10 - frame[0]))
        return framed(frame)

    async def work() -> None:
        async with (
            serving(lambda session, frame: framed(frame) if frame[0] % 3 else later(frame)) as listener,
            client_of(listener) as client,
        ):
            await client.send(b"".join(framed(bytes([number])) for number in range(10)))
            assert [await client.receive_frame() for _ in range(10)] == [bytes([number]) for number in range(10)]

    run(work)


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, 1_000_001])
def test_a_bad_frame_closes_its_connection_only(run: Run, caplog: pytest.LogCaptureFixture, size: int) -> None:
    async def work() -> None:
        async with (
            serving(echo, limits=SessionLimits(request_bytes_max=1_000_000)) as listener,
            client_of(listener) as bad,
            client_of(listener) as good,
        ):
            await bad.send(framed(b"fine") + struct.pack(">i", size) + bytes(100))
            assert await bad.receive_frame() == b"fine"
            assert await bad.closed_by_broker()
            await good.send(framed(b"hello"))
            assert await good.receive_frame() == b"hello"

    run(work)
    assert [f"size {size}" in record.getMessage() for record in caplog.records] == [True]


def test_http_is_recognised(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with serving(echo) as listener, client_of(listener) as client:
            await client.send(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert await client.closed_by_broker()

    run(work)
    assert ["HTTP" in record.getMessage() for record in caplog.records] == [True]


def test_tls_is_recognised(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with serving(echo) as listener:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await asyncio.open_connection("127.0.0.1", listener.port, ssl=ssl.create_default_context())

    run(work)
    messages = [record.getMessage() for record in caplog.records if record.name.startswith("penstock")]
    assert ["TLS handshake" in message for message in messages] == [True]


def test_a_failing_handler_closes_its_connection_only(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    def dispatch(session: Session, frame: bytes) -> Answer:
        if frame == b"bug":
            raise ZeroDivisionError
        if frame == b"refused":
            raise CloseConnection("API key 77 is not served")
        if frame == b"future":
            future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
            future.get_loop().call_soon(future.set_exception, ZeroDivisionError())
            return future
        return framed(frame)

    async def work() -> None:
        async with serving(dispatch) as listener, client_of(listener) as good:
            for body in (b"bug", b"refused", b"future"):
                async with client_of(listener) as bad:
                    await bad.send(framed(body))
                    assert await bad.closed_by_broker()
                await good.send(framed(b"hello"))
                assert await good.receive_frame() == b"hello"

    run(work)
    assert [record.exc_info is not None for record in caplog.records] == [True, False, True]


def test_large_requests_arrive_whole(run: Run) -> None:
    async def work() -> None:
        async with (
            serving(lambda session, frame: framed(frame[:2] + frame[-2:])) as listener,
            client_of(listener) as client,
        ):
            for size in (100_000, 65_532, 65_533, 1_000_000, 20_000_000, 3, 999_999):
                await client.send(framed(b"<" + bytes(size - 2) + b">"))
                assert await client.receive_frame() == b"<\0\0>"

    run(work)


def test_claimed_sizes_take_no_memory(run: Run) -> None:
    async def work() -> None:
        async with serving(echo) as listener:
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            clients = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(100)]
            for _, writer in clients:
                writer.write(struct.pack(">i", 104_857_600) + bytes(1000))
            await until(lambda: listener.bytes_in.value == 100 * 1004)
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "KiB for 10 GB of claims"
            for _, writer in clients:
                writer.close()
            await until(lambda: not listener.sessions)

    run(work)


def test_a_client_that_does_not_read_is_read_no_further_and_nobody_else_notices(run: Run) -> None:
    answered = 0

    def dispatch(session: Session, frame: bytes) -> Answer:
        nonlocal answered
        if frame != b"slow":
            return framed(frame)
        answered += 1
        return framed(answered.to_bytes(4, "big") + bytes(50_000))

    async def work() -> None:
        nonlocal answered
        answered = 0
        limits = SessionLimits(unsent_bytes_max=500_000, send_buffer_bytes=20_000)
        async with (
            serving(dispatch, limits=limits) as listener,
            client_of(listener, receive_buffer_bytes=20_000) as slow,
            client_of(listener) as other,
        ):
            [session] = [found for found in listener.sessions if found.peer == slow.socket.getsockname()]
            await slow.send(framed(b"slow") * 500)
            await until(lambda: session.output.held_bytes >= 500_000)
            stopped_at = answered
            for _ in range(20):
                await other.send(framed(b"hello"))
                assert await other.receive_frame() == b"hello"
            assert answered == stopped_at < 30
            for number in range(1, 501):
                assert (await slow.receive_frame())[:4] == number.to_bytes(4, "big")
                assert session.output.held_bytes <= 550_000

    run(work)


def test_a_client_that_never_reads_is_closed(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        limits = SessionLimits(idle_ms_max=300, unsent_bytes_max=100_000)
        async with (
            serving(lambda session, frame: bytes(1_000_000), limits=limits) as listener,
            client_of(listener, receive_buffer_bytes=20_000) as client,
        ):
            await client.send(framed(b"more") * 100)
            await until(lambda: len(listener.sessions) == 1)
            await until(lambda: not listener.sessions)

    run(work)
    assert ["no progress" in record.getMessage() for record in caplog.records] == [True]


def test_an_idle_client_is_closed_but_not_one_that_waits(run: Run) -> None:
    async def work() -> None:
        parked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        async with (
            serving(lambda session, frame: parked, limits=SessionLimits(idle_ms_max=200)) as listener,
            client_of(listener) as idle,
            client_of(listener) as waiting,
        ):
            await waiting.send(framed(b"join"))
            assert await idle.closed_by_broker()
            assert len(listener.sessions) == 1
            parked.set_result(framed(b"joined"))
            assert await waiting.receive_frame() == b"joined"

    run(work)


def test_connections_over_a_limit_are_closed(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> None:
        async with (
            serving(echo, quotas=ConnectionQuotas(per_ip_max=2)) as listener,
            client_of(listener) as first,
            client_of(listener) as second,
            client_of(listener) as third,
        ):
            assert await third.closed_by_broker()
            for client in (first, second):
                await client.send(framed(b"hello"))
                assert await client.receive_frame() == b"hello"
            first.close()
            await until(lambda: len(listener.sessions) == 1)
            async with client_of(listener) as fourth:
                await fourth.send(framed(b"hello"))
                assert await fourth.receive_frame() == b"hello"

    run(work)
    assert ["max.connections.per.ip=2" in record.getMessage() for record in caplog.records] == [True]


def test_large_requests_wait_for_shared_memory(run: Run) -> None:
    body = bytes(1_000_000)

    async def work() -> None:
        budget = MemoryBudget(1_000_000)
        async with (
            serving(lambda session, frame: framed(b"%d" % len(frame)), budget=budget) as listener,
            client_of(listener) as slow,
            client_of(listener) as large,
            client_of(listener) as small,
        ):
            await slow.send(framed(body)[:500_000])
            await until(lambda: budget.used > 0)
            sending = asyncio.ensure_future(large.send(framed(body)))
            await until(lambda: budget.waiting == 1)
            await small.send(framed(b"small"))
            assert await small.receive_frame() == b"5"
            assert budget.waiting == 1
            await slow.send(framed(body)[500_000:])
            assert await slow.receive_frame() == b"1000000"
            await sending
            assert await large.receive_frame() == b"1000000"

    run(work)


def test_who_leaves_tells_the_handlers(run: Run) -> None:
    async def work() -> None:
        left: list[str] = []

        def dispatch(session: Session, frame: bytes) -> Answer:
            session.add_close_callback(lambda: left.append(frame.decode()))
            return asyncio.get_running_loop().create_future()

        async with (
            serving(dispatch) as listener,
            client_of(listener) as closing,
            client_of(listener) as resetting,
        ):
            await closing.send(framed(b"closing"))
            await resetting.send(framed(b"resetting"))
            await until(lambda: listener.bytes_in.value == 24)
            closing.close()
            resetting.reset()
            await until(lambda: sorted(left) == ["closing", "resetting"])
            await until(lambda: not listener.sessions)

    run(work)


def test_closing_the_listener_answers_what_is_in_flight(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def work() -> None:
        async def later(frame: bytes) -> bytes:
            await asyncio.sleep(0.1)
            return framed(frame)

        async with (
            serving(lambda session, frame: later(frame)) as listener,
            client_of(listener) as busy,
            client_of(listener) as idle,
        ):
            await busy.send(framed(b"request"))
            await until(lambda: listener.bytes_in.value > 0)
            closing = asyncio.ensure_future(listener.close(grace_seconds=5))
            assert await idle.closed_by_broker()
            assert await busy.receive_frame() == b"request"
            assert await busy.closed_by_broker()
            await closing
            with pytest.raises(ConnectionRefusedError):
                await asyncio.open_connection("127.0.0.1", listener.port)

    run(work)
