"""Transactions of every client: what was aborted is shown to nobody who asked for committed records only."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from tests.compat.admin import create_topic
from tests.compat.clients.base import Record
from tests.compat.clients.registry import CLIENTS
from tests.compat.committing import COMMITTERS, Commit
from tests.compat.groups import PROGRAMS, GroupWatch, Host, eventually
from tests.compat.transacting import ABORT, COMMIT, TRANSACTORS, Transaction
from tests.support.brokers import Broker
from tests.support.java import shared_peer

READ_TIMEOUT_S = 40.0


class Written:
    """A topic of one partition with transactions of every client among plain records, and what a reader may see."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.topic = topic
        self.committed: list[int] = []
        self.all: list[int] = []
        self._offset = 0
        create_topic(bootstrap, topic)
        for name, client in TRANSACTORS.items():
            transactions = [
                Transaction(values=[f"{name} {number}" for number in range(3)], end=end)
                for end in (COMMIT, ABORT, ABORT, COMMIT)
            ]
            client.run(bootstrap, topic, f"{topic}-{name}", transactions)
            for one in transactions:
                self._add(len(one.values), one.end == COMMIT)
                # The marker has an offset too.
                self._offset += 1
            CLIENTS["confluent-kafka"].write(bootstrap, topic, [Record(None, b"plain")])
            self._add(1, True)

    def _add(self, count: int, committed: bool) -> None:
        offsets = range(self._offset, self._offset + count)
        self.all += offsets
        if committed:
            self.committed += offsets
        self._offset += count


@pytest.fixture(scope="module")
def written(broker: Broker) -> Written:
    return Written(broker.bootstrap, "transactions-of-all")


@pytest.fixture
def host(tmp_path: Path, client: str) -> Iterator[Host]:
    started = Host(PROGRAMS[client], tmp_path / "members.log")
    yield started
    started.kill()


@pytest.mark.parametrize("client", list(PROGRAMS))
def test_readers(bootstrap: str, topic: str, written: Written, host: Host, client: str) -> None:
    expected = {"read_committed": written.committed, "read_uncommitted": written.all}
    watches = {
        level: GroupWatch(f"{topic}-{level}", written.topic, 1, PROGRAMS[client].assignors[0]) for level in expected
    }
    for level, watch in watches.items():
        host.join(watch, bootstrap, isolation=level)
    for level, watch in watches.items():
        eventually(
            lambda watch=watch, level=level: watch.delivered_count() >= len(expected[level]),
            READ_TIMEOUT_S,
            lambda watch=watch, level=level: f"{level}: {watch.delivered(0)} of {expected[level]}, {watch.failures}",
        )
    time.sleep(0.3)
    assert {level: watch.delivered(0) for level, watch in watches.items()} == expected


@pytest.mark.parametrize("client", [name for name, one in TRANSACTORS.items() if one.commits_offsets])
def test_offsets_in_a_transaction(bootstrap: str, topic: str, client: str) -> None:
    create_topic(bootstrap, topic)
    commits = [
        Transaction(values=["one"], group=topic, offsets={0: Commit(5)}),
        Transaction(values=["two"], group=topic, offsets={0: Commit(9)}, end=ABORT),
    ]
    TRANSACTORS[client].run(bootstrap, topic, topic, commits)
    found = COMMITTERS["java"].committed(bootstrap, topic, topic, 0)
    assert found is not None
    assert found.offset == 5


class Producer:
    """A transactional producer of librdkafka that lives through a test."""

    def __init__(self, bootstrap: str, transactional_id: str, *, timeout_ms: int = 20_000) -> None:
        self.id = transactional_id
        self.producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "log_level": 0,
            }
        )
        self.producer.init_transactions(30)

    def begin(self, topic: str, *values: str, partition: int = 0) -> None:
        self.producer.begin_transaction()
        for value in values:
            self.producer.produce(topic, value.encode(), partition=partition)
        self.producer.flush(30)

    def commit(self) -> None:
        """Again while the broker is away, as librdkafka's manual asks for."""
        deadline = time.monotonic() + 60
        while True:
            try:
                self.producer.commit_transaction(30)
                return
            except KafkaException as problem:
                if not problem.args[0].retriable() or time.monotonic() > deadline:
                    raise

    def write(self, topic: str, *values: str, partition: int = 0) -> None:
        self.begin(topic, *values, partition=partition)
        self.commit()


