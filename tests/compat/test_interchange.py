"""Partition directories go from Apache Kafka to us and from us to Apache Kafka."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compat.admin import create_topic, topic_id
from tests.compat.clients.base import CODECS, Record
from tests.compat.clients.registry import CLIENTS
from tests.compat.samples import sample_records
from tests.support.brokers import Broker, KafkaBroker, make_target, target_is_kafka
from tests.support.java import shared_peer

pytestmark = pytest.mark.xdist_group("interchange")

TOPIC = "interchanged"


class Contents:
    """All that a broker says of the topic: records, and offsets by time."""

    def __init__(self, bootstrap: str, count: int, questions: list[int]) -> None:
        self.records = CLIENTS["confluent-kafka"].read(bootstrap, TOPIC, count=count)
        specs = [*questions, "earliest", "latest", "max_timestamp"]
        self.offsets = shared_peer().call(op="offsets", bootstrap=bootstrap, topic=TOPIC, partition=0, specs=specs)


def fill(bootstrap: str) -> tuple[int, list[int]]:
    """Writes several segments; returns the number of records and time stamps to ask for."""
    create_topic(bootstrap, TOPIC, configs={"segment.bytes": "1048576"})
    written = 0
    for codec in CODECS:
        CLIENTS["java"].write(bootstrap, TOPIC, sample_records(), codec=codec, idempotent=True)
        written += len(sample_records())
    now = int(time.time() * 1000) - 10_000
    bulk = [Record(b"key", (b"%08d" % index) * 120, (), now + index) for index in range(3000)]
    CLIENTS["confluent-kafka"].write(bootstrap, TOPIC, bulk, idempotent=True)
    written += len(bulk)
    return written, [now - 100_000, now, now + 1, now + 1234, now + 2500, now + 2999, now + 3000]


@pytest.fixture
def kafka(tmp_path: Path) -> Iterator[KafkaBroker]:
    broker = KafkaBroker(tmp_path / "kafka")
    yield broker
    broker.kill()


@pytest.fixture
def ours(tmp_path: Path) -> Iterator[Broker]:
    broker = make_target(tmp_path / "ours")
    yield broker
    broker.kill()


def test_from_apache_kafka(kafka: KafkaBroker, ours: Broker) -> None:
    """A partition directory of a stopped Kafka is adopted with its topic id, records, time index and producers."""
    if target_is_kafka():
        pytest.skip("Apache Kafka itself adopts no directory: its topics are in its own metadata log")
    kafka.start()
    count, questions = fill(kafka.bootstrap)
    before = Contents(kafka.bootstrap, count, questions)
    identity = topic_id(kafka.bootstrap, TOPIC)
    kafka.stop()
    ours.start()
    ours.stop()
    shutil.copytree(kafka.partition_dir(TOPIC), ours.partition_dir(TOPIC))
    ours.start()
    after = Contents(ours.bootstrap, count, questions)
    assert topic_id(ours.bootstrap, TOPIC) == identity
    assert after.records == before.records
    assert after.offsets == before.offsets
    # It goes on where Kafka stopped, and stays after another start.
    CLIENTS["franz-go"].write(ours.bootstrap, TOPIC, [Record(b"key", b"ours")], idempotent=True)
    ours.stop()
    ours.start()
    assert topic_id(ours.bootstrap, TOPIC) == identity
    read = CLIENTS["java"].read(ours.bootstrap, TOPIC, start=count - 1, count=2)
    assert [(one.offset, one.value) for one in read][1] == (count, b"ours")


def test_from_an_empty_data_directory(kafka: KafkaBroker, ours: Broker) -> None:
    """The directory may also be there before our very first start, and hold several partitions."""
    if target_is_kafka():
        pytest.skip("Apache Kafka itself adopts no directory: its topics are in its own metadata log")
    kafka.start()
    create_topic(kafka.bootstrap, TOPIC, partitions=3)
    for partition in range(3):
        CLIENTS["java"].write(kafka.bootstrap, TOPIC, sample_records(), partition=partition)
    kafka.stop()
    for partition in range(3):
        shutil.copytree(kafka.partition_dir(TOPIC, partition), ours.partition_dir(TOPIC, partition))
    ours.start()
    for partition in range(3):
        read = CLIENTS["sarama"].read(ours.bootstrap, TOPIC, partition=partition, count=len(sample_records()))
        assert [one.value for one in read] == [one.value for one in sample_records()]


@pytest.mark.parametrize("clean", [True, False], ids=["stopped", "killed"])
def test_to_apache_kafka(kafka: KafkaBroker, ours: Broker, clean: bool) -> None:
    """Our files, all but partition.metadata, in a stopped Kafka's empty partition of the same name."""
    ours.start()
    count, questions = fill(ours.bootstrap)
    before = Contents(ours.bootstrap, count, questions)
    (ours.stop if clean else ours.kill)()
    kafka.start()
    create_topic(kafka.bootstrap, TOPIC, configs={"segment.bytes": "1048576"})
    kafka.stop()
    if not clean:
        # Without its marker Kafka looks through the log and makes the indexes anew, as after a crash of its own.
        (kafka.data_dir / ".kafka_cleanshutdown").unlink()
    target = kafka.partition_dir(TOPIC)
    for path in target.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in ours.partition_dir(TOPIC).iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, target / path.name)
    kafka.start()
    after = Contents(kafka.bootstrap, count, questions)
    assert after.records == before.records
    assert after.offsets == before.offsets
    CLIENTS["java"].write(kafka.bootstrap, TOPIC, [Record(b"key", b"theirs")], idempotent=True)
    read = CLIENTS["confluent-kafka"].read(kafka.bootstrap, TOPIC, start=count - 1, count=2)
    assert [(one.offset, one.value) for one in read][1] == (count, b"theirs")
