"""kill -9 under a transactional producer and a committing consumer of librdkafka, again and again.

Every transaction writes its number to each partition and commits it as an offset. A transaction that was acknowledged
is everywhere, one whose abort was acknowledged is nowhere, and any other is in all places or in none. A commit that was
acknowledged is never taken back, and the offsets of one commit stay together.
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
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from tests.integration.test_coordinator_kill import SETTINGS
from tests.support.brokers import Broker, PenstockBroker

TOPIC = "numbers"
PARTITIONS = 3
LOAD_S = 20.0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    target = PenstockBroker(tmp_path / "broker", SETTINGS)
    target.start()
    admin = AdminClient(client_settings(target))
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 1)])[TOPIC].result(15)
    yield target
    target.kill()


def client_settings(broker: Broker, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "socket.timeout.ms": 5_000,
        "reconnect.backoff.ms": 20,
        "reconnect.backoff.max.ms": 200,
        "retry.backoff.ms": 20,
        # Broken connections are expected here and not worth a line on the terminal.
        "log_level": 0,
        # With librdkafka 2.16's default, a transactional producer whose only broker was gone hung in
        # send_offsets_to_transaction beyond every time-out; its log shows it waiting for a broker it had given up.
        "metadata.recovery.strategy": "none",
        "error_cb": lambda error: None,
        **more,
    }


def new_consumer(broker: Broker, group: str, **more: Any) -> Any:
    return confluent_kafka.Consumer(client_settings(broker, **{"group.id": group, "enable.auto.commit": False, **more}))


def partitions_at(offset: int) -> list[TopicPartition]:
    return [TopicPartition(TOPIC, partition, offset) for partition in range(PARTITIONS)]


def committed(consumer: Any) -> list[int]:
    """Asked for until the broker knows: it may be on its way up."""
    deadline = time.monotonic() + 30
    while True:
        try:
            return [each.offset for each in consumer.committed(partitions_at(0), timeout=10)]
        except KafkaException:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


class Load(threading.Thread):
    """Does one thing after the other until it is told to stop; what goes wrong is raised by `finish`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.stopped = threading.Event()
        self.failure: Exception | None = None

    def run(self) -> None:
        try:
            while not self.stopped.is_set():
                self.work()
        except Exception as failure:  # noqa: BLE001 - raised again by `finish`
            self.failure = failure

    def work(self) -> None:
        raise AssertionError("one kind of load has to say what it does")

    def finish(self) -> None:
        self.stopped.set()
        self.join(90)
        if self.failure is not None:
            raise self.failure
        assert not self.is_alive()


class Transactions(Load):
    def __init__(self, broker: Broker, transactional_id: str) -> None:
        super().__init__()
        self.broker = broker
        self.transactional_id = transactional_id
        self.number = 0
        self.acknowledged: set[int] = set()
        self.aborted: set[int] = set()
        self.consumer = new_consumer(broker, transactional_id)
        self.producer = self.new_producer()

    def new_producer(self) -> Any:
        settings = client_settings(self.broker, **{"transactional.id": self.transactional_id, "linger.ms": 0})
        producer: Any = confluent_kafka.Producer(settings)
        self.until_done(producer.init_transactions)
        return producer

    def until_done(self, call: Any, *arguments: Any) -> None:
        """librdkafka says which errors it would like to see tried again."""
        deadline = time.monotonic() + 60
        while True:
            try:
                call(*arguments, 5)
            except KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)
            else:
                return

    def work(self) -> None:
        number = self.number
        self.number += 1
        try:
            self.transact(number)
        except KafkaException as error:
            self.recover(number, error.args[0])
        else:
            self.acknowledged.add(number)

    def transact(self, number: int) -> None:
        self.producer.begin_transaction()
        for partition in range(PARTITIONS):
            self.producer.produce(TOPIC, f"{self.transactional_id} {number}", partition=partition)
        group = self.consumer.consumer_group_metadata()
        self.until_done(self.producer.send_offsets_to_transaction, partitions_at(number), group)
        self.until_done(self.producer.commit_transaction)

    def recover(self, number: int, error: Any) -> None:
        if error.txn_requires_abort():
            self.until_done(self.producer.abort_transaction)
            self.aborted.add(number)
        else:
            # Nobody else uses this id: a fatal error is only a reason to begin anew.
            assert error.code() != confluent_kafka.KafkaError._FENCED, error
            self.producer = self.new_producer()


class Commits(Load):
    def __init__(self, broker: Broker, group: str) -> None:
        super().__init__()
        self.consumer = new_consumer(broker, group)
        self.attempted = 0
        self.acknowledged = -1

    def work(self) -> None:
        self.attempted += 1
        number = self.attempted
        try:
            self.consumer.commit(offsets=partitions_at(number), asynchronous=False)
        except KafkaException:
            # Perhaps done, perhaps not. The next one has a higher number either way.
            time.sleep(0.02)
        else:
            self.acknowledged = number


def read_numbers(broker: Broker, partition: int) -> list[str]:
    """What a reader of committed records sees."""
    consumer = new_consumer(broker, "reader", **{"enable.partition.eof": True, "isolation.level": "read_committed"})
    consumer.assign([TopicPartition(TOPIC, partition, 0)])
    found: list[str] = []
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for message in consumer.consume(10_000, 0.5):
            if message.error() is None:
                found.append(message.value().decode())
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                consumer.close()
                return found
    raise TimeoutError(f"partition {partition} was not read to its end: a transaction hangs")


def check_transactions(load: Transactions, numbers: list[list[str]], consumer: Any) -> None:
    prefix = f"{load.transactional_id} "
    seen = [[int(each.removeprefix(prefix)) for each in part if each.startswith(prefix)] for part in numbers]
    assert seen[0] == sorted(set(seen[0])), "doubled or out of order"
    assert all(part == seen[0] for part in seen[1:]), "in one partition and not in another"
    assert load.acknowledged <= set(seen[0])
    assert not load.aborted & set(seen[0])
    assert committed(consumer) == [seen[0][-1]] * PARTITIONS


@pytest.mark.timeout(240)
def test_transactions_and_commits(broker: Broker) -> None:
    seed = random.SystemRandom().randrange(1_000_000)
    print(f"seed {seed}")
    rng = random.Random(seed)
    transactions = [Transactions(broker, "tran-0"), Transactions(broker, "tran-1")]
    commits = Commits(broker, "commits")
    watcher = new_consumer(broker, "commits")
    for load in (*transactions, commits):
        load.start()
    kills = 0
    until = time.monotonic() + LOAD_S
    while time.monotonic() < until:
        time.sleep(rng.uniform(0.3, 1.5))
        broker.kill()
        acknowledged = commits.acknowledged
        broker.start()
        kills += 1
        offsets = committed(watcher)
        assert len(set(offsets)) == 1, offsets
        assert acknowledged <= offsets[0] <= commits.attempted
    for load in (*transactions, commits):
        load.finish()
    done = [len(load.acknowledged) for load in transactions]
    print(f"{kills} kills, {done} transactions, {commits.acknowledged} commits")
    numbers = [read_numbers(broker, partition) for partition in range(PARTITIONS)]
    for load in transactions:
        assert load.acknowledged
        check_transactions(load, numbers, load.consumer)
    assert committed(watcher)[0] >= commits.acknowledged
    assert "Traceback" not in broker.output()
