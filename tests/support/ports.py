"""Free TCP ports on the loopback interface."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port nobody listens on now. The kernel hands ports out in rotation, so two callers do not meet."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def answers(port: int, timeout_s: float = 1.0) -> bool:
    """Whether a Kafka broker on this port answers ApiVersions v0 (a listening socket alone is not yet a broker)."""
    request = b"\x00\x00\x00\x0a\x00\x12\x00\x00\x00\x00\x00\x07\xff\xff"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=timeout_s) as connection:
            connection.sendall(request)
            return connection.recv(8)[4:] == b"\x00\x00\x00\x07"
    except OSError:
        return False
