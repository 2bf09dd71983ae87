"""The way to one broker: connects when there is something to send, and again when the connection is lost.

Requests go out at once while the connection has room; otherwise they wait in a bounded queue, each with its deadline.
A broker that cannot be reached is known to be so: whatever waits for it fails at once, and so does every request until
the back-off is over, so that the caller can look for another broker instead of waiting. The attempt after that is made
by the next request; a channel that nobody uses does nothing.

Nothing is ever sent twice: whether a failed request may be repeated is the caller's knowledge (`was_sent` helps).
"""

from __future__ import annotations

import asyncio
import enum
import logging
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from penstock.network.address import Address
from penstock.network.attempts import Attempts
from penstock.network.connection import Connection
from penstock.network.errors import (
    ClosedHere,
    ConnectFailed,
    Disconnected,
    NetworkError,
    QueueFull,
    RequestTimedOut,
    UnknownNode,
    UnsupportedVersion,
)
from penstock.network.handshake import Opening, open_connection
from penstock.network.in_flight import Decode
from penstock.network.observer import NetworkObserver
from penstock.network.security import PLAINTEXT, ConnectionSecurity
from penstock.network.session import SessionKeeper
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.network.throttling import Pause
from penstock.network.versions import VERSION_MAX, VersionTable
from penstock.network.waiting import WaitingRequest, WaitingRequests

log = logging.getLogger(__name__)

GOODBYE_S: Final = 1.0
"""How long `close` waits for bytes that are on their way, and for TLS to end."""

_THROTTLED: Final = "throttled"

EndpointProvider = Callable[[], Address | None]


class ChannelState(enum.Enum):
    IDLE = enum.auto()
    """No connection. The next request opens one, unless the last attempt failed a moment ago."""
    CONNECTING = enum.auto()
    """Requests wait for the handshake."""
    READY = enum.auto()
    """There is a connection; requests wait only while it has no room."""
    CLOSED = enum.auto()
    """For good."""


TRANSITIONS: Final = {
    ChannelState.IDLE: {ChannelState.CONNECTING, ChannelState.CLOSED},
    ChannelState.CONNECTING: {ChannelState.READY, ChannelState.IDLE, ChannelState.CLOSED},
    ChannelState.READY: {ChannelState.IDLE, ChannelState.CLOSED},
    ChannelState.CLOSED: set[ChannelState](),
}


