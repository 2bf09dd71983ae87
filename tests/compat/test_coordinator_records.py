"""The coordinators' topics go both ways: Kafka's dump tool decodes ours, and we go on with what Apache Kafka wrote."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from tests.compat.admin import create_topic
from tests.compat.kafka_tools import ours as our_tool
from tests.support.brokers import Broker, KafkaBroker, make_target, target_is_kafka
from tests.support.java import shared_peer

pytestmark = pytest.mark.xdist_group("coordinator_records")

TOPIC = "copied"
GROUP = "copy"
TRANSACTIONAL_ID = "tran-0"
TIMEOUT_S = 40.0
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}

_RECORD = re.compile(r"key: (\{.*?\}\}) payload: (.*)$")


def place(offset: int = confluent_kafka.OFFSET_INVALID, metadata: str = "") -> confluent_kafka.TopicPartition:
    return confluent_kafka.TopicPartition(TOPIC, 0, offset, metadata)


def committed(bootstrap: str, group: str = GROUP) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        (found,) = consumer.committed([place()], TIMEOUT_S)
    finally:
        consumer.close()
    offset: int = found.offset
    return offset


def copy_something(bootstrap: str) -> None:
    """A static member commits alone, in a transaction that commits, and in one that aborts."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": TRANSACTIONAL_ID})
    producer.init_transactions(TIMEOUT_S)
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": GROUP,
            "group.instance.id": "copier",
            "enable.auto.commit": False,
        }
    )
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[place(1, "alone")], asynchronous=False)
    for offset, end in ((2, producer.commit_transaction), (3, producer.abort_transaction)):
        producer.begin_transaction()
        producer.produce(TOPIC, b"value")
        producer.send_offsets_to_transaction([place(offset)], consumer.consumer_group_metadata(), TIMEOUT_S)
        end(TIMEOUT_S)
    consumer.close()


def dumped(broker: Broker, topic: str, decoder: str) -> list[tuple[dict[str, Any], dict[str, Any] | None]]:
    """Keys and values as Kafka's tool reads them; the tool must not complain."""
    files = ",".join(str(path) for path in sorted(broker.partition_dir(topic).glob("*.log")))
    result = shared_peer().tool("DumpLogSegments", "--files", files, decoder)
    assert result.code == 0
    assert "isvalid: false" not in result.text
    found = [match.groups() for line in result.text.splitlines() if (match := _RECORD.search(line))]
    records = [line for line in result.text.splitlines() if line.startswith("| offset") and "endTxnMarker" not in line]
    assert len(found) == len(records), "a record was not decoded"
    # Our tool says the same.
    mine = our_tool("dump_log", "--files", files, decoder)
    assert (mine.code, mine.out) == (0, result.text)
    return [(json.loads(key), None if value == "<DELETE>" else json.loads(value)) for key, value in found]


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Broker]:
    broker = make_target(tmp_path / "ours", SETTINGS)
    yield broker
    broker.kill()


def test_kafkas_dump_tool_decodes_our_records(ours: Broker) -> None:
    ours.start()
    create_topic(ours.bootstrap, TOPIC)
    copy_something(ours.bootstrap)
    ours.stop()
    group_records = dumped(ours, "__consumer_offsets", "--offsets-decoder")
    offsets = [value["data"]["offset"] for key, value in group_records if key["type"] == "1" and value is not None]
    assert offsets == [1, 2, 3]
    generations = [value["data"] for key, value in group_records if key["type"] == "2" and value is not None]
    assert [member["groupInstanceId"] for each in generations for member in each["members"]][-1] == "copier"
    assert {(value or {}).get("version") for key, value in group_records if key["type"] == "1"} == {"4"}
    transactions = dumped(ours, "__transaction_state", "--transaction-log-decoder")
    assert {key["data"]["transactionalId"] for key, _ in transactions} == {TRANSACTIONAL_ID}
    statuses = [value["data"]["transactionStatus"] for _, value in transactions if value is not None]
    # Empty, ongoing, then prepared and complete: a commit, and an abort.
    assert [each for each in statuses if each != 1] == [0, 2, 4, 3, 5]


def test_our_dump_tool_decodes_apache_kafkas_records(tmp_path: Path) -> None:
    kafka = KafkaBroker(tmp_path / "kafka", SETTINGS)
    try:
        kafka.start()
        create_topic(kafka.bootstrap, TOPIC)
        copy_something(kafka.bootstrap)
        join_by_the_newer_protocol(kafka.bootstrap)
    finally:
        kafka.stop()
    kinds = {key["type"] for key, _ in dumped(kafka, "__consumer_offsets", "--offsets-decoder")}
    assert kinds >= {"1", "2", "3", "5", "6", "7", "8"}
    assert dumped(kafka, "__transaction_state", "--transaction-log-decoder")


def join_by_the_newer_protocol(bootstrap: str) -> None:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "newer", "group.protocol": "consumer"}
    )
    consumer.subscribe([TOPIC])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.close()


def test_a_group_goes_on_where_apache_kafka_left_it(ours: Broker, tmp_path: Path) -> None:
    if target_is_kafka():
        pytest.skip("Apache Kafka itself adopts no directory: its topics are in its own metadata log")
    kafka = KafkaBroker(tmp_path / "kafka", SETTINGS)
    try:
        kafka.start()
        create_topic(kafka.bootstrap, TOPIC)
        copy_something(kafka.bootstrap)
        assert committed(kafka.bootstrap) == 2
    finally:
        kafka.stop()
    for name in (TOPIC, "__consumer_offsets", "__transaction_state"):
        shutil.copytree(kafka.partition_dir(name), ours.partition_dir(name))
    ours.start()
    assert committed(ours.bootstrap) == 2
    copy_something(ours.bootstrap)
    assert committed(ours.bootstrap) == 2
