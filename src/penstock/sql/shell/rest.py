"""A client of the REST interface, blocking, on the standard library."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlsplit

from penstock.sql.shell.json_text import read_json

DEFAULT_URL: Final = "http://localhost:8088"
CONNECT_TIMEOUT_S: Final = 10.0
ANSWER_TIMEOUT_S: Final = 120.0
READ_BYTES: Final = 64 * 1024
_JSON: Final = "application/vnd.ksql.v1+json"
_LINES: Final = "application/vnd.ksqlapi.delimited.v1"
_NO_SERVER: Final = "What answers at {} is no SQL server: check the address."


class ShellError(Exception):
    """What the person at the shell is told."""


class UnreachableError(ShellError):
    """No server answers."""


class RefusedError(ShellError):
    """The server refuses a statement; `entities` are the answers to those before it."""

    def __init__(self, message: str, code: int = 0, entities: list[dict[str, Any]] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.entities = entities or []


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """What a query's rows consist of; None of both for PRINT, whose rows are lines."""

    names: list[str]
    types: list[str]
    query_id: str | None = None


class RestClient:
    def __init__(self, url: str = DEFAULT_URL) -> None:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        try:
            self._port = parts.port or 8088
        except ValueError:
            raise ShellError(f"{url} is no address: write http://HOST:PORT.") from None
        if parts.scheme != "http" or not parts.hostname:
            raise ShellError(f"{url} is no address: write http://HOST:PORT.")
        self._host = parts.hostname
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.url = f"http://{host}:{self._port}"

    def info(self) -> dict[str, Any]:
        found: dict[str, Any] = self._json("GET", "/info")["KsqlServerInfo"]
        return found

    def execute(
        self, text: str, properties: Mapping[str, str], variables: Mapping[str, str], sequence_number: int | None = None
    ) -> list[dict[str, Any]]:
        body: dict[str, Any] = {"ksql": text, "streamsProperties": properties, "sessionVariables": variables}
        if sequence_number is not None:
            body["commandSequenceNumber"] = sequence_number
        found: list[dict[str, Any]] = self._json("POST", "/ksql", body)
        return found

    def is_valid_property(self, name: str) -> bool:
        try:
            return bool(self._json("GET", f"/is_valid_property/{quote(name, safe='')}"))
        except RefusedError:
            return False

    def query(self, text: str, properties: Mapping[str, str], variables: Mapping[str, str]) -> RowReader:
        body = {"sql": text, "properties": properties, "sessionVariables": variables}
        connection, response = self._send("POST", "/query-stream", body, accept=_LINES)
        return RowReader(connection, response, self.url)

    def _json(self, method: str, path: str, body: Any = None) -> Any:
        connection, response = self._send(method, path, body, accept=_JSON)
        with connection_errors(self.url, connected=True):
            try:
                return read_json(response.read())
            except ValueError:
                raise UnreachableError(_NO_SERVER.format(self.url)) from None
            finally:
                connection.close()

    def _send(
        self, method: str, path: str, body: Any, *, accept: str
    ) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection(self._host, self._port, timeout=CONNECT_TIMEOUT_S)
        headers = {"Accept": accept, "Content-Type": _JSON}
        with connection_errors(self.url):
            connection.connect()
            connection.sock.settimeout(ANSWER_TIMEOUT_S)
            connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise _refusal(response.read(), response.status)
        return connection, response


class RowReader:
    """The rows of a query as they come. Closing it ends the query."""

    def __init__(self, connection: http.client.HTTPConnection, response: http.client.HTTPResponse, url: str) -> None:
        self._url = url
        self._socket = connection.sock
        self._connection = connection
        self._response = response
        self._lines_only = (response.getheader("Content-Type") or "").startswith("text/plain")
        # A push query may be silent for as long as it likes.
        if self._socket is not None:
            self._socket.settimeout(None)
        self._lines = self._split()
        self.columns = None if self._lines_only else self._head()

    def rows(self) -> Iterator[Any]:
        """Lists of values, or lines of text for PRINT."""
        with connection_errors(self._url, connected=True):
            for line in self._lines:
                yield line.decode() if self._lines_only else self._row(line)

    def close(self) -> None:
        # The answer may have no end: nothing more of it is read.
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def _split(self) -> Iterator[bytes]:
        """The lines of the answer. `read1` tells that the connection broke; `readline` takes that for the end."""
        rest = b""
        while piece := self._response.read1(READ_BYTES):
            *lines, rest = (rest + piece).split(b"\n")
            yield from filter(None, lines)
        if rest:
            yield rest

    def _head(self) -> Columns:
        with connection_errors(self._url, connected=True):
            line = next(self._lines, b"")
        try:
            head = read_json(line)
            return Columns(names=head["columnNames"], types=head["columnTypes"], query_id=head.get("queryId"))
        except (ValueError, KeyError, TypeError):
            raise UnreachableError(_NO_SERVER.format(self._url)) from None

    def _row(self, line: bytes) -> Any:
        row = read_json(line)
        if isinstance(row, dict):
            raise RefusedError(str(row.get("message", row)), int(row.get("error_code", 0)))
        return row


class connection_errors:  # noqa: N801 - used as a statement
    """Turns what goes wrong on the way into one sentence. `connected`: an answer had begun."""

    def __init__(self, url: str, *, connected: bool = False) -> None:
        self._url = url
        self._connected = connected

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        if isinstance(error, TimeoutError):
            raise UnreachableError(f"{self._url} does not answer in time.") from error
        if isinstance(error, http.client.BadStatusLine) and not isinstance(error, http.client.RemoteDisconnected):
            raise UnreachableError(_NO_SERVER.format(self._url)) from error
        if isinstance(error, (OSError, http.client.HTTPException)):
            reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
            if isinstance(error, http.client.IncompleteRead):
                reason = "the server ended it"
            if self._connected:
                raise UnreachableError(f"The connection to {self._url} broke: {reason.lower()}.") from error
            raise UnreachableError(
                f"No SQL server answers at {self._url}: {reason.lower()}. Start one with `penstock up` or "
                "`penstock sql-server`, or name another address."
            ) from error


def _refusal(body: bytes, status: int) -> ShellError:
    try:
        error = read_json(body)
        return RefusedError(error["message"], error["error_code"], error.get("entities"))
    except (ValueError, KeyError, TypeError):
        return UnreachableError(f"The server answers with HTTP {status} and no reason: is it a SQL server?")
