"""Topics that do not exist: a tool that waits for one, as Kafka's do, says so first.

Kafka's tools log what the broker answers, again and again. Here it is one line on standard error, with what to do.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from penstock.cli.failures import warn

if TYPE_CHECKING:
    from penstock.cli.connection import Connection
    from penstock.client.consumer.blocking import Consumer

LOOK_MS: Final = 2_000
"""How long a topic may take to come to exist, as with a broker that creates topics by itself, before it is missed."""


def partitions_of(consumer: Consumer, topic: str) -> tuple[int, ...]:
    """The topic's partitions; none, which is told, if it does not exist, and none if no broker says so in time."""
    from penstock.client.errors import KafkaTimeout, UnknownTopicOrPartition

    try:
        return tuple(each.partition for each in consumer.partitions_for(topic, LOOK_MS))
    except UnknownTopicOrPartition:
        _tell(topic)
    except KafkaTimeout:
        pass
    return ()


@contextmanager
def told_if_missing(connection: Connection, topic: str) -> Iterator[None]:
    """Should what is done inside take long, it is looked whether the topic exists."""
    timer = threading.Timer(LOOK_MS / 1000, _look, (connection, topic))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _look(connection: Connection, topic: str) -> None:
    from penstock.base.errors import KafkaError
    from penstock.client.errors import UnknownTopicOrPartition

    # Whatever else keeps the producer waiting it tells by itself.
    with suppress(KafkaError), connection.admin() as admin:
        try:
            admin.describe_topics([topic])
        except UnknownTopicOrPartition:
            _tell(topic)


def _tell(topic: str) -> None:
    warn(
        f"topic {topic} does not exist; waiting for it. Create it (kafka-topics --create --topic {topic}), or check "
        "its name: kafka-topics --list shows those there are"
    )
