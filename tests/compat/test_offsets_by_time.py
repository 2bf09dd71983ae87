"""Offsets by time stamp, as every client that can ask for them sees it."""

from __future__ import annotations

import asyncio
import subprocess
import time
from collections.abc import Callable

import aiokafka
import confluent_kafka
import kafka
import pytest
from confluent_kafka.admin import OffsetSpec  # type: ignore[attr-defined]

from tests.compat.admin import create_topic, list_offset
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS
from tests.support import peers
from tests.support.brokers import Broker
from tests.support.java import shared_peer

TOPIC = "offsets-by-time"
# Steps between the time stamps; inside a batch and between batches they go back as well as on.
STEPS = (0, 10, 5, 20, 20, 15, 40, 30, 35, 60, 50, 55)


class Written:
    """A topic of three batches and the time stamps of its records."""

    def __init__(self, bootstrap: str) -> None:
        now = int(time.time() * 1000) - 60_000
        self.bootstrap = bootstrap
        self.timestamps = [now + step for step in STEPS]
        create_topic(bootstrap, TOPIC)
        records = [Record(b"key", b"value", (), timestamp) for timestamp in self.timestamps]
        for first in range(0, len(records), 4):
            CLIENTS["java"].write(bootstrap, TOPIC, records[first : first + 4])

    def first_at_or_after(self, timestamp: int) -> int | None:
        return next((offset for offset, one in enumerate(self.timestamps) if one >= timestamp), None)

    def questions(self) -> list[int]:
        start = self.timestamps[0]
        return [start - 1000, *(start + step for step in (0, 1, 10, 11, 20, 21, 40, 41, 60))]


@pytest.fixture(scope="module")
def written(broker: Broker) -> Written:
    return Written(broker.bootstrap)


def by_confluent(bootstrap: str, timestamp: int) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "unused"})
    found = consumer.offsets_for_times([confluent_kafka.TopicPartition(TOPIC, 0, timestamp)], timeout=10)[0]
    consumer.close()
    return int(found.offset)


def by_kafka_python(bootstrap: str, timestamp: int) -> int:
    consumer = kafka.KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
    place = kafka.TopicPartition(TOPIC, 0)
    found = consumer.offsets_for_times({place: timestamp})[place]
    consumer.close()
    return -1 if found is None else int(found.offset)


def by_aiokafka(bootstrap: str, timestamp: int) -> int:
    async def run() -> int:
        place = aiokafka.TopicPartition(TOPIC, 0)
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=bootstrap, group_id=None) as consumer:
            found = (await consumer.offsets_for_times({place: timestamp}))[place]
            return -1 if found is None else int(found.offset)

    return asyncio.run(asyncio.wait_for(run(), 20))


def by_program(name: str) -> Callable[[str, int], int]:
    def ask(bootstrap: str, timestamp: int) -> int:
        answer = CLIENTS[name].call(op="offset_for_time", bootstrap=bootstrap, topic=TOPIC, timestamp=timestamp)  # type: ignore[attr-defined]
        return int(answer[0])

    return ask


def by_java(bootstrap: str, timestamp: int) -> int:
    return int(shared_peer().call(op="offsets", bootstrap=bootstrap, topic=TOPIC, partition=0, specs=[timestamp])[0][0])


def by_kcat(bootstrap: str, timestamp: int) -> int:
    command = [str(peers.kcat()), "-Q", "-b", bootstrap, "-t", f"{TOPIC}:0:{timestamp}"]
    output = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True).stdout
    return int(output.split()[-1])


def by_get_offsets(bootstrap: str, timestamp: int) -> int:
    result = shared_peer().tool(
        "GetOffsetShell", "--bootstrap-server", bootstrap, "--topic", TOPIC, "--time", str(timestamp)
    )
    # The tool leaves out a partition where there is no such record.
    return int(result.text.strip().split(":")[2]) if result.text.strip() else -1


ASKERS: dict[str, Callable[[str, int], int]] = {
    "confluent-kafka": by_confluent,
    "kafka-python": by_kafka_python,
    "aiokafka": by_aiokafka,
    "java": by_java,
    "kcat": by_kcat,
    "get-offsets": by_get_offsets,
    "franz-go": by_program("franz-go"),
    "sarama": by_program("sarama"),
    "kafkajs": by_program("kafkajs"),
}
# What a client says when no record is that late: some ask for the end of the log instead.
NOTHING_LATER = {"franz-go": len(STEPS), "kafkajs": len(STEPS)}


@pytest.mark.parametrize("asker", list(ASKERS))
def test_first_record_at_or_after(written: Written, asker: str) -> None:
    found = {timestamp: ASKERS[asker](written.bootstrap, timestamp) for timestamp in written.questions()}
    assert found == {timestamp: written.first_at_or_after(timestamp) for timestamp in written.questions()}


@pytest.mark.parametrize("asker", list(ASKERS))
def test_later_than_every_record(written: Written, asker: str) -> None:
    found = ASKERS[asker](written.bootstrap, max(written.timestamps) + 1)
    assert found == NOTHING_LATER.get(asker, -1)


def test_time_stamps_of_the_answers(written: Written) -> None:
    """The answer carries the time stamp of the record found, not the one asked for."""
    start = written.timestamps[0]
    specs = [start + 1, start + 21, start + 61]
    answers = shared_peer().call(op="offsets", bootstrap=written.bootstrap, topic=TOPIC, partition=0, specs=specs)
    assert answers == [[1, start + 10], [6, start + 40], [-1, -1]]


def test_earliest_latest_and_largest(written: Written) -> None:
    specs = ["earliest", "latest", "max_timestamp"]
    answers = shared_peer().call(op="offsets", bootstrap=written.bootstrap, topic=TOPIC, partition=0, specs=specs)
    assert answers == [[0, -1], [12, -1], [9, written.timestamps[9]]]
    by_rdkafka = list_offset(written.bootstrap, TOPIC, OffsetSpec.max_timestamp())  # type: ignore[no-untyped-call]
    assert by_rdkafka == (9, written.timestamps[9])


def test_empty_partition(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    specs = ["earliest", "latest", "max_timestamp", 1]
    answers = shared_peer().call(op="offsets", bootstrap=bootstrap, topic=topic, partition=0, specs=specs)
    assert answers == [[0, -1], [0, -1], [-1, -1], [-1, -1]]
