"""`bootstrap.servers` as addresses: `host`, `host:port`, `[::1]:port`; 9092 where no port is given."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from penstock.base.config.rules import BadValueError
from penstock.network.address import Address

DEFAULT_PORT: Final = 9092


def parse_addresses(servers: Iterable[str]) -> tuple[Address, ...]:
    """In order, each once. BadValueError names the part that is no address."""
    return tuple(dict.fromkeys(_parse(server.strip()) for server in servers))


def _parse(server: str) -> Address:
    # A listener's name in front (`PLAINTEXT://host:port`) is taken off, as Kafka does.
    plain = server.rpartition("://")[2]
    if plain.startswith("["):
        host, closed, rest = plain[1:].partition("]")
        port_text = rest.removeprefix(":")
        valid = bool(closed) and rest[:1] in ("", ":")
    elif plain.count(":") > 1:
        host, port_text, valid = plain, "", True  # a bare IPv6 address
    else:
        host, separator, port_text = plain.partition(":")
        valid = bool(port_text) or not separator
    if not host or not valid or not (port_text == "" or (port_text.isascii() and port_text.isdigit())):
        raise BadValueError("is not of the form host:port", server)
    port = int(port_text) if port_text else DEFAULT_PORT
    if not 1 <= port <= 65_535:
        raise BadValueError(f"port {port} is outside 1 to 65535", server)
    return Address(host, port)
