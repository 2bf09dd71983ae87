"""DescribeCluster and DescribeConfigs as several admin clients see them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kafka
import kafka.admin
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource as AioConfigResource
from aiokafka.admin.config_resource import ConfigResourceType as AioConfigResourceType
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]

from tests.compat.admin import create_topic
from tests.compat.clients.base import JsonClient
from tests.compat.clients.registry import CLIENTS
from tests.support.brokers import Broker, target_is_kafka
from tests.support.java import shared_peer

# What Apache Kafka 4.3.1 says of a topic without settings of its own.
DEFAULTS: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "data" / "topic_configs.json").read_text())
OVERRIDES = {"retention.ms": "12345678", "cleanup.policy": "compact"}


def by_confluent(bootstrap: str, topic: str) -> dict[str, str | None]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
    return {name: entry.value for name, entry in admin.describe_configs([resource])[resource].result(15).items()}


def by_kafka_python(bootstrap: str, topic: str) -> dict[str, str | None]:
    admin = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        resource = kafka.admin.ConfigResource(kafka.admin.ConfigResourceType.TOPIC, topic)
        described = admin.describe_configs([resource], config_filter="all")
        entries = next(iter(next(iter(described.values())).values()))
        return {name: entry["value"] for name, entry in entries.items()}
    finally:
        admin.close()


def by_aiokafka(bootstrap: str, topic: str) -> dict[str, str | None]:
    async def run() -> dict[str, str | None]:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            answer = await admin.describe_configs([AioConfigResource(AioConfigResourceType.TOPIC, topic)])
            return {entry[0]: entry[1] for entry in answer[0].resources[0][4]}
        finally:
            await admin.close()

    return asyncio.run(asyncio.wait_for(run(), 20))


def by_java(bootstrap: str, topic: str) -> dict[str, str | None]:
    entries = shared_peer().call(op="describe_configs", bootstrap=bootstrap, type="TOPIC", name=topic)
    return {name: entry["value"] for name, entry in entries.items()}


def by_program(name: str) -> Callable[[str, str], dict[str, str | None]]:
    def ask(bootstrap: str, topic: str) -> dict[str, str | None]:
        client = CLIENTS[name]
        assert isinstance(client, JsonClient)
        return dict(client.call(op="describe_configs", bootstrap=bootstrap, topic=topic))

    return ask


ASKERS: dict[str, Callable[[str, str], dict[str, str | None]]] = {
    "confluent-kafka": by_confluent,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "java": by_java,
    "franz-go": by_program("franz-go"),
    "sarama": by_program("sarama"),
    "kafkajs": by_program("kafkajs"),
    "platformatic": by_program("platformatic"),
}


@pytest.mark.parametrize("asker", list(ASKERS))
def test_topic_configs(bootstrap: str, topic: str, asker: str) -> None:
    create_topic(bootstrap, topic, configs=OVERRIDES)
    expected = {name: entry["value"] for name, entry in DEFAULTS.items()} | OVERRIDES
    assert ASKERS[asker](bootstrap, topic) == expected


def test_every_topic_default_with_source_and_synonyms(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    described = shared_peer().call(op="describe_configs", bootstrap=bootstrap, type="TOPIC", name=topic)
    # A freshly formatted Kafka sets this one itself, for its eligible leader replicas; nobody sets it here.
    assert described.pop("min.insync.replicas")["value"] == "1"
    assert described == {name: entry for name, entry in DEFAULTS.items() if name != "min.insync.replicas"}


def test_overridden_topic_setting(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic, configs=OVERRIDES)
    described = shared_peer().call(op="describe_configs", bootstrap=bootstrap, type="TOPIC", name=topic)
    retention = described["retention.ms"]
    assert (retention["value"], retention["source"]) == ("12345678", "DYNAMIC_TOPIC_CONFIG")
    assert retention["synonyms"][0] == ["retention.ms", "12345678", "DYNAMIC_TOPIC_CONFIG"]


@pytest.mark.parametrize(
    "setting", ["log.dirs", "listeners", "num.partitions", "log.retention.hours", "message.max.bytes"]
)
def test_broker_configs(broker: Broker, setting: str) -> None:
    node = shared_peer().call(op="describe_cluster", bootstrap=broker.bootstrap)["nodes"][0][0]
    described = shared_peer().call(op="describe_configs", bootstrap=broker.bootstrap, type="BROKER", name=str(node))
    expected = {
        "log.dirs": (str(broker.data_dir), "STATIC_BROKER_CONFIG", True),
        "num.partitions": ("1", "DEFAULT_CONFIG", True),
        "log.retention.hours": ("168", "DEFAULT_CONFIG", True),
        "message.max.bytes": ("1048588", "DEFAULT_CONFIG", False),
    }
    entry = described[setting]
    if setting == "listeners":
        assert f"PLAINTEXT://{broker.bootstrap}" in entry["value"]
    else:
        assert (entry["value"], entry["source"], entry["read_only"]) == expected[setting]
    assert len(described) > 100


def test_configs_of_an_unknown_topic(bootstrap: str, topic: str) -> None:
    with pytest.raises(RuntimeError, match="UnknownTopicOrPartitionException"):
        shared_peer().call(op="describe_configs", bootstrap=bootstrap, type="TOPIC", name=topic)


def clusters(bootstrap: str) -> dict[str, tuple[str, int, list[tuple[int, str, int]]]]:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    rdkafka = admin.describe_cluster().result(15)
    found = {
        "confluent-kafka": (
            rdkafka.cluster_id,
            rdkafka.controller.id,
            [(node.id, node.host, node.port) for node in rdkafka.nodes],
        )
    }
    node = CLIENTS["kafkajs"]
    assert isinstance(node, JsonClient)
    for name, answer in (
        ("java", shared_peer().call(op="describe_cluster", bootstrap=bootstrap)),
        ("kafkajs", node.call(op="describe_cluster", bootstrap=bootstrap)),
    ):
        found[name] = (
            answer["cluster_id"],
            answer["controller"],
            [(one[0], one[1], one[2]) for one in answer["nodes"]],
        )
    return found


def test_describe_cluster(broker: Broker) -> None:
    found = clusters(broker.bootstrap)
    assert found["confluent-kafka"] == found["java"] == found["kafkajs"]
    cluster_id, controller, nodes = found["java"]
    assert nodes == [(controller, "127.0.0.1", broker.port)]
    meta = (broker.data_dir / "meta.properties").read_text().split("\n")
    assert f"cluster.id={cluster_id}" in meta
    assert f"node.id={controller}" in meta
    assert len(cluster_id) == 22


def test_describe_cluster_with_kafka_python(broker: Broker) -> None:
    admin = kafka.KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    try:
        described = admin.describe_cluster()
    finally:
        admin.close()
    assert [(node["host"], node["port"]) for node in described["brokers"]] == [("127.0.0.1", broker.port)]


def test_the_defaults_are_apache_kafkas() -> None:
    """Guards the data file against edits that make a failing test pass."""
    assert len(DEFAULTS) > 30
    assert DEFAULTS["segment.bytes"]["value"] == "1073741824"
    assert target_is_kafka() or DEFAULTS["retention.ms"]["source"] == "DEFAULT_CONFIG"
