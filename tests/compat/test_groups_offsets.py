"""Commits with their metadata, by every client to every other; where a group starts to read; commits that end."""

from __future__ import annotations

import time
from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from tests.compat.admin import create_topic, delete_topic
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS
from tests.compat.committing import COMMITTERS, Commit, as_committed_by
from tests.support.brokers import Broker

METADATA = "done by wörker 7 \N{SNOWMAN}"


@pytest.mark.parametrize("writer", list(COMMITTERS))
def test_every_client_reads_the_commit(bootstrap: str, topic: str, writer: str) -> None:
    create_topic(bootstrap, topic, 3)
    commits = {0: Commit(12, METADATA), 2: Commit(1 << 40)}
    COMMITTERS[writer].commit(bootstrap, topic, topic, commits)
    sent = {partition: as_committed_by(writer, commit) for partition, commit in commits.items()}
    for reader, client in COMMITTERS.items():
        for partition, commit in sent.items():
            found = client.committed(bootstrap, topic, topic, partition)
            # librdkafka's reader ends a text where C does.
            assert found in (commit, Commit(commit.offset, commit.metadata.rstrip("\0"))), reader
        assert client.committed(bootstrap, topic, topic, 1) is None, reader


def test_the_last_commit_counts_and_outlives_a_kill(start_broker: Callable[..., Broker], topic: str) -> None:
    broker = start_broker()
    create_topic(broker.bootstrap, topic)
    client = COMMITTERS["confluent-kafka"]
    for offset in range(20):
        client.commit(broker.bootstrap, "g", topic, {0: Commit(offset, f"at {offset}")})
    broker.kill()
    broker.start()
    assert client.committed(broker.bootstrap, "g", topic, 0) == Commit(19, "at 19")
    broker.stop()
    broker.start()
    assert client.committed(broker.bootstrap, "g", topic, 0) == Commit(19, "at 19")


def consumer_of(bootstrap: str, group: str, reset: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 100,
        }
    )


def read_until(consumer: confluent_kafka.Consumer, count: int, timeout_s: float = 40) -> list[int]:
    offsets: list[int] = []
    deadline = time.monotonic() + timeout_s
    while len(offsets) < count and time.monotonic() < deadline:
        for message in consumer.consume(count, timeout=0.1):
            if message.error():
                raise KafkaException(message.error())
            offsets.append(message.offset())
    return offsets


def test_where_a_group_starts(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    CLIENTS["confluent-kafka"].write(bootstrap, topic, [Record(None, b"%d" % index) for index in range(10)])
    earliest = consumer_of(bootstrap, f"{topic}-earliest", "earliest")
    earliest.subscribe([topic])
    assert read_until(earliest, 10) == list(range(10))
    earliest.commit(offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
    earliest.close()
    again = consumer_of(bootstrap, f"{topic}-earliest", "latest")
    again.subscribe([topic])
    assert read_until(again, 6) == [4, 5, 6, 7, 8, 9]
    again.close()
    strict = consumer_of(bootstrap, f"{topic}-none", "error")
    strict.subscribe([topic])
    with pytest.raises(KafkaException) as raised:
        read_until(strict, 1)
    assert raised.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET
    strict.close()


def test_a_commit_below_the_log_start_is_reset(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    CLIENTS["confluent-kafka"].write(bootstrap, topic, [Record(None, b"%d" % index) for index in range(5)])
    COMMITTERS["confluent-kafka"].commit(bootstrap, topic, topic, {0: Commit(99)})
    consumer = consumer_of(bootstrap, topic, "earliest")
    consumer.subscribe([topic])
    assert read_until(consumer, 5) == [0, 1, 2, 3, 4]
    consumer.close()


def test_a_deleted_topic_takes_its_commits_along(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    client = COMMITTERS["confluent-kafka"]
    client.commit(bootstrap, topic, topic, {0: Commit(3)})
    delete_topic(bootstrap, topic)
    deadline = time.monotonic() + 10
    while client.committed(bootstrap, topic, topic, 0) is not None:
        assert time.monotonic() < deadline, "the commit is still there"
        time.sleep(0.1)


def test_delete_groups(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    COMMITTERS["confluent-kafka"].commit(bootstrap, topic, topic, {0: Commit(3)})
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.delete_consumer_groups([topic])[topic].result(15)
    assert COMMITTERS["confluent-kafka"].committed(bootstrap, topic, topic, 0) is None
    with pytest.raises(KafkaException) as raised:
        admin.delete_consumer_groups([topic])[topic].result(15)
    assert raised.value.args[0].code() == KafkaError.GROUP_ID_NOT_FOUND


def test_metadata_longer_than_allowed_is_refused(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    consumer = consumer_of(bootstrap, topic, "earliest")
    with pytest.raises(KafkaException) as raised:
        consumer.commit(offsets=[TopicPartition(topic, 0, 1, "x" * 5000)], asynchronous=False)
    assert raised.value.args[0].code() == KafkaError.OFFSET_METADATA_TOO_LARGE
    consumer.close()
