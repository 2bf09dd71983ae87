"""SASL, sessions, throttling and observers on a channel, without a socket; tokens from an HTTP server."""

from __future__ import annotations

import asyncio
import base64
import json
import random
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import parse_qs

import pytest

from penstock.base.config.declaration import ConfigErrors, Password
from penstock.base.errors import ErrorCode
from penstock.base.system import SystemWorld
from penstock.network.channel import NodeChannel
from penstock.network.errors import (
    AuthenticationFailed,
    ConnectFailed,
    NetworkError,
    RequestTimedOut,
    UnsupportedMechanism,
)
from penstock.network.login import TokenKeeper
from penstock.network.observer import NetworkObserver
from penstock.network.security import SECURITY_KEYS, SecuritySettings, connection_security
from penstock.network.settings import NetworkPorts
from penstock.network.throttling import throttle_of
from penstock.network.token_endpoint import TokenEndpoint
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from penstock.protocol.messages.sasl_handshake import SaslHandshakeResponse
from penstock.security.sasl.tokens import RefreshRule, Token
from tests.unit.network.fakes import ADDRESS, FakeWorld, settle

HEARTBEAT = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
PLAIN = SecuritySettings(
    security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", sasl_username="alice", sasl_password="secret"
)


class Seen(NetworkObserver):
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def connected(self, node: str, seconds: float) -> None:
        self.events.append(("connected", node))

    def connect_failed(self, node: str, error: NetworkError) -> None:
        self.events.append(("failed", type(error)))

    def closed(self, node: str, reason: NetworkError) -> None:
        self.events.append(("closed", type(reason)))

    def authenticated_again(self, node: str, seconds: float) -> None:
        self.events.append(("again",))

    def sent(self, node: str, api_key: int, size: int) -> None:
        self.events.append(("sent", api_key, size > 0))

    def answered(self, node: str, api_key: int, seconds: float, size: int) -> None:
        self.events.append(("answered", api_key, seconds, size > 0))

    def throttled(self, node: str, throttle_time_ms: int) -> None:
        self.events.append(("throttled", throttle_time_ms))


class Scene:
    """A channel to a broker that keeps every request for the test."""

    def __init__(self, settings: SecuritySettings | None = None, **network: Any) -> None:
        self.world = FakeWorld(**network)
        self.seen = Seen()
        security = connection_security(settings or SecuritySettings(), self.world.ports)
        self.channel = NodeChannel(
            "node 1", lambda: ADDRESS, self.world.ports, self.world.settings, security, self.seen
        )

    async def answer(self, response: object) -> Any:
        """Answer the oldest question, which is given."""
        await settle()
        asked = self.world.broker.asked.pop(0)
        asked.answer(response)
        await settle()
        return asked

    async def let_in(self, lifetime_ms: int = 0) -> None:
        assert (await self.answer(SaslHandshakeResponse(mechanisms=["PLAIN"]))).message.mechanism == "PLAIN"
        asked = await self.answer(SaslAuthenticateResponse(session_lifetime_ms=lifetime_ms))
        assert asked.message.auth_bytes == b"\0alice\0secret"

    def beat(self, timeout_ms: float = 10_000) -> asyncio.Future[Any]:
        return self.channel.send(ApiKey.HEARTBEAT, HEARTBEAT, timeout_ms=timeout_ms)


async def test_requests_wait_for_the_authentication() -> None:
    scene = Scene(PLAIN)
    beat = scene.beat()
    await scene.let_in()
    assert (await scene.answer(HeartbeatResponse())).api_key == ApiKey.HEARTBEAT
    assert (await beat).error_code == 0
    assert ("connected", "node 1") in scene.seen.events


@pytest.mark.parametrize(
    ("response", "kind", "sentence"),
    [
        (
            SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI"]),
            UnsupportedMechanism,
            "one it offers (GSSAPI)",
        ),
        (SaslHandshakeResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR), AuthenticationFailed, "UNKNOWN_SERVER"),
        (SaslHandshakeResponse(error_code=999), AuthenticationFailed, "error 999"),
    ],
)
async def test_a_refused_handshake(response: object, kind: type[NetworkError], sentence: str) -> None:
    scene = Scene(PLAIN)
    beat = scene.beat()
    await scene.answer(response)
    with pytest.raises(kind) as raised:
        await beat
    assert sentence in str(raised.value)
    assert not raised.value.retriable
    assert scene.seen.events == [("failed", kind)]


