"""DescribeConfigs rows, held against the answers of a Kafka 4.3.1 with the same settings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.base.config.broker import BrokerConfig
from penstock.base.config.declaration import ValueType
from penstock.base.config.describe import ConfigRow, describe_broker, describe_cluster_default, describe_topic
from penstock.base.config.sources import Source
from penstock.base.config.topic import TopicConfig

DESCRIBED = json.loads((Path(__file__).parent / "data" / "kafka-4.3.1-described.json").read_text())

SERVER = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.voters": "1@127.0.0.1:39193",
    "listeners": "PLAINTEXT://127.0.0.1:39192,CONTROLLER://127.0.0.1:39193",
    "advertised.listeners": "PLAINTEXT://127.0.0.1:39192",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": "/tmp/cfg/k/data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "log.retention.hours": "100",
    "log.roll.ms": "3600000",
    "log.cleanup.policy": "compact, delete",
    "some.plugin.key": "abc",
    "listener.name.plaintext.max.connections": "77",
    "log.cleaner.min.cleanable.ratio": "0.25",
    "log.initial.task.delay.ms": "200",
    "ssl.key.password": "geheim",
}
TOPIC = {
    "retention.ms": "1234567",
    "cleanup.policy": "delete , compact",
    "min.cleanable.dirty.ratio": "0.1",
    "internal.segment.bytes": "5000",
    "compression.type": "zstd",
}
# A new Kafka cluster sets min.insync.replicas at run time for its eligible leader replicas (KIP-966), which are not
# known here; and three keys that Kafka requires have a default here.
EXPLAINED = {"min.insync.replicas", "node.id", "process.roles", "controller.listener.names"}


def as_java_shows(row: ConfigRow) -> dict[str, Any]:
    return {
        "value": row.value,
        "source": f"{row.source.name}_CONFIG",
        "sensitive": row.is_sensitive,
        "ro": row.read_only,
        "type": ValueType(row.type).name if row.type else "UNKNOWN",
        "syn": [
            f"{entry.name}|{'null' if entry.value is None else entry.value}|{entry.source.name}_CONFIG"
            for entry in row.synonyms
        ],
    }


@pytest.fixture(scope="module")
def config() -> BrokerConfig:
    return BrokerConfig.of(SERVER)


@pytest.mark.parametrize(("topic", "overrides"), [("t1", TOPIC), ("t2", {})])
def test_topics_are_described_as_by_kafka(config: BrokerConfig, topic: str, overrides: dict[str, str]) -> None:
    rows = {row.name: row for row in describe_topic(TopicConfig(config, overrides), include_synonyms=True)}
    assert set(rows) == set(DESCRIBED[topic])
    for name in set(rows) - EXPLAINED:
        assert as_java_shows(rows[name]) == DESCRIBED[topic][name], name


def test_the_broker_is_described_as_by_kafka(config: BrokerConfig) -> None:
    rows = {row.name: row for row in describe_broker(config, include_synonyms=True)}
    for name in set(DESCRIBED["broker"]) - EXPLAINED:
        assert as_java_shows(rows[name]) == DESCRIBED["broker"][name], name


def test_names_and_texts_only_when_asked(config: BrokerConfig) -> None:
    (row,) = describe_topic(TopicConfig(config), ["retention.ms", "unknown"])
    assert (row.name, row.synonyms, row.documentation) == ("retention.ms", (), None)
    (row,) = describe_broker(config, ["num.io.threads"], include_docs=True)
    assert row.documentation is not None
    assert "No effect here: one event loop" in row.documentation
    assert len(describe_topic(TopicConfig(config), [])) == 33


def test_default_and_dynamic_sources(config: BrokerConfig) -> None:
    changed = config.with_dynamic(broker={"message.max.bytes": "3"}, default={"message.max.bytes": "2"})
    (row,) = describe_topic(TopicConfig(changed), ["max.message.bytes"], include_synonyms=True)
    assert (row.value, row.source, row.is_default) == ("3", Source.DYNAMIC_BROKER, False)
    assert [entry.source for entry in row.synonyms] == [
        Source.DYNAMIC_BROKER,
        Source.DYNAMIC_DEFAULT_BROKER,
        Source.DEFAULT,
    ]
    (default,) = describe_cluster_default(changed, include_synonyms=True)
    assert (default.name, default.source) == ("message.max.bytes", Source.DYNAMIC_DEFAULT_BROKER)
    assert describe_cluster_default(config) == []


def test_no_secret_is_described(config: BrokerConfig) -> None:
    rows = describe_broker(config, include_synonyms=True, include_docs=True)
    assert "geheim" not in repr(rows)
    assert "abc" not in repr([row for row in rows if row.name == "some.plugin.key"])
