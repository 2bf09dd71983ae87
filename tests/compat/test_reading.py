"""How consumers find their place and get their data."""

from __future__ import annotations

import subprocess
import threading
import time
from typing import Any

import confluent_kafka
import kafka
import pytest

from tests.compat.admin import create_topic, end_offset
from tests.compat.batches import batches_of, first_segment
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS, READERS
from tests.support import peers
from tests.support.brokers import Broker
from tests.support.java import shared_peer

NUMBERED = [Record(b"key", b"value %d" % index, (), 1) for index in range(40)]


def fresh(records: list[Record]) -> list[Record]:
    now = int(time.time() * 1000) - 30_000
    return [one._replace(timestamp=now + index) for index, one in enumerate(records)]


@pytest.mark.parametrize("codec", ["none", "lz4"])
@pytest.mark.parametrize("name", READERS)
def test_start_in_the_middle_of_a_batch(broker: Broker, topic: str, name: str, codec: str) -> None:
    create_topic(broker.bootstrap, topic)
    CLIENTS["java"].write(broker.bootstrap, topic, fresh(NUMBERED), codec=codec)
    assert len(batches_of(first_segment(broker.partition_dir(topic)))) == 1
    read = CLIENTS[name].read(broker.bootstrap, topic, start=17, count=23)
    assert [(one.offset, one.value) for one in read] == [(index, b"value %d" % index) for index in range(17, 40)]


def consumer_settings(bootstrap: str, **more: Any) -> dict[str, Any]:
    return {"bootstrap.servers": bootstrap, "group.id": "unused", "enable.auto.commit": False, **more}


def mixed_sizes() -> list[Record]:
    return [Record(b"key", b"x" * size) for size in (10, 200_000, 5, 50_000, 300_000, 1)]


def written_one_by_one(bootstrap: str, topic: str) -> list[bytes | None]:
    create_topic(bootstrap, topic)
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, "batch.num.messages": 1})
    for record in mixed_sizes():
        producer.produce(topic, record.value, record.key)
    assert producer.flush(10) == 0
    return [one.value for one in mixed_sizes()]


def test_small_fetches_with_librdkafka(bootstrap: str, topic: str) -> None:
    """A batch larger than the limit is still given when it is the first."""
    expected = written_one_by_one(bootstrap, topic)
    sizes = {"fetch.message.max.bytes": 1000, "message.max.bytes": 1000, "fetch.max.bytes": 1000}
    consumer = confluent_kafka.Consumer(consumer_settings(bootstrap, **sizes))
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    read: list[bytes | None] = []
    deadline = time.monotonic() + 20
    while len(read) < len(expected) and time.monotonic() < deadline:
        read += [one.value() for one in consumer.consume(10, 0.2) if one.error() is None]
    consumer.close()
    assert read == expected


def test_small_fetches_with_java(bootstrap: str, topic: str) -> None:
    expected = written_one_by_one(bootstrap, topic)
    read = shared_peer().call(
        op="read",
        bootstrap=bootstrap,
        config={"max.partition.fetch.bytes": 1, "fetch.max.bytes": 1, "fetch.max.wait.ms": 50},
        reads=[{"topic": topic, "partition": 0, "start": 0, "count": len(expected)}],
    )[0]
    assert [one["offset"] for one in read] == list(range(len(expected)))


def read_later(
    bootstrap: str, topic: str, start: int, settings: dict[str, Any]
) -> tuple[threading.Thread, list[tuple[float, Any]]]:
    """A consumer in a thread; its list gets the arrival time and value of the first record."""
    arrived: list[tuple[float, Any]] = []
    consumer = confluent_kafka.Consumer(consumer_settings(bootstrap, **settings))
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, start)])

    def run() -> None:
        deadline = time.monotonic() + 25
        while not arrived and time.monotonic() < deadline:
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                arrived.append((time.monotonic(), message.value()))
        consumer.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, arrived