async def test_refused_credentials_are_not_tried_again_by_themselves() -> None:
    scene = Scene(PLAIN)
    beat = scene.beat()
    await scene.answer(SaslHandshakeResponse())
    code = ErrorCode.SASL_AUTHENTICATION_FAILED
    await scene.answer(SaslAuthenticateResponse(error_code=code, error_message="bad luck"))
    with pytest.raises(AuthenticationFailed, match=r"bad luck.*sasl\.username") as raised:
        await beat
    assert raised.value.code == code
    await scene.world.time.advance(5)
    assert len(scene.world.network.attempts) == 1


async def test_a_server_that_claims_success_without_proof() -> None:
    scene = Scene(replace(PLAIN, sasl_mechanism="SCRAM-SHA-256"))
    beat = scene.beat()
    await scene.answer(SaslHandshakeResponse())
    await scene.answer(SaslAuthenticateResponse())
    with pytest.raises(AuthenticationFailed, match="no SCRAM message"):
        await beat


async def test_a_server_that_does_not_answer_the_exchange() -> None:
    scene = Scene(PLAIN)
    beat = scene.beat(timeout_ms=60_000)
    await scene.answer(SaslHandshakeResponse())
    await scene.world.time.advance(10.1)
    with pytest.raises(ConnectFailed, match="connected, but what listens there did not answer within 10000 ms"):
        await beat


# Sessions.


async def test_a_session_is_prolonged_while_requests_wait() -> None:
    scene = Scene(PLAIN)
    scene.beat()
    await scene.let_in(lifetime_ms=10_000)
    await scene.answer(HeartbeatResponse())
    await scene.world.time.advance(8.4)
    assert scene.channel.has_room
    await scene.world.time.advance(1.2)
    assert not scene.channel.has_room
    waiting = scene.beat()
    await scene.let_in(lifetime_ms=10_000)
    await scene.answer(HeartbeatResponse())
    await waiting
    assert ("again",) in scene.seen.events
    assert len(scene.world.network.transports) == 1
    await scene.world.time.advance(9.6)
    await scene.let_in()
    assert scene.channel.has_room
    assert scene.seen.events.count(("again",)) == 2


async def test_a_request_under_way_is_answered_before_the_session_is_prolonged() -> None:
    scene = Scene(PLAIN)
    beat = scene.beat(timeout_ms=30_000)
    await scene.let_in(lifetime_ms=10_000)
    await scene.world.time.advance(9.6)
    await scene.answer(HeartbeatResponse(error_code=27))
    assert (await beat).error_code == 27
    await scene.let_in()
    assert scene.channel.has_room


async def test_a_session_that_is_not_prolonged_ends_the_connection() -> None:
    scene = Scene(PLAIN)
    scene.beat()
    await scene.let_in(lifetime_ms=10_000)
    await scene.answer(HeartbeatResponse())
    await scene.world.time.advance(9.6)
    await scene.answer(SaslHandshakeResponse())
    await scene.answer(SaslAuthenticateResponse(error_code=ErrorCode.SASL_AUTHENTICATION_FAILED))
    assert ("closed", AuthenticationFailed) in scene.seen.events
    assert not scene.channel.has_room


async def test_closing_ends_the_care_for_a_session() -> None:
    scene = Scene(PLAIN)
    scene.beat()
    await scene.let_in(lifetime_ms=10_000)
    await scene.answer(HeartbeatResponse())
    await scene.channel.close()
    assert scene.world.time.timers() == 0


# Throttling.


async def test_a_throttled_channel_holds_its_requests_back() -> None:
    scene = Scene()
    first = scene.beat()
    await scene.answer(HeartbeatResponse(throttle_time_ms=2000))
    await first
    assert not scene.channel.has_room
    second = scene.beat()
    await scene.world.time.advance(1.9)
    assert scene.world.broker.asked == []
    assert scene.channel.load == 1
    await scene.world.time.advance(0.2)
    await scene.answer(HeartbeatResponse())
    await second
    assert scene.channel.has_room
    assert ("throttled", 2000) in scene.seen.events


async def test_a_pause_is_never_longer_than_allowed() -> None:
    scene = Scene(throttle_time_max_ms=1000)
    scene.beat()
    await scene.answer(HeartbeatResponse(throttle_time_ms=2**31 - 1))
    await scene.world.time.advance(1.01)
    assert scene.channel.has_room


