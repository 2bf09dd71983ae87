"""Making, describing and removing topics, and what is refused, with Kafka's own error codes."""

from __future__ import annotations

import asyncio
from typing import Any

import confluent_kafka
import kafka
import kafka.admin
import kafka.errors
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewTopic as AioNewTopic
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.compat.admin import create_topic, delete_topic, end_offset, topic_id
from tests.compat.clients.base import JsonClient, Record
from tests.compat.clients.registry import CLIENTS
from tests.support.brokers import Broker
from tests.support.java import shared_peer

INVALID_NAMES = ["bad name", "bad/name", ".", "..", "x" * 250, "ünï"]


def refusal(bootstrap: str, name: str, **more: Any) -> int:
    """The error code of a refused CreateTopics."""
    settings: dict[str, Any] = {"num_partitions": 1, "replication_factor": 1, **more}
    admin = AdminClient({"bootstrap.servers": bootstrap})
    with pytest.raises(KafkaException) as caught:
        admin.create_topics([NewTopic(name, **settings)])[name].result(15)
    return int(caught.value.args[0].code())


def test_usable_as_soon_as_answered(bootstrap: str, topic: str) -> None:
    for index in range(5):
        name = f"{topic}-{index}"
        create_topic(bootstrap, name, partitions=3)
        CLIENTS["confluent-kafka"].write(bootstrap, name, [Record(b"k", b"v")], partition=2)
        assert end_offset(bootstrap, name, 2) == 1


def test_with_kafka_topics(bootstrap: str, topic: str) -> None:
    def run(*arguments: str) -> str:
        result = shared_peer().tool("TopicCommand", "--bootstrap-server", bootstrap, *arguments)
        assert result.code == 0, result
        return result.text

    configs = ["--config", "retention.ms=86400000", "--config", "cleanup.policy=compact,delete"]
    assert f"Created topic {topic}" in run("--create", "--topic", topic, "--partitions", "3", *configs)
    assert topic in run("--list").split()
    described = run("--describe", "--topic", topic)
    assert topic_id(bootstrap, topic) in described
    assert "PartitionCount: 3" in described
    assert "ReplicationFactor: 1" in described
    assert "retention.ms=86400000" in described
    assert "cleanup.policy=compact,delete" in described
    assert described.count("Leader: ") == 3
    assert run("--describe", "--unavailable-partitions").strip() == ""
    run("--delete", "--topic", topic)
    assert topic not in run("--list").split()


