"""Topics made and asked about by confluent-kafka's admin client, for tests whose subject is something else."""

from __future__ import annotations

from collections.abc import Mapping

from confluent_kafka import TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec  # type: ignore[attr-defined]

TIMEOUT_S = 40.0


def _client(bootstrap: str) -> AdminClient:
    """The caller holds on to it: its pending futures fail when it is collected."""
    return AdminClient({"bootstrap.servers": bootstrap})


def create_topic(bootstrap: str, topic: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
    """Returns when the topic is usable; a refusal raises ``KafkaException``."""
    new = NewTopic(topic, num_partitions=partitions, replication_factor=1, config=dict(configs or {}))
    client = _client(bootstrap)
    client.create_topics([new], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)


def delete_topic(bootstrap: str, topic: str) -> None:
    client = _client(bootstrap)
    client.delete_topics([topic], operation_timeout=TIMEOUT_S)[topic].result(TIMEOUT_S)


def topic_id(bootstrap: str, topic: str) -> str:
    """The id as Kafka prints it in ``partition.metadata``."""
    client = _client(bootstrap)
    described = client.describe_topics(TopicCollection([topic]))[topic].result(TIMEOUT_S)
    # librdkafka prints ids in the common base64 alphabet, Kafka in the one for addresses.
    return str(described.topic_id).translate(str.maketrans("+/", "-_"))


def end_offset(bootstrap: str, topic: str, partition: int = 0) -> int:
    return list_offset(bootstrap, topic, OffsetSpec.latest(), partition)[0]  # type: ignore[no-untyped-call]


def list_offset(bootstrap: str, topic: str, spec: OffsetSpec, partition: int = 0) -> tuple[int, int]:
    """Offset and time stamp that ListOffsets gives."""
    place = TopicPartition(topic, partition)
    client = _client(bootstrap)
    found = client.list_offsets({place: spec})[place].result(TIMEOUT_S)
    return found.offset, found.timestamp