async def test_a_shorter_pause_does_not_end_a_longer_one() -> None:
    scene = Scene()
    scene.beat()
    await scene.answer(HeartbeatResponse())
    scene.channel.hold_back(2000)
    scene.channel.hold_back(100)
    await scene.world.time.advance(1)
    assert not scene.channel.has_room
    await scene.world.time.advance(1.1)
    assert scene.channel.has_room


async def test_a_request_that_waits_too_long_for_a_throttled_broker() -> None:
    scene = Scene()
    scene.beat()
    await scene.answer(HeartbeatResponse(throttle_time_ms=20_000))
    late = scene.beat(timeout_ms=1000)
    await scene.world.time.advance(1.1)
    with pytest.raises(RequestTimedOut, match="the broker throttles this client"):
        await late


def test_older_answers_ask_for_no_pause() -> None:
    response = HeartbeatResponse(throttle_time_ms=5)
    assert throttle_of(ApiKey.HEARTBEAT, 1, response) == 0
    assert throttle_of(ApiKey.HEARTBEAT, 2, response) == 5
    assert throttle_of(ApiKey.DELETE_RECORDS, 1, response) == 5
    assert throttle_of(ApiKey.HEARTBEAT, 4, b"raw") == 0


async def test_what_an_observer_is_told() -> None:
    scene = Scene()
    beat = scene.beat()
    await scene.answer(HeartbeatResponse())
    await beat
    await scene.channel.close()
    assert [event[0] for event in scene.seen.events] == ["connected", "sent", "answered", "closed"]


# Settings.


def test_settings_from_keys() -> None:
    values = {
        "security.protocol": "SASL_SSL",
        "sasl.password": Password("hidden"),
        "ssl.enabled.protocols": "TLSv1.2, TLSv1.3",
        "ssl.cipher.suites": ["A"],
        "ssl.key.password": None,
        "bootstrap.servers": "x",
    }
    settings = SecuritySettings.of(values)
    assert (settings.sasl_password, settings.ssl_cipher_suites) == ("hidden", ("A",))
    assert settings.ssl_enabled_protocols == ("TLSv1.2", "TLSv1.3")
    assert "hidden" not in repr(settings)
    assert {"ssl.truststore.location", "sasl.oauthbearer.token.endpoint.url", "ssl.ca.location"} <= SECURITY_KEYS


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"security_protocol": "TLS"}, "use one of PLAINTEXT, SSL"),
        ({"sasl_mechanism": "GSSAPI"}, "use one of PLAIN, SCRAM-SHA-256"),
        ({"sasl_username": None}, "needs a user name and a password"),
        ({"sasl_password": None}, "needs a user name and a password"),
        ({"sasl_jaas_config": "nonsense"}, "not readable"),
        ({"sasl_mechanism": "OAUTHBEARER"}, "has no source of tokens"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_login_callback_handler_class": "com.acme.Login"}, "a Java class"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_login_callback_handler_class": 5}, "give a function"),
        ({"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token_endpoint_url": "x"}, "https, http or file URL"),
        ({"security_protocol": "SASL_SSL", "ssl_engine_factory_class": 5}, "give an ssl.SSLContext"),
    ],
)
async def test_settings_that_cannot_be_used(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigErrors) as raised:
        connection_security(replace(PLAIN, **changes), FakeWorld().ports)
    assert sentence in str(raised.value)


async def test_a_ready_context_is_taken() -> None:
    context = ssl.create_default_context()
    for ready in (context, lambda: context):
        settings = SecuritySettings(security_protocol="SSL", ssl_engine_factory_class=ready)
        assert connection_security(settings, FakeWorld().ports).tls is context


async def test_every_problem_is_told_at_once() -> None:
    settings = SecuritySettings(security_protocol="SASL_SSL", ssl_truststore_location="/missing.pem")
    with pytest.raises(ConfigErrors) as raised:
        connection_security(settings, FakeWorld().ports)
    assert [problem.key for problem in raised.value.problems] == ["ssl.truststore.location", "sasl.mechanism"]


# Tokens.


async def test_a_token_is_shared_until_it_is_due() -> None:
    world = FakeWorld()
    given: list[Token] = []

    async def fetch() -> Token:
        now_ms = world.time.time_ms()
        given.append(Token(value=f"t{len(given)}", started_ms=now_ms, expires_ms=now_ms + 30_000))
        await asyncio.sleep(0)
        return given[-1]

    keeper = TokenKeeper(fetch, RefreshRule(), world.ports)
    assert {token.value for token in await asyncio.gather(*(keeper.token() for _ in range(3)))} == {"t0"}
    world.time.now += 23
    assert (await keeper.token()).value == "t0"
    world.time.now += 3
    assert (await keeper.token()).value == "t1"


