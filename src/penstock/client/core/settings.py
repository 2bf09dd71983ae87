"""A client's configuration as the settings of its connections, and the name it goes by."""

from __future__ import annotations

import itertools
import threading
from typing import Final

from penstock.client.config import KEYS, ClientConfig, ClientKind, consumer_keys, producer_keys
from penstock.network.security import SECURITY_KEYS, SecuritySettings
from penstock.network.settings import NetworkSettings

_numbers: Final = {kind: itertools.count(1) for kind in ClientKind}
_lock: Final = threading.Lock()


def name_of(config: ClientConfig) -> str:
    """`client.id`, or a name like Java's: producer-1, consumer-orders-1, adminclient-1."""
    given = config[producer_keys.CLIENT_ID]
    if given:
        return given
    with _lock:
        number = next(_numbers[config.kind])
    if config.kind is ClientKind.CONSUMER:
        return f"consumer-{config[consumer_keys.GROUP_ID] or 'none'}-{number}"
    return f"{'adminclient' if config.kind is ClientKind.ADMIN else config.kind.value}-{number}"


def network_settings(config: ClientConfig, client_id: str) -> NetworkSettings:
    keys = producer_keys
    return NetworkSettings(
        client_id=client_id,
        request_timeout_ms=config[keys.REQUEST_TIMEOUT_MS],
        max_in_flight_requests_per_connection=config[keys.MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION],
        socket_connection_setup_timeout_ms=config[keys.SOCKET_CONNECTION_SETUP_TIMEOUT_MS],
        socket_connection_setup_timeout_max_ms=config[keys.SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS],
        reconnect_backoff_ms=config[keys.RECONNECT_BACKOFF_MS],
        reconnect_backoff_max_ms=max(config[keys.RECONNECT_BACKOFF_MAX_MS], config[keys.RECONNECT_BACKOFF_MS]),
        connections_max_idle_ms=config[keys.CONNECTIONS_MAX_IDLE_MS],
        # The defaults are the system's, which adapt; Kafka's fixed ones are slow over long distances.
        send_buffer_bytes=config[keys.SEND_BUFFER_BYTES] if config.is_given(keys.SEND_BUFFER_BYTES) else -1,
        receive_buffer_bytes=config[keys.RECEIVE_BUFFER_BYTES] if config.is_given(keys.RECEIVE_BUFFER_BYTES) else -1,
    )


def security_settings(config: ClientConfig) -> SecuritySettings:
    keys = KEYS[config.kind]
    return SecuritySettings.of({name: config[keys[name]] for name in SECURITY_KEYS if name in keys})