class NodeChannel:
    """`on_room`, if set, is called when `has_room` may have become true."""

    def __init__(
        self,
        name: str,
        endpoint: EndpointProvider,
        ports: NetworkPorts,
        settings: NetworkSettings,
        security: ConnectionSecurity = PLAINTEXT,
        observer: NetworkObserver | None = None,
    ) -> None:
        self.name = name
        self.state = ChannelState.IDLE
        self.versions: VersionTable | None = None
        """Of the present connection."""
        self.on_room: Callable[[], None] | None = None
        self._endpoint = endpoint
        self._ports = ports
        self._settings = settings
        self._security = security
        self._observer = observer
        self._clock = ports.clock
        self._waiting = WaitingRequests(ports, self._late)
        self._attempts = Attempts(ports, settings)
        self._pause = Pause(ports.clock, ports.tasks, self._resume)
        self._connection: Connection | None = None
        self._ending: list[Connection] = []
        """Over, but their sockets are not closed yet."""
        self._session: SessionKeeper | None = None
        self._attempt: asyncio.Task[None] | None = None
        self._opening: Address | None = None
        """Where the attempt goes that is under way."""
        self._has_socket = False
        """Whether something accepted that attempt."""

    # Sending.

    @property
    def has_room(self) -> bool:
        """Whether a request would be sent at once."""
        return self._connection is not None and not self._waiting and self._connection.has_room

    @property
    def load(self) -> int:
        """Requests that are not answered yet, sent or not."""
        connection = self._connection
        return len(self._waiting) + (connection.in_flight if connection is not None else 0)

    @property
    def is_blocked(self) -> bool:
        """Whether a request would be refused at once: the last attempt to connect has just failed."""
        attempts = self._attempts
        return self.state is ChannelState.IDLE and attempts.failure is not None and attempts.is_too_soon

    def hold_back(self, throttle_time_ms: int) -> None:
        """The broker wants no requests for so long (KIP-219).

        Done by itself for an answer that has `throttle_time_ms`; for those who decode their answers otherwise.
        """
        connection = self._connection
        if connection is None or throttle_time_ms <= 0:
            return
        connection.hold(_THROTTLED)
        self._pause.extend(min(throttle_time_ms, self._settings.throttle_time_max_ms))
        if self._observer is not None:
            self._observer.throttled(self.name, throttle_time_ms)

    def send(
        self,
        api_key: int,
        message: object,
        *,
        timeout_ms: float | None = None,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        decode: Decode | None = None,
        expects_answer: bool = True,
    ) -> asyncio.Future[Any]:
        """The future of the answer; see the package's docstring. Everything fails through the future."""
        future = self._ports.tasks.future()
        deadline = self._deadline(timeout_ms)
        request = WaitingRequest(api_key, message, deadline, future, at_least, at_most, decode, expects_answer)
        connection = self._connection
        if connection is not None and not self._waiting and connection.has_room:
            self._dispatch(connection, request)
        else:
            self._wait(request)
        return future

    def ready(self, *, timeout_ms: float | None = None) -> asyncio.Future[VersionTable]:
        """Connects, if need be; gives the versions and features of the broker."""
        future: asyncio.Future[VersionTable] = self._ports.tasks.future()
        if self.versions is not None:
            future.set_result(self.versions)
        else:
            self._wait(WaitingRequest(None, None, self._deadline(timeout_ms), future))
        return future

    # Closing.

    def close_if_idle(self, now: float, idle_s: float) -> None:
        """Close a connection that was not used for so long. The next request makes another one."""
        connection = self._connection
        if connection is None or connection.in_flight or self._waiting or now - connection.last_used_at < idle_s:
            return
        connection.close(ClosedHere(connection.address, "closed because it was idle"))

    def check_address(self) -> None:
        """The broker may have moved: a connection to where it was is given up."""
        connection = self._connection
        if connection is None:
            return
        address = self._endpoint()
        if address != connection.address:
            moved = f"{self.name} has moved to {address}" if address else f"{self.name} is gone"
            connection.close(Disconnected(connection.address, moved))

    async def close(self) -> None:
        """Fail what waits, close the connection, and refuse whatever comes."""
        if self.state is ChannelState.CLOSED:
            return
        self._go(ChannelState.CLOSED)
        self._waiting.stop()
        self._pause.stop()
        if self._connection is not None:
            self._connection.close()
        self._waiting.fail_all(ClosedHere(None, f"the channel to {self.name} was closed"))
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.gather(self._attempt, return_exceptions=True)
        await asyncio.gather(*(connection.closed(GOODBYE_S) for connection in self._ending))

    # Waiting.

    def _deadline(self, timeout_ms: float | None) -> float:
        return (
            self._clock.monotonic() + (self._settings.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
        )

    def _wait(self, request: WaitingRequest) -> None:
        refusal = self._refusal()
        if refusal is not None:
            request.fail(refusal)
            return
        self._waiting.add(request)
        if self.state is ChannelState.IDLE:
            self._connect()

    def _refusal(self) -> NetworkError | None:
        """Why a request may not even wait."""
        if self.state is ChannelState.CLOSED:
            return ClosedHere(None, f"the channel to {self.name} was closed")
        if self.is_blocked:
            return self._attempts.failure
        if not self._waiting.has_room(self._settings.queued_requests_max):
            return QueueFull(
                self._connection.address if self._connection else None,
                f"{len(self._waiting)} requests wait for {self.name} already: send fewer, or raise queued_requests_max",
            )
        return None

    def _late(self) -> NetworkError:
        return RequestTimedOut(self._address(), f"a request was not sent in time: {self._why_waiting()}")

    def _address(self) -> Address | None:
        return self._connection.address if self._connection is not None else self._opening

    def why_waiting(self) -> str:
        """For a caller who gives up earlier than the request: where it is, and what it waits for."""
        return f"{self._address() or self.name}: {self._why_waiting()}"

    def _why_waiting(self) -> str:
        if self._connection is None and self._has_socket:
            return (
                "connected, but what listens there has not answered yet: is this a Kafka listener, and is "
                "security.protocol its own?"
            )
        if self._connection is None:
            failure = self._attempts.failure
            before = f"; the last attempt: {failure.reason}" if failure is not None else ""
            return f"no connection came about: is the host up, and is there a firewall on the way?{before}"
        if self._pause.until:
            return "the broker throttles this client: send less, or raise its quota"
        return "earlier requests were not answered"

    def _resume(self) -> None:
        if self._connection is not None:
            self._connection.release(_THROTTLED)

    # Dispatching.

    def _pump(self) -> None:
        """Send what waits, as far as there is room."""
        connection = self._connection
        while self._waiting and connection is not None and connection.has_room:
            self._dispatch(connection, self._waiting.take())
            connection = self._connection
        if self.on_room is not None and self.has_room:
            self.on_room()

    def _dispatch(self, connection: Connection, request: WaitingRequest) -> None:
        future = request.future
        if future.done():
            return
        versions = self.versions
        assert versions is not None
        if request.api_key is None:
            future.set_result(versions)
            return
        try:
            version = versions.pick(request.api_key, at_least=request.at_least, at_most=request.at_most)
        except UnsupportedVersion as error:
            future.set_exception(error)
            return
        message = request.message
        if callable(message):
            try:
                message = message(version)
            except Exception as error:  # noqa: BLE001 - the caller's own function: the error goes to the caller
                future.set_exception(error)
                return
        connection.send(
            request.api_key,
            version,
            message,
            timeout_ms=(request.deadline - self._clock.monotonic()) * 1000,
            decode=request.decode,
            expects_answer=request.expects_answer,
            future=future,
        )

    # Connecting.

    def _go(self, state: ChannelState) -> None:
        assert state in TRANSITIONS[self.state], f"{self.name}: {self.state} -> {state}"
        self.state = state

    def _connect(self) -> None:
        self._go(ChannelState.CONNECTING)
        self._opening, self._has_socket = None, False
        self._attempt = self._ports.tasks.spawn(self._open(), name=f"connect to {self.name}")

    async def _open(self) -> None:
        security, began = self._security, self._clock.monotonic()
        try:
            address = self._endpoint()
            if address is None:
                raise UnknownNode(None, f"no address is known for {self.name}: it is not registered in the cluster")
            self._opening = address
            opening = await open_connection(
                address,
                self._ports,
                self._settings,
                timeout_ms=self._attempts.timeout_ms,
                steps=security.steps,
                tls=security.tls,
                on_connected=self._accepted,
            )
        except NetworkError as error:
            self._attempt = None
            self._failed(error)
        else:
            self._attempt = None
            self._opened(opening, self._clock.monotonic() - began)

    def _accepted(self) -> None:
        self._has_socket = True

    def _opened(self, opening: Opening, seconds: float) -> None:
        connection = opening.connection
        if self.state is ChannelState.CLOSED:
            connection.close()
            return
        if connection.close_reason is not None:
            self._failed(ConnectFailed(connection.address, connection.close_reason.reason))
            return
        if self._attempts.failures:
            log.info("connected again", extra={"to": self.name, "address": str(connection.address)})
        self._attempts.succeeded()
        self._connection = connection
        self.versions = opening.versions
        connection.on_closed = self._lost
        connection.on_room = self._pump
        connection.on_throttled = self.hold_back
        self._observe(connection, seconds)
        self._keep_session(opening)
        self._go(ChannelState.READY)
        self._pump()

    def _observe(self, connection: Connection, seconds: float) -> None:
        observer = self._observer
        if observer is not None:
            connection.on_sent = partial(observer.sent, self.name)
            connection.on_answered = partial(observer.answered, self.name)
            observer.connected(self.name, seconds)

    def _keep_session(self, opening: Opening) -> None:
        told = partial(self._observer.authenticated_again, self.name) if self._observer is not None else None
        self._session = SessionKeeper(opening, self._ports, name=self.name, on_prolonged=told)
        self._session.start()

    def _failed(self, error: NetworkError) -> None:
        if self.state is ChannelState.CLOSED:
            return
        self._attempts.failed(error)
        # The first failure is news; the following ones are the same news.
        level = logging.WARNING if self._attempts.failures == 1 else logging.DEBUG
        log.log(level, "cannot connect: %s", error, extra={"to": self.name})
        if self._observer is not None:
            self._observer.connect_failed(self.name, error)
        self._go(ChannelState.IDLE)
        self._waiting.fail_all(error)

    def _lost(self, reason: NetworkError) -> None:
        self._ending = [each for each in (*self._ending, self._connection) if each is not None and not each.is_gone]
        self._connection = None
        self.versions = None
        self._pause.stop()
        if self._session is not None:
            self._session.stop()
            self._session = None
        if self._observer is not None:
            self._observer.closed(self.name, reason)
        if self.state is ChannelState.CLOSED:
            return
        log.debug("connection ended: %s", reason, extra={"to": self.name})
        self._go(ChannelState.IDLE)
        self._attempts.lost(reason)
        if not self._waiting:
            return
        if self._attempts.is_too_soon:
            self._waiting.fail_all(reason)
        else:
            self._connect()
