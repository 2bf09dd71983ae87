"""Listeners, connections and sockets."""

from __future__ import annotations

from penstock.base.config.declaration import CLUSTER_WIDE, INT_MAX, PER_BROKER, integer, long, string, words
from penstock.base.config.effects import ALONE, NO_QUOTAS, NO_SECURITY, ONE_LOOP
from penstock.base.config.rules import OneOf

LISTENERS = words(
    "listeners",
    ("PLAINTEXT://:9092",),
    "Addresses this broker listens on, as NAME://host:port, separated by commas. An empty host means every interface.",
    update=PER_BROKER,
)
ADVERTISED_LISTENERS = words(
    "advertised.listeners",
    None,
    "Addresses that clients are told to use. Set it when that is another than the one listened on.",
)
LISTENER_SECURITY_PROTOCOL_MAP = string(
    "listener.security.protocol.map",
    "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
    "Which security protocol each listener name speaks, as NAME:PROTOCOL pairs.",
    update=PER_BROKER,
)
INTER_BROKER_LISTENER_NAME = string(
    "inter.broker.listener.name", None, "The listener other brokers connect to.", effect=ALONE
)
SECURITY_INTER_BROKER_PROTOCOL = string(
    "security.inter.broker.protocol",
    "PLAINTEXT",
    "The protocol brokers speak among themselves when no listener is named for it.",
    rule=OneOf("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
    effect=ALONE,
)
SOCKET_SEND_BUFFER_BYTES = integer(
    "socket.send.buffer.bytes",
    102_400,
    "Size of a connection's send buffer in the kernel; -1, or not setting it, leaves it to the system.",
)
SOCKET_RECEIVE_BUFFER_BYTES = integer(
    "socket.receive.buffer.bytes",
    102_400,
    "Size of a connection's receive buffer in the kernel; -1, or not setting it, leaves it to the system.",
)
SOCKET_REQUEST_MAX_BYTES = integer(
    "socket.request.max.bytes",
    104_857_600,
    "Largest request accepted; a larger one closes the connection before it is read.",
    at_least=1,
)
SOCKET_LISTEN_BACKLOG_SIZE = integer(
    "socket.listen.backlog.size", 50, "Connections that may wait to be accepted on each listener.", at_least=1
)
MAX_CONNECTIONS_PER_IP = integer(
    "max.connections.per.ip", INT_MAX, "Most connections from one address.", at_least=0, update=CLUSTER_WIDE
)
MAX_CONNECTIONS_PER_IP_OVERRIDES = string(
    "max.connections.per.ip.overrides",
    "",
    "Other limits for some addresses, as address:count pairs.",
    update=CLUSTER_WIDE,
)
MAX_CONNECTIONS = integer(
    "max.connections", INT_MAX, "Most connections to this broker.", at_least=0, update=CLUSTER_WIDE
)
MAX_CONNECTION_CREATION_RATE = integer(
    "max.connection.creation.rate",
    INT_MAX,
    "Most new connections per second.",
    at_least=0,
    update=CLUSTER_WIDE,
    effect=NO_QUOTAS,
)
CONNECTIONS_MAX_IDLE_MS = long(
    "connections.max.idle.ms", 600_000, "A connection without progress for this long is closed."
)
CONNECTION_FAILED_AUTHENTICATION_DELAY_MS = integer(
    "connection.failed.authentication.delay.ms",
    100,
    "Pause before a failed authentication is answered.",
    at_least=0,
    effect=NO_SECURITY,
)
QUEUED_MAX_REQUESTS = integer(
    "queued.max.requests", 500, "Requests that may wait for a handler thread.", at_least=1, effect=ONE_LOOP
)
QUEUED_MAX_REQUEST_BYTES = long(
    "queued.max.request.bytes",
    -1,
    "Memory for requests being received, over all connections; large ones wait when it is used up. -1: no limit.",
)
NUM_NETWORK_THREADS = integer(
    "num.network.threads", 3, "Threads that read and write sockets.", at_least=1, update=CLUSTER_WIDE, effect=ONE_LOOP
)