@pytest.mark.parametrize("start", [0, confluent_kafka.OFFSET_END], ids=["at offset 0", "at the end"])
def test_a_waiting_fetch_wakes_up(bootstrap: str, topic: str, start: int) -> None:
    create_topic(bootstrap, topic)
    thread, arrived = read_later(bootstrap, topic, start, {"fetch.wait.max.ms": 20_000, "socket.timeout.ms": 30_000})
    time.sleep(1.5)
    assert arrived == []
    CLIENTS["aiokafka"].write(bootstrap, topic, NUMBERED[:1])
    written = time.monotonic()
    thread.join(30)
    assert arrived[0][1] == b"value 0"
    assert arrived[0][0] - written < 5, "the fetch slept on although there was data"


def test_a_fetch_waits_for_its_least_bytes(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    CLIENTS["aiokafka"].write(bootstrap, topic, fresh(NUMBERED[:1]))
    began = time.monotonic()
    settings = {"fetch.wait.max.ms": 2000, "fetch.min.bytes": 100_000}
    thread, arrived = read_later(bootstrap, topic, 0, settings)
    thread.join(30)
    assert arrived[0][0] - began > 1.8


def test_consumer_before_the_first_record(bootstrap: str, topic: str) -> None:
    """Readers wait on an empty partition and get what comes, with two more clients than the tests above."""
    create_topic(bootstrap, topic)
    results: dict[str, list[Record]] = {}
    threads = [
        threading.Thread(target=lambda one=name: results.update({one: CLIENTS[one].read(bootstrap, topic, count=3)}))
        for name in ("kafka-python", "franz-go", "sarama")
    ]
    for thread in threads:
        thread.start()
    time.sleep(2)
    assert results == {}
    CLIENTS["confluent-kafka"].write(bootstrap, topic, fresh(NUMBERED[:3]))
    for thread in threads:
        thread.join(30)
    expected = [b"value 0", b"value 1", b"value 2"]
    assert {name: [one.value for one in read] for name, read in results.items()} == dict.fromkeys(
        ("kafka-python", "franz-go", "sarama"), expected
    )


def first_error(bootstrap: str, place: confluent_kafka.TopicPartition, **settings: Any) -> int:
    consumer = confluent_kafka.Consumer(consumer_settings(bootstrap, **settings))
    consumer.assign([place])
    deadline = time.monotonic() + 15
    try:
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            error = message.error() if message is not None else None
            if error is not None:
                return int(error.code())
    finally:
        consumer.close()
    raise AssertionError("no error came")


def test_unknown_topic(bootstrap: str, topic: str) -> None:
    """A consumer asks without leave to make the topic."""
    command = [str(peers.kcat()), "-C", "-b", bootstrap, "-t", topic, "-p", "0", "-e"]
    # librdkafka gives a topic half a minute to spread through a cluster before it says that there is none.
    command += ["-X", "topic.metadata.propagation.max.ms=200", "-X", "topic.metadata.refresh.interval.ms=500"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=40, check=False)
    assert run.returncode != 0
    assert "Unknown topic or partition" in run.stderr
    listed = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    assert topic not in listed.topics()
    listed.close()


def test_offset_out_of_range(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    CLIENTS["confluent-kafka"].write(bootstrap, topic, fresh(NUMBERED[:3]))
    place = confluent_kafka.TopicPartition(topic, 0, 1000)
    settings = {"auto.offset.reset": "error"}
    assert first_error(bootstrap, place, **settings) == confluent_kafka.KafkaError._AUTO_OFFSET_RESET
    read = shared_peer().call(
        op="read",
        bootstrap=bootstrap,
        config={"auto.offset.reset": "earliest"},
        reads=[{"topic": topic, "partition": 0, "start": 1000, "count": 3}],
    )[0]
    assert [one["offset"] for one in read] == [0, 1, 2]
    assert end_offset(bootstrap, topic) == 3
