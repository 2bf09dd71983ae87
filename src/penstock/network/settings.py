"""Settings of outgoing connections: Kafka's client keys with underscores, Kafka's defaults unless the text says why."""

from __future__ import annotations

import random
from dataclasses import dataclass

from penstock import __version__
from penstock.base.ports import Clock, Network, Tasks


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    client_id: str | None = None
    request_timeout_ms: int = 30_000
    """How long a request may take, waiting in the queue included, unless its sender says otherwise."""
    max_in_flight_requests_per_connection: int = 5
    socket_connection_setup_timeout_ms: int = 10_000
    """From the first packet to the end of the handshake; doubled after each failure up to the maximum."""
    socket_connection_setup_timeout_max_ms: int = 30_000
    reconnect_backoff_ms: int = 50
    reconnect_backoff_max_ms: int = 1_000
    connections_max_idle_ms: int = 540_000
    """Below the brokers' ten minutes, so that this side closes first and no request meets a closing broker."""
    send_buffer_bytes: int = -1
    """-1 leaves it to the system, which adapts it; Kafka's fixed 128 KiB slows large requests down."""
    receive_buffer_bytes: int = -1
    """-1 leaves it to the system; Kafka's fixed 64 KiB slows large answers down."""
    response_bytes_max: int = 512 * 1024 * 1024
    """A larger answer ends the connection. Its memory is taken as its bytes arrive, not when its size is announced."""
    queued_requests_max: int = 1_000
    """Requests to one broker that may wait for a connection or for room on it."""
    throttle_time_max_ms: int = 60_000
    """A broker may ask for a longer pause (KIP-219), but is not obeyed for longer than this."""
    client_software_name: str = "penstock"
    client_software_version: str = __version__


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkPorts:
    """What this package takes from the world."""

    network: Network
    clock: Clock
    tasks: Tasks
    rng: random.Random