def committed_values(bootstrap: str, topic: str, partition: int = 0, *, quiet_s: float = 1.0) -> list[str]:
    """What a reader of committed records sees up to the last stable offset."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "unused",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 100,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0)])
    values: list[str] = []
    deadline = time.monotonic() + READ_TIMEOUT_S
    while time.monotonic() < deadline:
        message = consumer.poll(quiet_s)
        if message is None:
            continue
        problem = message.error()
        if problem is not None:
            if problem.code() == KafkaError._PARTITION_EOF:
                break
            raise KafkaException(problem)
        values.append((message.value() or b"").decode())
    consumer.close()
    return values


def is_fenced(problem: KafkaException) -> bool:
    return problem.args[0].code() in (
        KafkaError._FENCED,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
    )


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_only_a_second_owner_is_fenced(start_broker: Callable[..., Broker], topic: str, how: str) -> None:
    """Producers tran-0, tran-1, ... of one application go on over a restart of the broker."""
    broker = start_broker()
    create_topic(broker.bootstrap, topic)
    producers = [Producer(broker.bootstrap, f"tran-{number}") for number in range(4)]
    peer = shared_peer()
    java = [f"java-{topic}-{number}" for number in range(2)]
    for number, name in enumerate(java):
        peer.call(op="transactions_open", bootstrap=broker.bootstrap, name=name, transactional_id=f"tran-java-{number}")

    def write_all(round_: str) -> list[str]:
        for one in producers:
            one.write(topic, f"{one.id} {round_}")
        for name in java:
            peer.call(op="transactions_run", name=name, topic=topic, values=[f"{name} {round_}"], end=COMMIT)
        return [f"{one.id} {round_}" for one in producers] + [f"{name} {round_}" for name in java]

    written = write_all("before")
    # One transaction is open while the broker is away.
    producers[3].begin(topic, "tran-3 open")
    broker.stop() if how == "stop" else broker.kill()
    broker.start()
    producers[3].commit()
    written += ["tran-3 open", *write_all("after")]
    second = Producer(broker.bootstrap, "tran-1")
    with pytest.raises(KafkaException) as raised:
        producers[1].write(topic, "never")
    assert is_fenced(raised.value), raised.value
    producers[1] = second
    written += write_all("with another tran-1")
    for name in java:
        peer.call(op="transactions_close", name=name)
    assert sorted(committed_values(broker.bootstrap, topic)) == sorted(written)


def test_java_is_fenced(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    peer = shared_peer()
    first, second = f"{topic}-first", f"{topic}-second"
    for name in (first, second):
        peer.call(op="transactions_open", bootstrap=bootstrap, name=name, transactional_id=topic)
    with pytest.raises(RuntimeError, match=r"ProducerFenced|InvalidProducerEpoch"):
        peer.call(op="transactions_run", name=first, topic=topic, values=["never"], end=COMMIT)
    peer.call(op="transactions_run", name=second, topic=topic, values=["once"], end=COMMIT)
    for name in (first, second):
        peer.call(op="transactions_close", name=name)
    assert committed_values(bootstrap, topic) == ["once"]


def test_a_new_owner_aborts_what_the_old_one_left_open(bootstrap: str, topic: str) -> None:
    create_topic(bootstrap, topic)
    first = Producer(bootstrap, topic)
    first.write(topic, "done")
    first.begin(topic, "left open")
    CLIENTS["confluent-kafka"].write(bootstrap, topic, [Record(None, b"plain")])
    assert committed_values(bootstrap, topic) == ["done"]
    Producer(bootstrap, topic).write(topic, "new")
    assert committed_values(bootstrap, topic) == ["done", "plain", "new"]


def test_the_coordinator_aborts_after_the_timeout(start_broker: Callable[..., Broker], topic: str) -> None:
    broker = start_broker(transaction_abort_timed_out_transaction_cleanup_interval_ms="500")
    create_topic(broker.bootstrap, topic)
    forgotten = Producer(broker.bootstrap, "forgotten", timeout_ms=1500)
    forgotten.begin(topic, "forgotten")
    CLIENTS["confluent-kafka"].write(broker.bootstrap, topic, [Record(None, b"plain")])
    assert committed_values(broker.bootstrap, topic) == []
    eventually(
        lambda: committed_values(broker.bootstrap, topic) == ["plain"],
        READ_TIMEOUT_S,
        lambda: f"still {committed_values(broker.bootstrap, topic)}",
    )
    with pytest.raises(KafkaException):
        forgotten.commit()


def test_pending_offsets_hold_a_member_back(bootstrap: str, topic: str) -> None:
    """OffsetFetch with require-stable: nobody starts from a commit that may yet be replaced."""
    create_topic(bootstrap, topic)
    peer = shared_peer()
    peer.call(op="transactions_open", bootstrap=bootstrap, name=topic, transactional_id=topic)
    group = f"{topic}-group"
    arguments = {"name": topic, "topic": topic, "values": ["x"], "group": group, "offsets": {"0": [1, ""]}}
    peer.call(op="transactions_run", **arguments, end="leave open")
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": group, "isolation.level": "read_committed"}
    )
    with pytest.raises(KafkaException) as raised:
        consumer.committed([TopicPartition(topic, 0)], timeout=1.5)
    assert raised.value.args[0].code() in (KafkaError._TIMED_OUT, KafkaError.UNSTABLE_OFFSET_COMMIT)
    peer.call(op="transactions_close", name=topic)
    # A new owner aborts: then there is no commit at all.
    peer.call(op="transactions_open", bootstrap=bootstrap, name=topic, transactional_id=topic)
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    assert found.offset == confluent_kafka.OFFSET_INVALID
    consumer.close()
    peer.call(op="transactions_close", name=topic)
