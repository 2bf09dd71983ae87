"""Exactly once from topic to topic: consumed offsets and produced records in one transaction, while brokers die."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Consumer, Producer
from penstock.base.types import TopicPartition
from penstock.client.consumer.offset_stores import offsets_after
from penstock.client.errors import ClientError, KafkaError
from tests.clients.support import TopicMaker
from tests.clients.test_transactions import QUICK_RESTART, manager_of, read, transactional
from tests.support.brokers import Broker, KafkaBroker
from tests.support.java import shared_peer

COUNT = 600
PARTITIONS = 2
WAIT_S = 90.0
QUICK_RESTART_KEYS = {key.replace("_", "."): value for key, value in QUICK_RESTART.items()}


class Copier(threading.Thread):
    """Reads records and writes them to another topic, a few per transaction, until it is told to end."""

    def __init__(self, bootstrap: str, source: str, target: str, version: int, name: str = "copier") -> None:
        super().__init__(name=name)
        self._servers, self._source, self._target, self._version = bootstrap, source, target, version
        self.copied = 0
        self.aborted = 0
        self.failure: BaseException | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            with (
                Consumer(
                    bootstrap_servers=self._servers, group_id=f"{self._source}-g", enable_auto_commit=False,
                    auto_offset_reset="earliest", isolation_level="read_committed", fetch_max_wait_ms=50,
                ) as consumer,
                transactional(self._servers, f"{self._source}-{self.name}", self._version) as producer,
            ):  # fmt: skip
                consumer.subscribe([self._source])
                while not self.stopping.is_set():
                    self._copy_some(consumer, producer)
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.failure = error

    def _copy_some(self, consumer: Consumer, producer: Producer) -> None:
        records = consumer.poll(timeout_ms=200, max_records=20)
        if not records:
            return
        producer.begin_transaction()
        try:
            for record in records:
                producer.send(self._target, record.value, partition=record.partition)
            producer.send_offsets(offsets_after(records), consumer.group_metadata(), WAIT_S)
            producer.commit_transaction(WAIT_S)
        except ClientError as error:
            if not error.abortable:
                raise
            producer.abort_transaction(WAIT_S)
            self.aborted += 1
            self._rewind(consumer)
        else:
            self.copied += len(records)

    def _rewind(self, consumer: Consumer) -> None:
        for partition, committed in consumer.committed(consumer.assignment()).items():
            consumer.seek(partition, 0 if committed is None else committed)


def fill(bootstrap: str, name: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in range(COUNT):
            producer.send(name, str(number), partition=number % PARTITIONS)
        producer.flush(20)


def wait_for(condition: Callable[[], Any], what: str, *copiers: Copier) -> None:
    deadline = time.monotonic() + WAIT_S
    while not condition():
        for copier in copiers:
            if copier.failure is not None:
                raise copier.failure
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


def check(bootstrap: str, target: str) -> None:
    """Nothing lost, nothing doubled, nothing out of order."""
    values = [int(value) for value in read(bootstrap, target, COUNT, partitions=PARTITIONS)]
    assert sorted(values) == list(range(COUNT))
    by_partition: defaultdict[int, list[int]] = defaultdict(list)
    for value in values:
        by_partition[value % PARTITIONS].append(value)
    assert all(each == sorted(each) for each in by_partition.values())


@pytest.mark.parametrize("version", [1, 2])
def test_broker_killed_in_the_middle(start_cluster: Callable[..., Broker], version: int) -> None:
    restartable = start_cluster(**QUICK_RESTART)
    topic = TopicMaker(restartable.bootstrap, f"copy-{version}")
    source, target = topic(partitions=PARTITIONS), topic(partitions=PARTITIONS)
    fill(restartable.bootstrap, source)
    copier = Copier(restartable.bootstrap, source, target, version)
    copier.start()
    try:
        wait_for(lambda: copier.copied >= COUNT // 4, "a quarter", copier)
        restartable.kill()
        restartable.start()
        wait_for(lambda: copier.copied >= COUNT, f"all ({copier.copied})", copier)
    finally:
        copier.stopping.set()
        copier.join(30)
    assert copier.failure is None
    check(restartable.bootstrap, target)


def test_copiers_that_come_and_go(bootstrap: str, topic: TopicMaker) -> None:
    """Members join and leave in the middle; the offsets of one that lost its partitions are refused."""
    source, target = topic(partitions=PARTITIONS), topic(partitions=PARTITIONS)
    fill(bootstrap, source)
    copiers = [Copier(bootstrap, source, target, 2, name=f"copier-{number}") for number in range(3)]
    try:
        copiers[0].start()
        wait_for(lambda: copiers[0].copied >= 60, "a few", copiers[0])
        copiers[1].start()
        copiers[2].start()
        wait_for(lambda: sum(each.copied for each in copiers) >= COUNT // 2, "half", *copiers)
        copiers[0].stopping.set()
        wait_for(lambda: sum(each.copied for each in copiers) >= COUNT, "all", *copiers)
    finally:
        for copier in copiers:
            copier.stopping.set()
            if copier.ident is not None:
                copier.join(30)
    assert [each.failure for each in copiers] == [None, None, None]
    check(bootstrap, target)


@pytest.fixture
def v1_kafka(tmp_path: Any) -> Any:
    """Apache Kafka whose cluster has the feature transaction.version at 1."""
    broker = KafkaBroker(tmp_path / "v1", QUICK_RESTART_KEYS)
    try:
        broker.start()
        set_transaction_version(broker, "downgrade", 1)
        yield broker
    finally:
        broker.kill()


def set_transaction_version(broker: Broker, way: str, version: int) -> None:
    feature = (way, "--feature", f"transaction.version={version}")
    result = shared_peer().tool("FeatureCommand", "--bootstrap-server", broker.bootstrap, *feature)
    assert result.code == 0, result.text + result.stderr


def test_cluster_without_the_second_version(v1_kafka: Broker) -> None:
    topic = TopicMaker(v1_kafka.bootstrap, "v1")
    name = topic()
    with Producer(bootstrap_servers=v1_kafka.bootstrap, transactional_id="id") as producer:
        producer.init_transactions(30)
        assert manager_of(producer).transaction_version == 1
        with producer.transaction():
            producer.send(name, "kept")
            producer.send_offsets({TopicPartition(name, 0): 1}, "g")
        producer.begin_transaction()
        producer.send(name, "dropped").result(30)
        producer.abort_transaction()
        with pytest.raises(KafkaError), producer.transaction():
            producer.send(name, b"x" * 2_000_000)
        with producer.transaction():
            producer.send(name, "kept too")
    assert read(v1_kafka.bootstrap, name, 2) == ["kept", "kept too"]


def test_an_upgrade_of_the_cluster_is_noticed(v1_kafka: Broker) -> None:
    """With the next connection, as Java's producer does."""
    name = TopicMaker(v1_kafka.bootstrap, "upgraded")()
    with Producer(
        bootstrap_servers=v1_kafka.bootstrap, transactional_id="id", reconnect_backoff_max_ms=100
    ) as producer:
        producer.init_transactions(30)
        with producer.transaction():
            producer.send(name, "first")
        assert manager_of(producer).transaction_version == 1
        set_transaction_version(v1_kafka, "upgrade", 2)
        v1_kafka.stop()
        v1_kafka.start()
        # The first may still be of the old version, if the broker was not reached in time to be asked.
        for number in range(2):
            with producer.transaction():
                producer.send(name, f"later {number}").result(WAIT_S)
        assert manager_of(producer).transaction_version == 2
    assert read(v1_kafka.bootstrap, name, 3) == ["first", "later 0", "later 1"]
