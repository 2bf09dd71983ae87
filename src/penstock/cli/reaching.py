"""Whether a broker listens at an address, found out before a client tries.

Clients try for as long as they may, since a broker may come back; a person wants to know at once that nobody listens
there, or that what listens is no Kafka broker. One request that every broker answers tells them apart: a web server
waits for the end of a line that Kafka's clients never send, and a TLS port closes the connection or sends an alert.
"""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Iterator
from typing import Final

from penstock.cli.failures import fail

SERVER_VARIABLE: Final = "PENSTOCK_BOOTSTRAP_SERVER"
_PROBE_TIMEOUT_S: Final = 5.0
_LAST_CHANCE_S: Final = 0.1
"""For an address whose turn comes when the time is over."""
_ANSWERS_S: Final = 1.0
_PROBE_SHARE: Final = 1 / 6
"""Of a person's limit, for each of the three questions to somebody silent: half of it is left for the client."""
_API_VERSIONS: Final = bytes.fromhex("00000016 0012 0000 00000000 000c") + b"penstock-cli"
"""The request that every broker answers: its size, API 18, version 0, correlation id 0, the client's id."""


def check_reachable(servers: str, *, security_protocol: str, timeout_s: float, option: str) -> None:
    """Fails with one sentence unless one of the servers is there; `option` is how a person says where they are."""
    reasons = []
    deadline = time.monotonic() + timeout_s
    for host, port in _addresses(servers, option):
        left_s = max(deadline - time.monotonic(), _LAST_CHANCE_S)
        reason = _unreachable(host, port, round(min(_PROBE_TIMEOUT_S, left_s), 1))
        if reason is None:
            if security_protocol.upper() == "PLAINTEXT":
                _check_protocol(host, port, option, min(_ANSWERS_S, timeout_s * _PROBE_SHARE))
            return
        reasons.append(f"{host}:{port} {reason}")
    fail(
        f"no broker can be reached: {'; '.join(reasons)}. "
        f"Start one (`penstock serve`), or say where it is with {option} HOST:PORT or {SERVER_VARIABLE}"
    )


def _addresses(servers: str, option: str) -> Iterator[tuple[str, int]]:
    from penstock.base.config.rules import BadValueError
    from penstock.client.config.addresses import parse_addresses

    try:
        found = parse_addresses(part for part in servers.split(",") if part.strip())
    except BadValueError as error:
        fail(f"{error.value or servers} is no address of a broker: {error.reason} ({option}, or bootstrap.servers)")
    if not found:
        fail(f"no broker is named: give {option} HOST:PORT, bootstrap.servers or {SERVER_VARIABLE}")
    return ((each.host, each.port) for each in found)


def _unreachable(host: str, port: int, timeout_s: float) -> str | None:
    try:
        socket.create_connection((host, port), timeout_s).close()
    except socket.gaierror:
        return "is not known: the host name does not resolve"
    except TimeoutError:
        return f"does not answer within {timeout_s:g} s"
    except OSError as error:
        return f"refuses: {(error.strerror or str(error)).lower()}"
    return None


def _check_protocol(host: str, port: int, option: str, wait_s: float) -> None:
    answer = _first_bytes(host, port, wait_s)
    # A request without a version, such as ours must seem, is answered by some with a bare page.
    if answer.startswith((b"HTTP/", b"<")):
        fail(
            f"{host}:{port} is a web server, not a Kafka broker: check the port given with {option} or "
            f"{SERVER_VARIABLE}"
        )
    if (len(answer) < 4 and _speaks_tls(host, port, wait_s)) or answer.startswith(b"\x15\x03"):
        fail(
            f"{host}:{port} speaks TLS, and this connection does not: set security.protocol=SSL or SASL_SSL (and "
            "ssl.truststore.location, if the certificate is not a public one) in the properties file, or take the "
            "port of a PLAINTEXT listener"
        )


def _first_bytes(host: str, port: int, wait_s: float) -> bytes:
    """How the answer to a Kafka request begins; empty if there is none."""
    try:
        with socket.create_connection((host, port), wait_s) as probe:
            probe.sendall(_API_VERSIONS)
            for last_words in (b"\r\n\r\n", b""):
                try:
                    return probe.recv(5)
                except TimeoutError:
                    probe.sendall(last_words)
    except OSError:
        pass
    return b""


def _speaks_tls(host: str, port: int, wait_s: float) -> bool:
    """Whether a TLS server answers. Whose certificate it shows does not matter for that."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection((host, port), wait_s) as plain, context.wrap_socket(plain):
            return True
    except ssl.SSLError as error:
        # An alert is an answer: a server that wants the client's certificate, for one.
        return "ALERT" in (error.reason or "")
    except OSError:
        return False
