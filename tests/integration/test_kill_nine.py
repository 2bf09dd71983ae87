"""kill -9 under load, again and again: what was acknowledged is there, once and in order.

The producer is librdkafka's, idempotent, with acks=all. It sends again whatever a dying broker left without an answer,
so a broker that forgets a producer's sequence numbers shows duplicates here, and one that forgets data shows holes.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.support.brokers import Broker, make_target, target_is_kafka

TOPIC = "numbers"
PARTITIONS = 3
LOAD_S = 22.0
BURST = 150


class Load:
    """A thread that produces numbered records, the same numbers to each partition, until it is told to stop."""

    def __init__(self, bootstrap: str) -> None:
        self.sent = 0
        self.acknowledged: list[list[int]] = [[] for _ in range(PARTITIONS)]
        self.errors: list[str] = []
        self._stop = threading.Event()
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "acks": "all",
                "linger.ms": 2,
                "message.timeout.ms": 60_000,
                "socket.timeout.ms": 5_000,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "retry.backoff.ms": 20,
                "queue.buffering.max.messages": 50_000,
                # Broken connections are expected here and not worth a line on the terminal.
                "log_level": 0,
                "error_cb": self._on_error,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _on_error(self, error: confluent_kafka.KafkaError) -> None:
        if error.fatal():
            self.errors.append(str(error))

    def _on_delivery(self, error: confluent_kafka.KafkaError | None, message: Any) -> None:
        if error is not None:
            self.errors.append(str(error))
        else:
            self.acknowledged[message.partition()].append(message.offset())

    def _run(self) -> None:
        while not self._stop.is_set() and not self.errors:
            if len(self._producer) < 40_000:
                for number in range(self.sent, self.sent + BURST):
                    for partition in range(PARTITIONS):
                        self._producer.produce(
                            TOPIC, b"%d" % number, partition=partition, on_delivery=self._on_delivery
                        )
                self.sent += BURST
            self._producer.poll(0.01)

    def finish(self) -> None:
        self._stop.set()
        self._thread.join(30)
        left = self._producer.flush(60)
        assert self.errors == []
        assert left == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    target = make_target(tmp_path / "broker")
    target.start()
    yield target
    target.kill()


def create_topic(bootstrap: str) -> None:
    """With small segments, so that some kills meet a roll."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    new = NewTopic(TOPIC, PARTITIONS, 1, config={"segment.bytes": "1048576"})
    admin.create_topics([new])[TOPIC].result(15)


def read_back(bootstrap: str, partition: int, count: int) -> list[tuple[int, int]]:
    """Offset and number of every record of a partition."""
    consumer: Any = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0)])
    found: list[tuple[int, int]] = []
    deadline = time.monotonic() + 60
    at_end = False
    while not at_end and time.monotonic() < deadline:
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None:
                found.append((message.offset(), int(message.value())))
            else:
                assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                at_end = len(found) >= count
    consumer.close()
    return found


def kill_and_restart(broker: Broker, chance: random.Random, until: float) -> int:
    rounds = 0
    while time.monotonic() < until:
        time.sleep(chance.uniform(0.05, 1.5))
        broker.kill()
        broker.start()
        rounds += 1
    return rounds


@pytest.mark.timeout(180)
def test_every_acknowledged_record_once_and_in_order(broker: Broker) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    create_topic(broker.bootstrap)
    load = Load(broker.bootstrap)
    rounds = kill_and_restart(broker, random.Random(seed), time.monotonic() + LOAD_S)
    load.finish()
    print(f"{rounds} kills, {load.sent} records to each partition")
    # Apache Kafka takes ten seconds to come back after a kill.
    assert rounds >= (1 if target_is_kafka() else 5)
    for partition in range(PARTITIONS):
        found = read_back(broker.bootstrap, partition, load.sent)
        assert [number for _, number in found] == list(range(load.sent))
        assert [offset for offset, _ in found] == list(range(load.sent))
        assert sorted(load.acknowledged[partition]) == list(range(load.sent))
