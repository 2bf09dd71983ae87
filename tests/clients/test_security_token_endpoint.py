"""Tokens over HTTPS, from a server whose certificate an authority of its own signed, for a real Apache Kafka."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import pytest

from penstock.network.errors import AuthenticationFailed
from penstock.security.sasl.tokens import unsecured_token
from tests.clients.security_support import check_works, oauth, refusal, start_kafka
from tests.support.certificates import Authority
from tests.support.secured import SecuredKafka

__all__ = ["start_kafka"]

ASSERTION = "signed.by.somebody"


class TokenServer(NamedTuple):
    url: str
    asked: list[dict[str, list[str]]]
    authority: Authority


class Handler(BaseHTTPRequestHandler):
    """A token for the assertion, or for the client's credentials."""

    server: Any

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        self.server.asked.append(form)
        is_known = form.get("assertion") == [ASSERTION] or self.headers["Authorization"] == "Basic bWU6c2VjcmV0"
        token = unsecured_token({"sub": "alice"}, now_ms=int(time.time() * 1000), lifetime_s=60)
        answer = {"access_token": token.value, "expires_in": 60} if is_known else {"error": "invalid_grant"}
        body = json.dumps(answer).encode()
        self.send_response(200 if is_known else 400)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None: ...


@pytest.fixture
def server(tmp_path: Path) -> Iterator[TokenServer]:
    authority = Authority(tmp_path / "authority")
    identity = authority.issue("localhost", "DNS:localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    asked: list[dict[str, list[str]]] = []
    made.asked = asked  # type: ignore[attr-defined]
    made.socket = context.wrap_socket(made.socket, server_side=True)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield TokenServer(f"https://localhost:{made.server_address[1]}/token", asked, authority)
    made.shutdown()
    thread.join(5)
    made.server_close()


def settings(server: TokenServer, **more: Any) -> dict[str, Any]:
    return oauth(security_protocol="SASL_PLAINTEXT", sasl_oauthbearer_token_endpoint_url=server.url, **more)


CREDENTIALS = {
    "sasl_oauthbearer_client_credentials_client_id": "me",
    "sasl_oauthbearer_client_credentials_client_secret": "secret",
}


async def test_credentials_over_https(kafka: SecuredKafka, server: TokenServer) -> None:
    trusted = {"ssl_ca_location": str(server.authority.certificate)}
    await check_works(kafka, "SASL_PLAINTEXT", **settings(server, **CREDENTIALS, **trusted))
    assert server.asked == [{"grant_type": ["client_credentials"]}]


async def test_a_server_that_nobody_vouches_for(kafka: SecuredKafka, server: TokenServer) -> None:
    error = await refusal(kafka, "SASL_PLAINTEXT", **settings(server, **CREDENTIALS))
    assert isinstance(error, AuthenticationFailed)
    assert f"TLS with {server.url} failed" in str(error)
    assert "check ssl.truststore" in str(error)
    assert server.asked == [], "the secret was told to somebody unknown"


async def test_an_assertion_in_place_of_credentials(kafka: SecuredKafka, server: TokenServer, tmp_path: Path) -> None:
    path = tmp_path / "assertion.jwt"
    keys = settings(
        server,
        sasl_oauthbearer_assertion_file=str(path),
        sasl_oauthbearer_scope="kafka",
        ssl_ca_location=str(server.authority.certificate),
    )
    error = await refusal(kafka, "SASL_PLAINTEXT", **keys)
    assert isinstance(error, AuthenticationFailed)
    assert f"the assertion in {path} cannot be read" in str(error)
    path.write_text("out of date")
    error = await refusal(kafka, "SASL_PLAINTEXT", **keys)
    assert "answered 400 (invalid_grant)" in str(error)
    assert "check sasl.oauthbearer.token.endpoint.url, sasl.oauthbearer.assertion.file and scope" in str(error)
    path.write_text(ASSERTION + "\n")
    await check_works(kafka, "SASL_PLAINTEXT", **keys)
    grant = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert server.asked[-1] == {"grant_type": [grant], "assertion": [ASSERTION], "scope": ["kafka"]}
