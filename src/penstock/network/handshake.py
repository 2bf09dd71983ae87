"""What happens between a socket and the first request: an ordered list of steps.

Each is a coroutine function that talks over `opening.connection`, and raises a `NetworkError` to give up. The first is
the agreement on versions; SASL comes behind it (`penstock.network.sasl`). TLS is no step: `Network.connect` does it.

ApiVersions is asked in the highest version known here. A broker that does not know it answers in version 0 with error
35 and, since KIP-511, with the versions it does know; the question is then asked again in one of those.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from typing import Any, Final, TypeVar

from penstock.base.errors import ErrorCode
from penstock.base.ports import Tasks
from penstock.network.address import Address
from penstock.network.connection import Connection
from penstock.network.encoding import decode
from penstock.network.errors import ConnectFailed, Disconnected, NetworkError, RequestTimedOut
from penstock.network.in_flight import Frame
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.network.tls_errors import closed_in_handshake, describe_tls_failure, not_tls
from penstock.network.versions import VersionTable
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse

T = TypeVar("T")


class Opening:
    """A connection on its way to being ready, and what the steps have found out."""

    __slots__ = ("authenticate", "connection", "session_lifetime_ms", "settings", "versions")

    def __init__(self, connection: Connection, settings: NetworkSettings) -> None:
        self.connection = connection
        self.settings = settings
        self.versions = VersionTable(connection.address, ())
        self.authenticate: Step | None = None
        """The step that prolongs the session, if there is one."""
        self.session_lifetime_ms = 0
        """How long the broker believes us, from the authentication on; 0 for ever."""


Step = Callable[[Opening], Coroutine[Any, Any, None]]


async def agree_on_versions(opening: Opening) -> None:
    highest = APIS[ApiKey.API_VERSIONS].highest_version
    response = await _ask_versions(opening, highest)
    if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
        response = await _ask_versions(opening, fallback_version(opening.connection.address, response))
    if response.error_code != ErrorCode.NONE:
        raise ConnectFailed(
            opening.connection.address,
            f"the broker refused the agreement on versions with error {name_of(response.error_code)}: "
            "check that this listener needs no authentication",
        )
    opening.versions = VersionTable.of_response(opening.connection.address, response)


STEPS: Final[Sequence[Step]] = (agree_on_versions,)


def fallback_version(address: Address, refusal: ApiVersionsResponse) -> int:
    """The version to ask in after error 35; 0 for a broker that is too old to say what it knows."""
    for served in refusal.api_keys:
        if served.api_key == ApiKey.API_VERSIONS:
            return VersionTable(address, [served]).pick(ApiKey.API_VERSIONS)
    return 0


async def open_connection(
    address: Address,
    ports: NetworkPorts,
    settings: NetworkSettings,
    *,
    timeout_ms: float,
    steps: Sequence[Step] = STEPS,
    tls: ssl.SSLContext | None = None,
    on_connected: Callable[[], None] | None = None,
) -> Opening:
    """A connection that is ready for requests. `NetworkError` when there is none within the time.

    `on_connected` is called when something has accepted the connection, before the first question.
    """
    has_socket = False

    def connected() -> None:
        nonlocal has_socket
        has_socket = True
        if on_connected is not None:
            on_connected()

    try:
        return await within(ports.tasks, timeout_ms, _open(address, ports, settings, steps, tls, connected))
    except TimeoutError:
        raise ConnectFailed(address, _late(timeout_ms, has_socket)) from None


def _late(timeout_ms: float, has_socket: bool) -> str:
    if has_socket:
        return (
            f"connected, but what listens there did not answer within {timeout_ms:.0f} ms: is this a Kafka listener, "
            "and is security.protocol its own?"
        )
    return f"no connection within {timeout_ms:.0f} ms: the host is down, overloaded or behind a firewall"


async def _open(
    address: Address,
    ports: NetworkPorts,
    settings: NetworkSettings,
    steps: Sequence[Step],
    tls: ssl.SSLContext | None,
    connected: Callable[[], None],
) -> Opening:
    connection = await _connect(address, ports, settings, tls)
    connected()
    opening = Opening(connection, settings)
    try:
        await _take_steps(opening, steps)
    except (Disconnected, RequestTimedOut) as error:
        if isinstance(error.__cause__, ssl.SSLError):
            # In TLS 1.3 the client is ready before the server has judged it; the verdict comes instead of an answer.
            raise describe_tls_failure(address, error.__cause__) from error
        raise ConnectFailed(
            address, f"{error.reason} during the handshake: is this a Kafka listener, and security.protocol its own?"
        ) from error
    connection.handshake_done()
    return opening


async def _connect(
    address: Address, ports: NetworkPorts, settings: NetworkSettings, tls: ssl.SSLContext | None
) -> Connection:
    connection = Connection(address, ports, settings)
    try:
        if tls is None:
            await ports.network.connect(address.host, address.port, lambda: connection)
        else:
            await ports.network.connect(address.host, address.port, lambda: connection, tls=tls)
    except ssl.SSLError as error:
        raise describe_tls_failure(address, error) from error
    except (ConnectionResetError, ConnectionAbortedError, BrokenPipeError) as error:
        if tls is not None and await _speaks_plainly(address, ports, settings):
            raise not_tls(address) from error
        raise ConnectFailed(
            address, closed_in_handshake(error) if tls is not None else f"no connection: {error}"
        ) from error
    except OSError as error:
        raise ConnectFailed(address, _describe(error, address)) from error
    return connection


async def _speaks_plainly(address: Address, ports: NetworkPorts, settings: NetworkSettings) -> bool:
    """Whether a listener that hung up at the first TLS message answers Kafka's first question without TLS.

    The question tells nothing of ours: an empty body without a client id.
    """
    silent = replace(settings, client_id=None)
    connection = Connection(address, ports, silent)
    try:
        await ports.network.connect(address.host, address.port, lambda: connection)
    except OSError:
        return False
    try:
        await _ask_versions(Opening(connection, silent), 0)
    except NetworkError:
        return False
    finally:
        connection.abort()
        await connection.closed(0)
    return True


async def _take_steps(opening: Opening, steps: Sequence[Step]) -> None:
    try:
        for step in steps:
            await step(opening)
    except BaseException:
        # Also when the time is over, which arrives as a cancellation.
        opening.connection.abort()
        await opening.connection.closed(0)
        raise


async def _ask_versions(opening: Opening, version: int) -> ApiVersionsResponse:
    settings = opening.settings
    request = ApiVersionsRequest(
        client_software_name=settings.client_software_name, client_software_version=settings.client_software_version
    )
    response: ApiVersionsResponse = await opening.connection.send(
        ApiKey.API_VERSIONS, version, request, decode=_decode_versions
    )
    return response


def _decode_versions(frame: Frame, version: int) -> ApiVersionsResponse:
    """An answer in the asked version, or in version 0 when it says that there is no such version."""
    refused = int.from_bytes(frame[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
    response: ApiVersionsResponse = decode(ApiKey.API_VERSIONS, 0 if refused else version, frame)
    return response


async def within(tasks: Tasks, timeout_ms: float, work: Coroutine[Any, Any, T]) -> T:
    """Like `asyncio.timeout`, on the given ports' time."""
    task = asyncio.current_task()
    assert task is not None
    is_late = False

    def stop() -> None:
        nonlocal is_late
        is_late = True
        task.cancel()

    timer = tasks.call_later(timeout_ms / 1000, stop)
    try:
        return await work
    except asyncio.CancelledError:
        if is_late and task.uncancel() == 0:
            raise TimeoutError from None
        raise
    finally:
        timer.cancel()


def _describe(error: OSError, address: Address) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host name {address.host!r} is not known here: check advertised.listeners and the name service"
    if isinstance(error, ConnectionRefusedError) or "refused" in str(error).lower():
        return "nothing listens there: is the broker up, and is this its advertised listener?"
    return f"no connection: {error}"


def name_of(code: int) -> str:
    try:
        return ErrorCode(code).name
    except ValueError:
        return str(code)
