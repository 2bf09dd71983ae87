"""Administration through Kafka's own tools and through librdkafka's admin client."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import kafka
import kafka.admin
import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    ResourceType,
)

from tests.compat.admin import TIMEOUT_S, create_topic, end_offset
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS
from tests.support.brokers import Broker
from tests.support.java import ToolResult, shared_peer

Tool = Callable[..., str]


@pytest.fixture
def tool(bootstrap: str) -> Tool:
    """Runs a tool that must succeed; what it printed."""

    def run(name: str, *arguments: str) -> str:
        result = try_tool(bootstrap, name, *arguments)
        assert result.code == 0, result
        return result.text + result.stderr

    return run


def try_tool(bootstrap: str, name: str, *arguments: str) -> ToolResult:
    return shared_peer().tool(name, "--bootstrap-server", bootstrap, *arguments)


def write(bootstrap: str, topic: str, count: int, partition: int = 0) -> None:
    records = [Record(b"k", b"%d" % number, ()) for number in range(count)]
    CLIENTS["confluent-kafka"].write(bootstrap, topic, records, partition=partition)


# -- Kafka's tools -------------------------------------------------------------------------------------------------


def test_kafka_topics_adds_partitions(bootstrap: str, tool: Tool, topic: str) -> None:
    create_topic(bootstrap, topic, 2)
    tool("TopicCommand", "--alter", "--topic", topic, "--partitions", "4")
    assert "PartitionCount: 4" in tool("TopicCommand", "--describe", "--topic", topic)
    write(bootstrap, topic, 3, partition=3)
    assert end_offset(bootstrap, topic, 3) == 3
    fewer = try_tool(bootstrap, "TopicCommand", "--alter", "--topic", topic, "--partitions", "1")
    assert fewer.code == 1
    assert "would not be an increase" in fewer.text + fewer.stderr


def test_kafka_configs_of_a_topic(bootstrap: str, tool: Tool, topic: str) -> None:
    create_topic(bootstrap, topic)
    entity = ("--entity-type", "topics", "--entity-name", topic)
    changed = tool(
        "kafka.admin.ConfigCommand",
        "--alter",
        *entity,
        "--add-config",
        "retention.ms=5000,cleanup.policy=[compact,delete]",
    )
    assert f"Completed updating config for topic {topic}." in changed
    shown = tool("kafka.admin.ConfigCommand", "--describe", *entity)
    assert re.search(r"retention\.ms=5000 sensitive=false synonyms=\{DYNAMIC_TOPIC_CONFIG:retention\.ms=5000", shown)
    assert "cleanup.policy=compact,delete" in shown
    tool("kafka.admin.ConfigCommand", "--alter", *entity, "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("kafka.admin.ConfigCommand", "--describe", *entity)
    everything = tool("kafka.admin.ConfigCommand", "--describe", "--all", *entity)
    assert "retention.ms=604800000 sensitive=false synonyms={}" in everything
    refused = try_tool(bootstrap, "kafka.admin.ConfigCommand", "--alter", *entity, "--add-config", "segment.bytes=1")
    assert refused.code == 1
    assert "Value must be at least 1048576" in refused.text + refused.stderr


def test_kafka_configs_of_brokers(start_broker: Callable[..., Broker]) -> None:
    bootstrap = start_broker().bootstrap

    def configs(*arguments: str) -> str:
        result = try_tool(bootstrap, "kafka.admin.ConfigCommand", *arguments)
        assert result.code == 0, result
        return result.text + result.stderr

    one = ("--entity-type", "brokers", "--entity-name", "1")
    every = ("--entity-type", "brokers", "--entity-default")
    configs("--alter", *every, "--add-config", "log.retention.ms=5000000,message.max.bytes=2000000")
    configs("--alter", *one, "--add-config", "log.retention.ms=4000000")
    shown = configs("--describe", *one)
    assert "log.retention.ms=4000000" in shown
    assert (
        "DYNAMIC_BROKER_CONFIG:log.retention.ms=4000000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=5000000"
        in shown
    )
    assert "message.max.bytes=2000000" in configs("--describe", *every)
    configs("--alter", *one, "--delete-config", "log.retention.ms")
    configs("--alter", *every, "--delete-config", "log.retention.ms")
    assert "log.retention.ms" not in configs("--describe", *one)
    refused = try_tool(bootstrap, "kafka.admin.ConfigCommand", "--alter", *one, "--add-config", "num.partitions=3")
    assert refused.code == 1
    assert "Cannot update these configs dynamically" in refused.text + refused.stderr


def test_kafka_delete_records(bootstrap: str, tool: Tool, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic, 2)
    for partition in range(2):
        write(bootstrap, topic, 10, partition)
    places = [{"topic": topic, "partition": 0, "offset": 4}, {"topic": topic, "partition": 1, "offset": -1}]
    offsets = tmp_path / "offsets.json"
    offsets.write_text(json.dumps({"partitions": places, "version": 1}))
    printed = tool("DeleteRecordsCommand", "--offset-json-file", str(offsets))
    assert re.search(rf"partition: {topic}-0\s+low_watermark: 4", printed)
    assert re.search(rf"partition: {topic}-1\s+low_watermark: 10", printed)
    earliest = tool("GetOffsetShell", "--topic", topic, "--time", "earliest").split()
    assert [f"{topic}:0:4", f"{topic}:1:10"] == [line for line in earliest if line.startswith(topic)]


def test_kafka_log_dirs(bootstrap: str, broker: Broker, tool: Tool, topic: str) -> None:
    create_topic(bootstrap, topic)
    write(bootstrap, topic, 10)
    printed = tool("LogDirsCommand", "--describe", "--topic-list", topic)
    (line,) = [line for line in printed.splitlines() if line.startswith("{")]
    (described,) = json.loads(line)["brokers"]
    (directory,) = described["logDirs"]
    assert directory["logDir"] == str(broker.data_dir)
    assert directory["error"] is None
    (partition,) = directory["partitions"]
    assert (partition["partition"], partition["isFuture"], partition["offsetLag"]) == (f"{topic}-0", False, 0)
    assert partition["size"] == sum(path.stat().st_size for path in broker.partition_dir(topic).glob("*.log"))


def test_kafka_features(start_broker: Callable[..., Broker]) -> None:
    bootstrap = start_broker().bootstrap

    def features(*arguments: str) -> ToolResult:
        return try_tool(bootstrap, "FeatureCommand", *arguments)

    def level() -> str:
        shown = re.search(r"transaction\.version.*FinalizedVersionLevel: (\d+)", features("describe").text)
        assert shown
        return shown[1]

    assert level() == "2"
    lowered = features("downgrade", "--feature", "transaction.version=1")
    assert "transaction.version was downgraded to 1." in lowered.text, lowered
    assert level() == "1"
    raised = features("upgrade", "--feature", "transaction.version=2")
    assert "transaction.version was upgraded to 2." in raised.text, raised
    refused = features("upgrade", "--feature", "transaction.version=9")
    assert refused.code == 1


def test_kafka_leader_election(bootstrap: str, tool: Tool, topic: str) -> None:
    create_topic(bootstrap, topic, 2)
    printed = tool("LeaderElectionCommand", "--topic", topic, "--partition", "1", "--election-type", "preferred")
    assert f"Valid replica already elected for partitions {topic}-1" in printed
    tool("LeaderElectionCommand", "--all-topic-partitions", "--election-type", "preferred")


def test_kafka_reassign_partitions(bootstrap: str, tool: Tool, topic: str, tmp_path: Path) -> None:
    create_topic(bootstrap, topic)
    assert "No partition reassignments found." in tool("reassign.ReassignPartitionsCommand", "--list")
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [1]}]}))
    executed = tool("reassign.ReassignPartitionsCommand", "--execute", "--reassignment-json-file", str(plan))
    assert f"Successfully started partition reassignment for {topic}-0" in executed
    verified = tool("reassign.ReassignPartitionsCommand", "--verify", "--reassignment-json-file", str(plan))
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    topics = tmp_path / "topics.json"
    topics.write_text(json.dumps({"version": 1, "topics": [{"topic": topic}]}))
    wanted = ("--topics-to-move-json-file", str(topics), "--broker-list", "1")
    assert f'"topic":"{topic}"' in tool("reassign.ReassignPartitionsCommand", "--generate", *wanted)


# -- librdkafka ----------------------------------------------------------------------------------------------------


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def values(admin: AdminClient, kind: Any, name: str) -> dict[str, tuple[str | None, int]]:
    resource = ConfigResource(kind, name)
    entries = admin.describe_configs([resource])[resource].result(TIMEOUT_S)
    return {key: (entry.value, entry.source) for key, entry in entries.items()}


def test_confluent_adds_partitions(bootstrap: str, admin: AdminClient, topic: str) -> None:
    create_topic(bootstrap, topic)
    admin.create_partitions([NewPartitions(topic, 3)])[topic].result(TIMEOUT_S)
    write(bootstrap, topic, 2, partition=2)
    assert end_offset(bootstrap, topic, 2) == 2


def test_confluent_changes_settings(bootstrap: str, admin: AdminClient, topic: str) -> None:
    create_topic(bootstrap, topic, configs={"cleanup.policy": "compact"})
    steps = [
        ConfigEntry("retention.ms", "7000", incremental_operation=AlterConfigOpType.SET),
        ConfigEntry("cleanup.policy", "delete", incremental_operation=AlterConfigOpType.APPEND),
    ]
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=steps)
    admin.incremental_alter_configs([resource])[resource].result(TIMEOUT_S)
    found = values(admin, ResourceType.TOPIC, topic)
    assert found["retention.ms"] == ("7000", 1)
    assert found["cleanup.policy"] == ("compact,delete", 1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_confluent_replaces_settings(bootstrap: str, admin: AdminClient, topic: str) -> None:
    create_topic(bootstrap, topic, configs={"cleanup.policy": "compact"})
    resource = ConfigResource(ResourceType.TOPIC, topic, set_config={"segment.ms": "60000"})
    admin.alter_configs([resource])[resource].result(TIMEOUT_S)
    found = values(admin, ResourceType.TOPIC, topic)
    assert found["segment.ms"] == ("60000", 1)
    assert found["cleanup.policy"][0] == "delete"


def test_confluent_deletes_records(bootstrap: str, admin: AdminClient, topic: str) -> None:
    create_topic(bootstrap, topic)
    write(bootstrap, topic, 10)
    place = TopicPartition(topic, 0, 6)
    (deleted,) = admin.delete_records([place]).values()
    assert deleted.result(TIMEOUT_S).low_watermark == 6
    read = CLIENTS["confluent-kafka"].read(bootstrap, topic, start=6, count=4)
    assert [record.value for record in read] == [b"6", b"7", b"8", b"9"]


def test_confluent_elects_leaders(bootstrap: str, admin: AdminClient, topic: str) -> None:
    from confluent_kafka import ElectionType

    create_topic(bootstrap, topic)
    place = TopicPartition(topic, 0)
    results = admin.elect_leaders(ElectionType.PREFERRED, [place]).result(TIMEOUT_S)
    assert results[place].code() == 84


# -- kafka-python --------------------------------------------------------------------------------------------------


@pytest.fixture
def kafka_python(bootstrap: str) -> Iterator[Any]:
    client = kafka.KafkaAdminClient(bootstrap_servers=bootstrap)
    yield client
    client.close()


def test_kafka_python_administers(bootstrap: str, kafka_python: Any, topic: str) -> None:
    create_topic(bootstrap, topic)
    write(bootstrap, topic, 10)
    place = kafka.TopicPartition(topic, 0)
    kafka_python.create_partitions({topic: 3})
    resource = kafka.admin.ConfigResource("TOPIC", topic, configs={"retention.ms": "60000000"})
    kafka_python.alter_configs([resource])
    assert values(AdminClient({"bootstrap.servers": bootstrap}), ResourceType.TOPIC, topic)["retention.ms"] == (
        "60000000",
        1,
    )
    assert kafka_python.delete_records({place: 4})[place]["low_watermark"] == 4
    (described,) = kafka_python.describe_log_dirs({topic: [0, 1, 2]})
    assert topic in str(described)
    assert kafka_python.alter_partition_reassignments({place: [1]}) == {place: None}
    assert kafka_python.list_partition_reassignments() == {}
    (listed,) = kafka_python.list_config_resources(["TOPIC"]).values()
    assert topic in listed
