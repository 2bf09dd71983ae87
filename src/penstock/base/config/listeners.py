"""Listeners: `NAME://host:port` texts become `Listener`s, with every problem named.

A name stands for itself when it is a security protocol, otherwise `listener.security.protocol.map` says what it speaks.
Listeners named by `controller.listener.names` belong to a KRaft controller and are left out.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
SUPPORTED_PROTOCOLS = ("PLAINTEXT",)

_LISTENER = re.compile(r"(?P<name>[^:/]+)://(?:\[(?P<v6>[0-9a-fA-F:.%\w]+)\]|(?P<host>[^\[\]:/]*)):(?P<port>-?[0-9]+)")
_HOST = re.compile(r"[0-9a-zA-Z_.%-]*")


class ListenerError(ValueError):
    """What is wrong with a listener, in a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    name: str
    security_protocol: str
    host: str
    """Empty means every interface."""
    port: int
    """0 means any free one."""

    def __str__(self) -> str:
        return f"{self.name}://{format_address(self.host, self.port)}"


def format_address(host: str, port: int) -> str:
    """`host:port` as clients take it: an IPv6 address stands in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...` with both in upper case."""
    protocols: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, separator, protocol = (part.strip().upper() for part in pair.rpartition(":"))
        if not separator or not name:
            raise ListenerError(f"{pair} is not of the form NAME:PROTOCOL")
        if protocol not in SECURITY_PROTOCOLS:
            raise ListenerError(f"{protocol} is not a security protocol; use one of {', '.join(SECURITY_PROTOCOLS)}")
        if name in protocols:
            raise ListenerError(f"{name} occurs twice")
        protocols[name] = protocol
    return protocols


def parse_listener(text: str, protocols: Mapping[str, str]) -> Listener:
    match = _LISTENER.fullmatch(text.strip())
    if match is None:
        raise ListenerError(f"{text} is not of the form NAME://host:port (an IPv6 host goes into square brackets)")
    name, port = match["name"].strip().upper(), int(match["port"])
    host = match["v6"] if match["v6"] is not None else match["host"]
    if match["v6"] is not None and not _is_ipv6(host):
        raise ListenerError(f"{text}: [{host}] is not an IPv6 address")
    if match["v6"] is None and not _HOST.fullmatch(host):
        raise ListenerError(f"{text}: {host} is not a host name")
    if not 0 <= port <= 65535:
        raise ListenerError(f"{text}: the port must be between 0 and 65535")
    if name not in protocols:
        raise ListenerError(
            f"{name} is neither a security protocol nor in listener.security.protocol.map; add {name}:PLAINTEXT there"
        )
    return Listener(name=name, security_protocol=protocols[name], host=host, port=port)


def check_distinct(listeners: Iterable[Listener], *, ports: bool) -> None:
    """Names must differ; with `ports`, ports too, except that an IPv4 and an IPv6 host may share one."""
    by_name: set[str] = set()
    by_port: dict[int, list[Listener]] = {}
    for listener in listeners:
        if listener.name in by_name:
            raise ListenerError(f"the name {listener.name} is used twice; every listener needs its own")
        by_name.add(listener.name)
        if ports and listener.port:
            by_port.setdefault(listener.port, []).append(listener)
    for port, sharing in by_port.items():
        if len(sharing) > 1 and not _is_pair(sharing):
            raise ListenerError(f"port {port} is used by {' and '.join(entry.name for entry in sharing)}")


def check_supported(listener: Listener) -> None:
    if listener.security_protocol not in SUPPORTED_PROTOCOLS:
        raise ListenerError(f"{listener}: {listener.security_protocol} does not work yet; use a PLAINTEXT listener")


def check_advertised(listener: Listener) -> None:
    if listener.host in ("0.0.0.0", "::"):
        raise ListenerError(
            f"clients cannot connect to {listener}: set advertised.listeners to an address that they can reach, "
            f"such as {listener.name}://localhost:{listener.port}"
        )


def _is_pair(listeners: list[Listener]) -> bool:
    kinds = sorted(6 if _is_ipv6(entry.host) else 4 if _is_ipv4(entry.host) else 0 for entry in listeners)
    return kinds == [4, 6]


def _is_ipv6(host: str) -> bool:
    try:
        ipaddress.IPv6Address(host)
    except ValueError:
        return False
    return True


def _is_ipv4(host: str) -> bool:
    try:
        ipaddress.IPv4Address(host)
    except ValueError:
        return False
    return True
