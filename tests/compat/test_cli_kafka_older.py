"""Command lines from people's notes: `--zookeeper`, and what later versions of Kafka's tools renamed.

A real ZooKeeper holds the broker's registration as Kafka 2.8 wrote it. Only the ports differ from the lines as typed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from tests.clients.zookeeper import ZooKeeper
from tests.compat.kafka_tools import Done, ours
from tests.support.brokers import Broker, KafkaBroker, PenstockBroker


@pytest.fixture(scope="module", params=[KafkaBroker, PenstockBroker], ids=["kafka", "penstock"])
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    started: Broker = request.param(tmp_path_factory.mktemp("broker"))
    started.start()
    yield started
    started.kill()


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory, broker: Broker) -> Iterator[ZooKeeper]:
    started = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    started.start()
    registration = {
        "features": {},
        "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"},
        "endpoints": [f"PLAINTEXT://{broker.bootstrap}"],
        "jmx_port": -1,
        "port": broker.port,
        "host": "127.0.0.1",
        "version": 5,
        "timestamp": "1620000000000",
    }
    client = KazooClient(hosts=started.hosts)
    client.start()
    for chroot in ("", "/kafka"):
        client.create(f"{chroot}/brokers/ids/1", json.dumps(registration).encode(), makepath=True)
    client.create("/empty/brokers/ids", makepath=True)
    client.stop()
    client.close()
    yield started
    started.kill()


def test_topics_by_zookeeper(broker: Broker, zookeeper: ZooKeeper) -> None:
    def typed(line: str) -> Done:
        tool, *arguments = line.replace("localhost:2181", zookeeper.hosts).split()
        assert tool == "kafka-topics.sh"
        return ours("topics", *arguments)

    created = typed(
        "kafka-topics.sh --create --zookeeper localhost:2181 --replication-factor 1 --partitions 2 --topic kafka_demo"
    )
    assert created.code == 0
    assert created.out.endswith("Created topic kafka_demo.\n")
    assert "kafka_demo" in typed("kafka-topics.sh --zookeeper localhost:2181 --list").out.split()
    grown = typed("kafka-topics.sh --zookeeper localhost:2181 --alter --topic kafka_demo --partitions 4")
    assert (grown.code, grown.out.splitlines()[-1]) == (0, "Adding partitions succeeded!")
    change = "kafka-topics.sh --zookeeper localhost:2181 --alter --topic kafka_demo"
    changed = typed(f"{change} --config max.message.bytes=1048576")
    assert (changed.code, changed.out.splitlines()[-1]) == (0, "Updated config for topic kafka_demo.")
    described = typed("kafka-topics.sh --zookeeper localhost:2181 --describe --topic kafka_demo").out
    assert "PartitionCount: 4" in described
    assert "max.message.bytes=1048576" in described
    assert typed(f"{change} --delete-config max.message.bytes").code == 0
    described = typed("kafka-topics.sh --zookeeper localhost:2181/kafka --describe --topic kafka_demo").out
    assert "max.message.bytes" not in described
    deleted = typed("kafka-topics.sh --zookeeper localhost:2181 --delete --topic kafka_demo")
    assert (deleted.code, deleted.out.splitlines()[0]) == (0, "Topic kafka_demo is marked for deletion.")
    assert "kafka_demo" not in typed("kafka-topics.sh --zookeeper localhost:2181 --list").out.split()


def test_election_and_consumer(broker: Broker, tmp_path: Path) -> None:
    def typed(line: str, stdin: str = "") -> Done:
        tool, *arguments = line.replace("localhost:9092", broker.bootstrap).split()
        return ours(
            tool.removeprefix("kafka-").removesuffix(".sh").replace("-", "_"), *arguments, stdin=stdin, cwd=tmp_path
        )

    typed("kafka-topics.sh --create --bootstrap-server localhost:9092 --partitions 2 --topic kafka_demo_2")
    elected = typed(
        "kafka-leader-election.sh --bootstrap-server localhost:9092 --topic kafka_demo_2 --partition=1 "
        "--election-type preferred"
    )
    assert elected == Done(0, "Valid replica already elected for partitions kafka_demo_2-1\n", "")
    written = typed("kafka-console-producer.sh --broker-list localhost:9092 --topic kafka_demo_2", "one\ntwo\n")
    assert written == Done(0, "", "")
    (tmp_path / "consumer.properties").write_text("group.id=demo\nauto.offset.reset=earliest\n")
    read = typed(
        "kafka-console-consumer.sh --bootstrap-server localhost:9092 --topic kafka_demo_2 "
        "--consumer.config consumer.properties --max-messages 2"
    )
    assert (read.code, sorted(read.out.split())) == (0, ["one", "two"])


def test_other_tools_by_zookeeper(broker: Broker, zookeeper: ZooKeeper, tmp_path: Path) -> None:
    def typed(line: str) -> Done:
        tool, *arguments = line.replace("localhost:2181", zookeeper.hosts).split()
        return ours(tool.removeprefix("kafka-").removesuffix(".sh").replace("-", "_"), *arguments, cwd=tmp_path)

    typed("kafka-topics.sh --create --zookeeper localhost:2181 --replication-factor 1 --partitions 1 --topic by_zk")
    ours("console_producer", "--bootstrap-server", broker.bootstrap, "--topic", "by_zk", stdin="one\n")
    alter = "kafka-configs.sh --zookeeper localhost:2181 --entity-type topics --entity-name by_zk"
    assert typed(f"{alter} --alter --add-config retention.ms=77777").code == 0
    assert "retention.ms=77777" in typed(f"{alter} --describe").out
    read = "kafka-console-consumer.sh --zookeeper localhost:2181 --topic by_zk --from-beginning --max-messages 1"
    assert typed(f"{read} --group zk-group").out == "one\n"
    assert "zk-group" in typed("kafka-consumer-groups.sh --zookeeper localhost:2181 --list").out.split()
    (tmp_path / "move.json").write_text('{"version":1,"partitions":[{"topic":"by_zk","partition":0,"replicas":[1]}]}')
    move = "kafka-reassign-partitions.sh --zookeeper localhost:2181 --reassignment-json-file move.json"
    assert "Successfully started partition reassignment for by_zk-0" in typed(f"{move} --execute").out
    assert "is completed." in typed(f"{move} --verify").out


def test_without_a_usable_zookeeper(broker: Broker, zookeeper: ZooKeeper) -> None:
    nobody = ours("topics", "--zookeeper", "127.0.0.1:1", "--list")
    assert (nobody.code, nobody.out.count("\n")) == (1, 1)
    assert "no ZooKeeper answers at 127.0.0.1:1" in nobody.out
    empty = ours("topics", "--zookeeper", f"{zookeeper.hosts}/empty", "--list")
    assert (empty.code, empty.out.count("\n")) == (1, 1)
    assert "no broker is registered" in empty.out
    nosuch = ours("topics", "--zookeeper", f"{zookeeper.hosts}/nosuch", "--list")
    assert (nosuch.code, nosuch.out.count("\n"), nosuch.err) == (1, 1, "")
    assert "no broker is registered" in nosuch.out
    strange = ours("topics", "--zookeeper", "here:there", "--list")
    assert strange.code == 1
    for each in (nobody, empty, nosuch, strange):
        assert "--bootstrap-server" in each.out


@pytest.mark.timeout(60)
def test_a_broker_is_no_zookeeper(broker: Broker) -> None:
    done = ours("topics", "--zookeeper", broker.bootstrap, "--list")
    assert (done.code, done.out.count("\n")) == (1, 1)
    assert "does not answer as a ZooKeeper" in done.out
    assert "--bootstrap-server" in done.out
