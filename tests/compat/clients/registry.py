"""All clients, by name."""

from __future__ import annotations

from tests.compat.clients.base import Client
from tests.compat.clients.foreign import Franz, Java, KafkaJs, Platformatic, Sarama
from tests.compat.clients.python import AioKafka, Confluent, KafkaPython
from tests.compat.clients.tools import Console, Kcat

CLIENTS: dict[str, Client] = {
    client.name: client
    for client in (
        Confluent(),
        AioKafka(),
        KafkaPython(),
        Kcat(),
        Java(),
        Console(),
        Franz(),
        Sarama(),
        KafkaJs(),
        Platformatic(),
    )
}
READERS = [name for name, client in CLIENTS.items() if client.reads]
