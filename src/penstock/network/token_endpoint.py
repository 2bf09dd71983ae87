"""Tokens from an OAuth server, or from a file.

The server gives them for a client's id and secret (RFC 6749, 4.4; KIP-768), or for an assertion: a JWT that somebody
else has signed and keeps fresh in a file (RFC 7523; KIP-1139).

The request is an ordinary HTTP POST made with the standard library in a worker thread; time and size are bounded. A
server that is out of order is asked a few times, with back-off; one that says no is not asked again.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote_plus, urlencode, urlsplit
from urllib.request import url2pathname

from penstock.base.config.declaration import Problem
from penstock.network.backoff import backoff_ms
from penstock.network.errors import AuthenticationFailed, ConnectFailed, NetworkError
from penstock.network.settings import NetworkPorts
from penstock.security.sasl.tokens import Token, expiry_ms

URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"
TRIES_MAX: Final = 3
TIMEOUT_MS: Final = 10_000
"""Where nothing is set; Kafka would wait for ever."""
ANSWER_BYTES_MAX: Final = 1024 * 1024
_TOLD_MAX: Final = 200
_JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_ASSERTION_KEY: Final = "sasl.oauthbearer.assertion.file"


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenEndpoint:
    url: str
    client_id: str | None
    client_secret: str | None = field(repr=False)
    assertion_file: str | None = None
    scope: str | None = None
    extensions: Mapping[str, str] = field(default_factory=dict)
    url_encode: bool = False
    connect_timeout_ms: int | None = None
    read_timeout_ms: int | None = None
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000
    tls: ssl.SSLContext | None = None

    def problems(self) -> list[Problem]:
        parts = urlsplit(self.url)
        if parts.scheme == "file" and parts.path:
            return []
        found: list[Problem] = []
        if parts.scheme not in ("http", "https") or not parts.hostname:
            reason = "set it to the https, http or file URL that tokens come from"
            found.append(Problem(key=URL_KEY, value=self.url or None, reason=reason))
        if not self.assertion_file and (not self.client_id or self.client_secret is None):
            key = "sasl.oauthbearer.client.credentials.client." + ("id" if not self.client_id else "secret")
            reason = "a token endpoint wants a client id and secret, or an assertion: set both, or the assertion's file"
            found.append(Problem(key=key, reason=reason))
        return found

    async def fetch(self, ports: NetworkPorts) -> Token:
        """A new token; `AuthenticationFailed` when the server says no, `ConnectFailed` when it says nothing."""
        for tries in range(1, TRIES_MAX):
            try:
                return await self._fetch_once(ports)
            except ConnectFailed:
                pause_ms = backoff_ms(self.retry_backoff_ms, self.retry_backoff_max_ms, tries, ports.rng)
            await _pause(ports, pause_ms)
        return await self._fetch_once(ports)

    async def _fetch_once(self, ports: NetworkPorts) -> Token:
        answer = await ports.tasks.run_blocking(self._ask)
        return self._token(answer, ports.clock.time_ms())

    def _token(self, answer: str | Mapping[str, object], now_ms: int) -> Token:
        if isinstance(answer, str):
            return Token(value=answer, started_ms=now_ms, expires_ms=expiry_ms(answer), extensions=self.extensions)
        value, lifetime_s = answer.get("access_token") or answer.get("id_token"), answer.get("expires_in")
        if not isinstance(value, str):
            raise AuthenticationFailed(None, f"the answer of {self.url} holds no access_token: check {URL_KEY}")
        expires_ms = expiry_ms(value)
        if expires_ms is None and isinstance(lifetime_s, int | float):
            expires_ms = now_ms + int(lifetime_s * 1000)
        return Token(value=value, started_ms=now_ms, expires_ms=expires_ms, extensions=self.extensions)

    # In a worker.

    def _ask(self) -> str | Mapping[str, object]:
        parts = urlsplit(self.url)
        try:
            if parts.scheme == "file":
                return _read_file(url2pathname(parts.path))
            status, body = self._post(self._request())
        except ssl.SSLError as error:
            raise AuthenticationFailed(None, f"TLS with {self.url} failed ({error}): check ssl.truststore") from error
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise ConnectFailed(None, f"no token from {self.url} ({error}): is that server up?") from error
        return self._read(status, body)

    def _post(self, request: tuple[bytes, dict[str, str]]) -> tuple[int, bytes]:
        parts = urlsplit(self.url)
        connection = self._connection(parts.hostname or "", parts.port)
        try:
            connection.connect()
            if connection.sock is not None:
                connection.sock.settimeout((self.read_timeout_ms or TIMEOUT_MS) / 1000)
            target = parts.path or "/"
            connection.request("POST", f"{target}?{parts.query}" if parts.query else target, *request)
            response = connection.getresponse()
            return response.status, response.read(ANSWER_BYTES_MAX)
        finally:
            connection.close()

    def _connection(self, host: str, port: int | None) -> http.client.HTTPConnection:
        timeout_s = (self.connect_timeout_ms or TIMEOUT_MS) / 1000
        if self.tls is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self.tls)

    def _request(self) -> tuple[bytes, dict[str, str]]:
        """Body and headers."""
        headers = {
            "Accept": "application/json",
            "Cache-Control": "no-cache",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        form = {"scope": self.scope} if self.scope else {}
        if self.assertion_file:
            form |= {"grant_type": _JWT_BEARER, "assertion": self._assertion(self.assertion_file)}
        else:
            form["grant_type"] = "client_credentials"
            headers["Authorization"] = self._basic()
        return urlencode(form).encode("ascii"), headers

    def _assertion(self, path: str) -> str:
        try:
            return _read_file(path)
        except OSError as error:
            reason = f"the assertion in {path} cannot be read ({error.strerror}): check {_ASSERTION_KEY}"
            raise AuthenticationFailed(None, reason) from error

    def _basic(self) -> str:
        name, secret = self.client_id or "", self.client_secret or ""
        if self.url_encode:
            name, secret = quote_plus(name), quote_plus(secret)
        return "Basic " + base64.b64encode(f"{name}:{secret}".encode()).decode("ascii")

    def _read(self, status: int, body: bytes) -> Mapping[str, object]:
        try:
            answer = json.loads(body)
        except ValueError:
            answer = None
        if status == 200 and isinstance(answer, dict):
            return answer
        raise self._refusal(status, answer)

    def _refusal(self, status: int, answer: object) -> NetworkError:
        told = ""
        if isinstance(answer, dict):
            told = ", ".join(str(answer[key]) for key in ("error", "error_description") if key in answer)[:_TOLD_MAX]
        said = f"{self.url} answered {status}{f' ({told})' if told else ''} instead of a token"
        if status >= 500 or status == 429:
            return ConnectFailed(None, f"{said}: is that server in order?")
        credentials = _ASSERTION_KEY if self.assertion_file else "client id, secret"
        return AuthenticationFailed(None, f"{said}: check {URL_KEY}, {credentials} and scope")


def _read_file(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read(ANSWER_BYTES_MAX).strip()


async def _pause(ports: NetworkPorts, pause_ms: float) -> None:
    over = asyncio.Event()
    timer = ports.tasks.call_later(pause_ms / 1000, over.set)
    try:
        await over.wait()
    finally:
        timer.cancel()
