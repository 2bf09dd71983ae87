"""A world of the test's own: time passes when the test says so, and brokers do what the test says."""

from __future__ import annotations

import asyncio
import heapq
import itertools
import random
import ssl
from collections.abc import Callable, Coroutine
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.network.address import Address
from penstock.network.connection import Connection
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from penstock.protocol.requests import decode_request, encode_response, read_request_header

ADDRESS = Address("broker.example", 9092)
EVERY_API = tuple(
    ApiVersion(api_key=api.key, min_version=api.lowest_version, max_version=api.highest_version)
    for api in APIS.values()
)


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeTime:
    """Clock and tasks: timers fire inside `advance`, in order."""

    def __init__(self) -> None:
        self.now = 1000.0
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._numbers = itertools.count()
        self.tasks: list[asyncio.Task[Any]] = []

    def time_ms(self) -> int:
        return int(self.now * 1000)

    def monotonic(self) -> float:
        return self.now

    def call_soon(self, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(callback)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> FakeTimer:
        timer = FakeTimer(callback)
        heapq.heappush(self._timers, (self.now + seconds, next(self._numbers), timer))
        return timer

    def future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        self.tasks.append(asyncio.get_running_loop().create_task(work, name=name))
        return self.tasks[-1]

    def run_blocking(self, work: Callable[[], Any]) -> Any:
        raise AssertionError("nothing here may block")

    def timers(self) -> int:
        """How many are waiting."""
        return sum(not timer.cancelled for _, _, timer in self._timers)

    async def advance(self, seconds: float) -> None:
        end = self.now + seconds
        await settle()
        while self._timers and self._timers[0][0] <= end:
            at, _, timer = heapq.heappop(self._timers)
            self.now = max(self.now, at)
            if not timer.cancelled:
                timer.callback()
            await settle()
        self.now = end


async def settle() -> None:
    """Let everything that can run do so."""
    for _ in range(12):
        await asyncio.sleep(0)


class FakeTransport:
    """One connection as the broker's side of it sees it."""

    def __init__(self, protocol: Connection, broker: FakeBroker | None) -> None:
        self.protocol = protocol
        self.broker = broker
        self.written = bytearray()
        self.writes: list[bytes] = []
        self.unsent = 0
        self.closing = False
        self.aborted = False

    def get_extra_info(self, name: str, default: object = None) -> object:
        return default

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        assert not self.closing, "write after close"
        self.writes.append(bytes(data))
        self.written += data
        if self.broker is not None:
            self.broker.read(self)

    def writelines(self, parts: list[bytes]) -> None:
        for part in parts:
            self.writes.append(bytes(part))
        self.written += b"".join(parts)
        if self.broker is not None:
            self.broker.read(self)

    def close(self) -> None:
        if not self.closing:
            self.closing = True
            asyncio.get_running_loop().call_soon(self.protocol.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def lose(self, error: Exception | None = None) -> None:
        """The other side closes, or the network breaks."""
        if not self.closing:
            self.closing = True
            self.protocol.connection_lost(error)

    def feed(self, data: bytes, chunk: int = 1 << 30) -> None:
        """Bytes from the broker, in pieces of at most `chunk`."""
        position = 0
        while position < len(data) and not self.closing:
            space = self.protocol.get_buffer(-1)
            assert len(space), "an empty buffer stops a real transport"
            piece = data[position : position + min(chunk, len(space))]
            space[: len(piece)] = piece
            position += len(piece)
            self.protocol.buffer_updated(len(piece))


class Asked:
    """One request that came to a broker."""

    def __init__(self, transport: FakeTransport, frame: bytes) -> None:
        self.transport = transport
        self.header = read_request_header(frame)
        self.api_key = self.header.api_key
        self.version = self.header.api_version
        self.message = decode_request(self.api_key, self.version, frame, self.header.body_position)

    def frame(self, response: object) -> bytes:
        return encode_response(self.api_key, self.version, self.header.correlation_id, response)

    def answer(self, response: object, chunk: int = 1 << 30) -> None:
        self.transport.feed(self.frame(response), chunk)


class FakeBroker:
    """Agrees on versions by itself; keeps every other request for the test to answer."""

    def __init__(self, served: tuple[ApiVersion, ...] = EVERY_API) -> None:
        self.served = served
        self.asked: list[Asked] = []
        self.handshakes = 0
        self.greets = True
        """Whether ApiVersions is answered."""

    def read(self, transport: FakeTransport) -> None:
        data = transport.written
        while len(data) >= 4 and len(data) >= 4 + (size := int.from_bytes(data[:4], "big")):
            frame = bytes(data[4 : 4 + size])
            del data[: 4 + size]
            self._take(transport, frame)

    def _take(self, transport: FakeTransport, frame: bytes) -> None:
        header = read_request_header(frame)
        if header.api_key != ApiKey.API_VERSIONS:
            self.asked.append(Asked(transport, frame))
            return
        self.handshakes += 1
        if self.greets:
            asyncio.get_running_loop().call_soon(
                transport.feed, self.greeting(header.api_version, header.correlation_id)
            )

    def greeting(self, version: int, correlation_id: int) -> bytes:
        (own,) = [each for each in self.served if each.api_key == ApiKey.API_VERSIONS]
        if version > own.max_version:
            refusal = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
            return encode_response(ApiKey.API_VERSIONS, 0, correlation_id, refusal)
        response = ApiVersionsResponse(
            api_keys=list(self.served),
            finalized_features=[FinalizedFeatureKey(name="transaction.version", max_version_level=2)],
            finalized_features_epoch=7,
        )
        return encode_response(ApiKey.API_VERSIONS, version, correlation_id, response)


class FakeNetwork:
    """Connects to `broker`, unless `script` has something else for this attempt: an error, or "hang"."""

    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.script: list[OSError | str] = []
        self.attempts: list[tuple[Address, float]] = []
        self.transports: list[FakeTransport] = []
        self.time: FakeTime | None = None

    async def listen(
        self, host: str, port: int, protocol_factory: Callable[[], asyncio.BaseProtocol], *, backlog: int
    ) -> Any:
        raise AssertionError("nobody listens here")

    async def connect(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        *,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        assert self.time is not None
        self.attempts.append((Address(host, port), self.time.now))
        behaviour = self.script.pop(0) if self.script else None
        if isinstance(behaviour, OSError):
            raise behaviour
        if behaviour == "hang":
            await asyncio.get_running_loop().create_future()
        protocol: Any = protocol_factory()
        transport: Any = FakeTransport(protocol, self.broker)
        self.transports.append(transport)
        protocol.connection_made(transport)
        return transport, protocol


class FakeWorld:
    def __init__(self, **settings: Any) -> None:
        self.time = FakeTime()
        self.broker = FakeBroker()
        self.network = FakeNetwork(self.broker)
        self.network.time = self.time
        self.settings = NetworkSettings(client_id="test", **settings)
        self.ports = NetworkPorts(network=self.network, clock=self.time, tasks=self.time, rng=random.Random(1))

    def connection(self) -> tuple[Connection, FakeTransport]:
        """A connection on a transport that nobody answers, past its handshake."""
        connection = Connection(ADDRESS, self.ports, self.settings)
        transport: Any = FakeTransport(connection, None)
        connection.connection_made(transport)
        connection.handshake_done()
        return connection, transport
