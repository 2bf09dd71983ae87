"""Keys and configuration of the clients.

`producer_keys`, `consumer_keys` and `admin_keys` declare Kafka's keys (each includes `common_keys`), `ClientConfig`
holds the values of one client, and `options` has the same keys as typed keywords::

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Unpack[ProducerOptions]) -> None:
        values = ClientConfig(ClientKind.PRODUCER, config, options)
"""

from penstock.client.config import admin_keys, common_keys, consumer_keys, producer_keys
from penstock.client.config.config import KEYS, ClientConfig, ClientKind, known_key
from penstock.client.config.options import AdminOptions, CommonOptions, ConsumerOptions, ProducerOptions

__all__ = [
    "KEYS",
    "AdminOptions",
    "ClientConfig",
    "ClientKind",
    "CommonOptions",
    "ConsumerOptions",
    "ProducerOptions",
    "admin_keys",
    "common_keys",
    "consumer_keys",
    "known_key",
    "producer_keys",
]