async def test_an_old_token_serves_while_no_new_one_comes() -> None:
    world = FakeWorld()
    answers: list[Token | NetworkError] = [Token(value="old", started_ms=1_000_000, expires_ms=1_030_000)]

    async def fetch() -> Token:
        answer = answers.pop() if answers else ConnectFailed(None, "down")
        if isinstance(answer, NetworkError):
            raise answer
        return answer

    keeper = TokenKeeper(fetch, RefreshRule(), world.ports)
    await keeper.token()
    world.time.now += 29
    assert (await keeper.token()).value == "old"
    world.time.now += 2
    with pytest.raises(ConnectFailed):
        await keeper.token()


class TokenHandler(BaseHTTPRequestHandler):
    answers: ClassVar[list[tuple[int, Any]]] = []
    requests: ClassVar[list[tuple[str, str, dict[str, list[str]]]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.requests.append((self.path, self.headers["Authorization"], parse_qs(body)))
        status, answer = self.answers.pop(0)
        data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *arguments: Any) -> None: ...


Serve = Callable[..., TokenEndpoint]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """A token server that gives the answers in order; the endpoint that asks it."""
    TokenHandler.requests.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), TokenHandler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()

    def start(*answers: tuple[int, Any], **fields: Any) -> TokenEndpoint:
        TokenHandler.answers[:] = answers
        url = f"http://127.0.0.1:{server.server_address[1]}/token?a=b"
        values = {"url": url, "client_id": "me", "client_secret": "s:1", "retry_backoff_ms": 1, **fields}
        return TokenEndpoint(**values)

    yield start
    server.shutdown()
    thread.join(5)
    server.server_close()


async def fetch(endpoint: TokenEndpoint) -> Token:
    world = SystemWorld(asyncio.get_running_loop(), threads=1)
    ports = NetworkPorts(network=world.network, clock=world.clock, tasks=world.tasks, rng=random.Random(1))
    try:
        return await asyncio.wait_for(endpoint.fetch(ports), 10)
    finally:
        await world.close()


async def test_client_credentials(serve: Serve) -> None:
    token = await fetch(serve((200, {"access_token": "abc", "expires_in": 60}), scope="kafka"))
    assert token.value == "abc"
    assert token.expires_ms == token.started_ms + 60_000
    ((path, authorization, form),) = TokenHandler.requests
    assert path == "/token?a=b"
    assert base64.b64decode(authorization.removeprefix("Basic ")) == b"me:s:1"
    assert form == {"grant_type": ["client_credentials"], "scope": ["kafka"]}


async def test_credentials_encoded_for_urls(serve: Serve) -> None:
    await fetch(serve((200, {"access_token": "abc"}), url_encode=True))
    assert base64.b64decode(TokenHandler.requests[0][1].removeprefix("Basic ")) == b"me:s%3A1"


async def test_a_token_server_out_of_order_is_asked_again(serve: Serve) -> None:
    token = await fetch(serve((503, {}), (429, b"slow down"), (200, {"access_token": "abc"})))
    assert token.value == "abc"
    with pytest.raises(ConnectFailed, match="answered 500 instead of a token"):
        await fetch(serve(*[(500, {})] * 3))


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        ((401, {"error": "invalid_client", "error_description": "who?"}), "answered 401 (invalid_client, who?)"),
        ((302, b""), "answered 302"),
        ((200, b"<html>"), "answered 200"),
        ((200, {"token": "x"}), "holds no access_token"),
    ],
)
async def test_a_token_server_that_says_no(serve: Serve, answer: tuple[int, Any], sentence: str) -> None:
    with pytest.raises(AuthenticationFailed) as raised:
        await fetch(serve(answer))
    assert sentence in str(raised.value)
    assert len(TokenHandler.requests) == 1


async def test_no_token_server() -> None:
    endpoint = TokenEndpoint(url="http://127.0.0.1:1/", client_id="a", client_secret="b", retry_backoff_ms=1)
    with pytest.raises(ConnectFailed, match="no token from"):
        await fetch(endpoint)


async def test_a_token_in_a_file(tmp_path: Any) -> None:
    path = tmp_path / "token"
    path.write_text("abc\n")
    endpoint = TokenEndpoint(url=path.as_uri(), client_id=None, client_secret=None)
    assert endpoint.problems() == []
    assert (await fetch(endpoint)).value == "abc"