def test_with_kafka_topics_refused(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    result = shared_peer().tool("TopicCommand", "--bootstrap-server", bootstrap, "--create", "--topic", topic)
    assert result.code == 1
    assert f"Topic '{topic}' already exists." in result.text + result.stderr
    missing = shared_peer().tool(
        "TopicCommand", "--bootstrap-server", bootstrap, "--describe", "--topic", "no-such-topic"
    )
    assert missing.code == 1
    assert "does not exist" in missing.text + missing.stderr


def test_with_kafka_python(bootstrap: str, topic: str) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        new = kafka.admin.NewTopic(
            topic, num_partitions=4, replication_factor=1, topic_configs={"max.message.bytes": "2000"}
        )
        admin.create_topics([new])
        assert topic in admin.list_topics()
        described = admin.describe_topics([topic])[0]
        assert len(described["partitions"]) == 4
        with pytest.raises(kafka.errors.TopicAlreadyExistsError):
            admin.create_topics([new])
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
        with pytest.raises(kafka.errors.UnknownTopicOrPartitionError):
            admin.delete_topics([topic])
    finally:
        admin.close()


def test_with_aiokafka(bootstrap: str, topic: str) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            made = await admin.create_topics([AioNewTopic(topic, 2, 1)])
            assert made.topic_errors[0][1] == 0
            again = await admin.create_topics([AioNewTopic(topic, 2, 1)])
            assert again.topic_errors[0][1] == KafkaError.TOPIC_ALREADY_EXISTS
            assert len((await admin.describe_topics([topic]))[0]["partitions"]) == 2
            await admin.delete_topics([topic])
            assert topic not in await admin.list_topics()
        finally:
            await admin.close()

    asyncio.run(asyncio.wait_for(run(), 30))


def test_with_kafkajs(bootstrap: str, topic: str) -> None:
    client = CLIENTS["kafkajs"]
    assert isinstance(client, JsonClient)
    assert client.call(op="create_topic", bootstrap=bootstrap, topic=topic, partitions=3) is True
    # kafkajs answers false for a topic that is there already.
    assert client.call(op="create_topic", bootstrap=bootstrap, topic=topic, partitions=3) is False
    client.write(bootstrap, topic, [Record(b"k", b"v")] * 4, partition=1)
    offsets = client.call(op="topic_offsets", bootstrap=bootstrap, topic=topic)
    assert sorted(offsets) == [[0, 0, 0], [1, 0, 4], [2, 0, 0]]
    client.call(op="delete_topic", bootstrap=bootstrap, topic=topic)


def test_with_java(bootstrap: str, topic: str) -> None:
    made = shared_peer().call(op="create_topic", bootstrap=bootstrap, topic=topic, partitions=2)
    described = shared_peer().call(op="describe_topic", bootstrap=bootstrap, topic=topic)
    assert described == {"id": made["id"], "partitions": 2}
    with pytest.raises(RuntimeError, match="TopicExistsException"):
        shared_peer().call(op="create_topic", bootstrap=bootstrap, topic=topic, partitions=2)
    shared_peer().call(op="delete_topic", bootstrap=bootstrap, topic=topic)
    with pytest.raises(RuntimeError, match="UnknownTopicOrPartitionException"):
        shared_peer().call(op="describe_topic", bootstrap=bootstrap, topic=topic)


@pytest.mark.parametrize("name", INVALID_NAMES)
def test_invalid_name(bootstrap: str, name: str) -> None:
    assert refusal(bootstrap, name) == KafkaError.TOPIC_EXCEPTION


def test_invalid_name_in_a_produce(bootstrap: str) -> None:
    with pytest.raises(KafkaException) as caught:
        CLIENTS["confluent-kafka"].write(bootstrap, "bad name", [Record(b"k", b"v")])
    assert caught.value.args[0].code() == KafkaError.TOPIC_EXCEPTION
    with pytest.raises(RuntimeError, match="InvalidTopicException"):
        CLIENTS["java"].write(bootstrap, "bad name", [Record(b"k", b"v")])


def test_names_that_collide_in_metrics(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, f"{topic}.a")
    assert refusal(bootstrap, f"{topic}_a") == KafkaError.TOPIC_EXCEPTION


def test_existing_topic(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    assert refusal(bootstrap, topic) == KafkaError.TOPIC_ALREADY_EXISTS


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"num_partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"replication_factor": 3}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"no.such.setting": "1"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"cleanup.policy": "shred"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"segment.bytes": "-1"}}, KafkaError.INVALID_CONFIG),
        ({"replica_assignment": [[77]], "replication_factor": -1}, KafkaError.INVALID_REPLICA_ASSIGNMENT),
    ],
    ids=[
        "no partitions",
        "replication factor",
        "not a number",
        "unknown setting",
        "unknown policy",
        "below its bound",
        "unknown broker",
    ],
)
def test_refused_settings(bootstrap: str, topic: str, settings: dict[str, Any], code: int) -> None:
    assert refusal(bootstrap, topic, **settings) == code
    with pytest.raises(KafkaException) as caught:
        topic_id(bootstrap, topic)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_validate_only(bootstrap: str, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, 2, 1)], validate_only=True)[topic].result(15)
    with pytest.raises(KafkaException) as caught:
        topic_id(bootstrap, topic)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_delete_and_make_again(broker: Broker, topic: str) -> None:
    """A new topic with an old name has a new id and begins at offset 0; nothing of the old one is seen."""
    bootstrap = broker.bootstrap
    create_topic(bootstrap, topic, partitions=2)
    CLIENTS["confluent-kafka"].write(bootstrap, topic, [Record(b"k", b"old")] * 5)
    before = topic_id(bootstrap, topic)
    delete_topic(bootstrap, topic)
    with pytest.raises(KafkaException) as caught:
        delete_topic(bootstrap, topic)
    assert caught.value.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
    create_topic(bootstrap, topic)
    assert topic_id(bootstrap, topic) != before
    assert end_offset(bootstrap, topic) == 0
    for name in ("java", "franz-go", "confluent-kafka"):
        CLIENTS[name].write(bootstrap, topic, [Record(b"k", b"new")])
    read = CLIENTS["franz-go"].read(bootstrap, topic, count=3)
    assert [(one.offset, one.value) for one in read] == [(0, b"new"), (1, b"new"), (2, b"new")]
    written = (broker.partition_dir(topic) / "partition.metadata").read_text()
    assert f"topic_id: {topic_id(bootstrap, topic)}" in written


def test_unknown_partition(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    with pytest.raises(KafkaException) as caught:
        end_offset(bootstrap, topic, 9)
    assert caught.value.args[0].code() == KafkaError._NOENT
    # No partition 9 in the metadata: the client knows without asking further.
    errors: list[int] = []
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "topic.metadata.propagation.max.ms": 500})
    producer.produce(topic, b"v", partition=9, on_delivery=lambda error, _: errors.append(error.code() if error else 0))
    assert producer.flush(10) == 0
    assert errors == [KafkaError._UNKNOWN_PARTITION]
