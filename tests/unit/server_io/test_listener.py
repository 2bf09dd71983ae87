"""The listener's limits and its one timer, with a network that the test plays."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from penstock.base.metrics import Metrics
from penstock.server.connection_quotas import ConnectionQuotas
from penstock.server.listener import Listener
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.receiving import BASE_BYTES
from penstock.server.session import Session, SessionLimits
from tests.unit.server_io.fakes import FakeTasks, FakeTransport, framed


class FakeClock:
    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)


class FakeNetwork:
    def __init__(self) -> None:
        self.factory: Callable[[], Any] | None = None
        self.closed = False
        self.host = "0.0.0.0"
        self.port = 9092

    async def listen(
        self, host: str, port: int, protocol_factory: Callable[[], asyncio.BaseProtocol], *, backlog: int
    ) -> Any:
        self.factory = protocol_factory
        return self

    async def connect(self, host: str, port: int, protocol_factory: Callable[[], asyncio.BaseProtocol]) -> Any:
        raise ConnectionRefusedError

    async def serve(self) -> None: ...

    async def close(self) -> None:
        self.closed = True


class Fixture:
    def __init__(self, connections_max: int = 100) -> None:
        self.clock = FakeClock()
        self.tasks = FakeTasks()
        self.network = FakeNetwork()
        self.metrics = Metrics()
        self.answer: Callable[[bytes], Answer] = framed
        self.listener = Listener(
            "PLAINTEXT",
            "",
            0,
            dispatch=lambda session, frame: self.answer(bytes(frame)),
            network=self.network,
            tasks=self.tasks,
            clock=self.clock,
            metrics=self.metrics,
            limits=SessionLimits(idle_ms_max=8000),
            quotas=ConnectionQuotas(connections_max=connections_max),
            budget=MemoryBudget(),
        )

    def connect(self) -> tuple[Session, FakeTransport]:
        assert self.network.factory is not None
        session: Session = self.network.factory()
        transport = FakeTransport()
        transport.protocol = session
        session.connection_made(transport)  # type: ignore[arg-type]
        return session, transport

    def tick(self) -> None:
        seconds, callback = self.tasks.timers.pop(0)
        self.clock.now += seconds
        callback()

    def value(self, name: str) -> str:
        [line] = [line for line in self.metrics.render_prometheus().splitlines() if line.startswith(name + "{")]
        return line.split()[-1]


def receive(session: Session, data: bytes) -> None:
    space = session.get_buffer(0)
    space[: len(data)] = data
    session.buffer_updated(len(data))


@pytest.fixture
async def fixture() -> Fixture:
    fixture = Fixture()
    await fixture.listener.start()
    return fixture


def test_an_idle_client_is_closed_and_a_busy_one_is_not(fixture: Fixture) -> None:
    idle, idle_transport = fixture.connect()
    busy, _ = fixture.connect()
    for _ in range(7):
        receive(busy, framed(b"heartbeat"))
        fixture.tick()
    assert not idle.closed
    for _ in range(2):
        receive(busy, framed(b"heartbeat"))
        fixture.tick()
    assert idle.closed
    assert idle_transport.closing
    assert not busy.closed
    assert fixture.value("kafka_network_socketserver_expiredconnectionskilledcount") == "1"


def test_a_client_that_takes_nothing_is_closed_and_then_cut_off(
    fixture: Fixture, caplog: pytest.LogCaptureFixture
) -> None:
    session, transport = fixture.connect()
    transport.room = 2
    receive(session, framed(b"metadata"))
    for _ in range(9):
        fixture.tick()
    assert transport.closing
    assert not transport.aborted
    assert ["no progress for connections.max.idle.ms=8000" in record.getMessage() for record in caplog.records] == [
        True
    ]
    fixture.tick()
    fixture.tick()
    assert transport.aborted


def test_a_slow_client_that_takes_a_little_stays(fixture: Fixture) -> None:
    session, transport = fixture.connect()
    transport.room = 0
    receive(session, framed(bytes(100)))
    for _ in range(30):
        transport.take(1)
        fixture.tick()
    assert not session.closed


async def test_a_client_that_waits_for_the_broker_stays(fixture: Fixture) -> None:
    session, _ = fixture.connect()
    parked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    fixture.answer = lambda body: parked
    receive(session, framed(b"join group"))
    for _ in range(30):
        fixture.tick()
    assert not session.closed
    parked.set_result(b"joined")
    await asyncio.sleep(0)
    for _ in range(10):
        fixture.tick()
    assert session.closed


def test_a_large_buffer_is_given_back_by_the_timer(fixture: Fixture) -> None:
    session, _ = fixture.connect()
    receive(session, framed(bytes(200_000))[:1000])
    assert session._buffer.capacity > BASE_BYTES
    space = session.get_buffer(0)
    session.buffer_updated(len(space))
    fixture.tick()
    assert session._buffer.capacity > BASE_BYTES
    fixture.tick()
    assert session._buffer.capacity == BASE_BYTES
    assert fixture.listener.budget.used == 0


async def test_connections_over_the_limit_are_cut_off_with_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    fixture = Fixture(connections_max=2)
    await fixture.listener.start()
    first, _ = fixture.connect()
    fixture.connect()
    for _ in range(50):
        refused, transport = fixture.connect()
        assert transport.aborted
        refused.connection_lost(None)
    assert len(fixture.listener.sessions) == 2
    assert [record.getMessage() for record in caplog.records] == ["connection refused: max.connections=2 is reached"]
    first.connection_lost(None)
    again, transport = fixture.connect()
    assert not again.closed
    assert fixture.value("kafka_server_socket_server_metrics_connection_count") == "2"
    assert fixture.value("kafka_server_socket_server_metrics_connection_creation_total") == "3"
    assert fixture.value("kafka_server_socket_server_metrics_connection_close_total") == "1"
    assert fixture.value("penstock_network_connections_refused_total") == "50"


async def test_closing_answers_what_is_in_flight_and_closes_the_rest(fixture: Fixture) -> None:
    parked: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    idle, idle_transport = fixture.connect()
    waiting, waiting_transport = fixture.connect()
    stuck, stuck_transport = fixture.connect()
    fixture.answer = lambda body: parked if body == b"wait" else asyncio.get_running_loop().create_future()
    receive(waiting, framed(b"wait"))
    receive(stuck, framed(b"for ever"))
    closing = asyncio.create_task(fixture.listener.close(grace_seconds=3))
    await asyncio.sleep(0)
    assert fixture.network.closed
    assert idle_transport.closing
    assert not waiting_transport.closing
    parked.set_result(b"answer")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert waiting_transport.written == b"answer"
    assert waiting_transport.closing
    idle.connection_lost(None)
    waiting.connection_lost(None)
    [(seconds, give_up)] = fixture.tasks.timers[-1:]
    assert seconds == 3
    give_up()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert stuck_transport.aborted
    stuck.connection_lost(None)
    await closing
    assert not fixture.listener.sessions
    late, late_transport = fixture.connect()
    assert late_transport.aborted
    assert late.closed
