"""Keys that every client has: addresses, connections, metadata, time and retries, metrics, security."""

from __future__ import annotations

from penstock.base.config.declaration import boolean, integer, long, string, words
from penstock.base.config.rules import OneOf
from penstock.client.config.effects import NO_LEVELS, NO_PUSH, ONE_LOOKUP
from penstock.client.config.security_keys import *  # noqa: F403 - security keys are common keys
from penstock.client.config.values import objects

BOOTSTRAP_SERVERS = words(
    "bootstrap.servers",
    (),
    "Some brokers as host:port, from which the client learns the others; 9092 without a port.",
)
CLIENT_DNS_LOOKUP = string(
    "client.dns.lookup",
    "use_all_dns_ips",
    "How host names become addresses.",
    rule=OneOf("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
    effect=ONE_LOOKUP,
)
CLIENT_ID = string("client.id", "", "Name in requests, for logs, metrics and quotas of brokers.")
CLIENT_RACK = string("client.rack", "", "Where the client is; where brokers allow it, a replica nearby is read.")
METADATA_MAX_AGE_MS = long("metadata.max.age.ms", 300_000, "Metadata older than this is fetched again.", at_least=0)
METADATA_RECOVERY_STRATEGY = string(
    "metadata.recovery.strategy",
    "rebootstrap",
    "What to do when no known broker can be reached: start again from bootstrap.servers, or not (KIP-899).",
    rule=OneOf("rebootstrap", "none", any_case=True),
)
METADATA_RECOVERY_REBOOTSTRAP_TRIGGER_MS = long(
    "metadata.recovery.rebootstrap.trigger.ms",
    300_000,
    "Without metadata for so long, the client starts again from bootstrap.servers.",
    at_least=0,
)
SEND_BUFFER_BYTES = integer(
    "send.buffer.bytes", 131_072, "Size of the sockets' send buffers; -1 leaves it to the system.", at_least=-1
)
RECONNECT_BACKOFF_MS = long("reconnect.backoff.ms", 50, "First pause before a broker is called again.", at_least=0)
RECONNECT_BACKOFF_MAX_MS = long("reconnect.backoff.max.ms", 1_000, "Longest such pause.", at_least=0)
RETRY_BACKOFF_MS = long("retry.backoff.ms", 100, "First pause before a failed request is repeated.", at_least=0)
RETRY_BACKOFF_MAX_MS = long("retry.backoff.max.ms", 1_000, "Longest such pause.", at_least=0)
REQUEST_TIMEOUT_MS = integer("request.timeout.ms", 30_000, "How long an answer may take.", at_least=0)
SOCKET_CONNECTION_SETUP_TIMEOUT_MS = long(
    "socket.connection.setup.timeout.ms", 10_000, "How long connecting may take; doubled after each failure."
)
SOCKET_CONNECTION_SETUP_TIMEOUT_MAX_MS = long(
    "socket.connection.setup.timeout.max.ms", 30_000, "Longest time that connecting may take."
)
CONNECTIONS_MAX_IDLE_MS = long("connections.max.idle.ms", 540_000, "Connections unused for so long are closed.")
METRICS_NUM_SAMPLES = integer(
    "metrics.num.samples", 2, "How many samples rates and averages look back over.", at_least=1
)
METRICS_SAMPLE_WINDOW_MS = long(
    "metrics.sample.window.ms", 30_000, "Time that a sample of rates and averages covers.", at_least=1
)
METRICS_RECORDING_LEVEL = string(
    "metrics.recording.level",
    "INFO",
    "How much is measured.",
    rule=OneOf("INFO", "DEBUG", "TRACE"),
    effect=NO_LEVELS,
)
METRIC_REPORTERS = objects(
    "metric.reporters", (), "Java classes that report metrics.", effect="`metrics()` gives them all"
)
ENABLE_METRICS_PUSH = boolean("enable.metrics.push", True, "Send metrics to brokers that ask.", effect=NO_PUSH)
