"""Keys of the administration client, Kafka's defaults."""

from __future__ import annotations

from penstock.base.config.declaration import INT_MAX, integer, words
from penstock.client.config.common_keys import *  # noqa: F403 - an administrator has the common keys too

BOOTSTRAP_CONTROLLERS = words(
    "bootstrap.controllers",
    (),
    "Controllers to talk to instead of brokers.",
    effect="brokers forward to their controller; use bootstrap.servers",
)
RECEIVE_BUFFER_BYTES = integer(
    "receive.buffer.bytes", 65_536, "Size of the sockets' receive buffers; -1 leaves it to the system.", at_least=-1
)
RETRIES = integer("retries", INT_MAX, "How often a request is repeated within its time.", at_least=0)
DEFAULT_API_TIMEOUT_MS = integer(
    "default.api.timeout.ms", 60_000, "How long calls without a time-out of their own may take.", at_least=0
)
MAX_IN_FLIGHT_REQUESTS_PER_CONNECTION = integer(
    "max.in.flight.requests.per.connection", 1000, "Requests to one broker that wait for answers.", at_least=1,
    internal=True,
)  # fmt: skip
