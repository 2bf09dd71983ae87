"""Transactions of our producer, V1 and V2, as readers of committed records see them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from penstock import Consumer, Producer
from penstock.base.types import TopicPartition
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import (
    CommitFailed,
    InvalidState,
    KafkaError,
    KafkaTimeout,
    ProducerFenced,
    RecordTooLarge,
    TransactionAborted,
    TransactionError,
)
from penstock.client.producer.producer import AsyncProducer
from penstock.client.producer.transactions import TransactionManager, TransactionState
from tests.clients.support import TopicMaker
from tests.support.brokers import Broker

WAIT_S = 60.0
QUICK_RESTART = {"broker_session_timeout_ms": "1000", "broker_heartbeat_interval_ms": "100"}
"""Kafka does not take a broker back while it thinks that its predecessor lives."""
VERSIONS = pytest.mark.parametrize("version", [1, 2])


def manager_of(producer: Producer | AsyncProducer) -> TransactionManager:
    core = producer._core if isinstance(producer, Producer) else producer
    if isinstance(producer, Producer):
        producer._run(producer._core.start())
    manager = core._transactions
    assert manager is not None
    return manager


@contextmanager
def transactional(bootstrap: str, name: str, version: int, **options: Any) -> Iterator[Producer]:
    """A producer that has taken over its transactional id, and speaks this version of the protocol."""
    with Producer(bootstrap_servers=bootstrap, transactional_id=name, **options) as producer:
        manager_of(producer).version_max = version
        producer.init_transactions(WAIT_S)
        assert manager_of(producer).transaction_version == version
        yield producer


def read(
    bootstrap: str, topic: str, count: int, *, partitions: int = 1, isolation: str = "read_committed"
) -> list[str]:
    """The first `count` values, and whatever comes with them, as a reader of committed records sees them."""
    values: list[str] = []
    with Consumer(
        bootstrap_servers=bootstrap, isolation_level=isolation, auto_offset_reset="earliest", fetch_max_wait_ms=50
    ) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
        ends = consumer.end_offsets(consumer.assignment())
        for _ in range(600):
            values += [record.value.decode() for record in consumer.poll(timeout_ms=100)]
            at_end = all(consumer.position(tp) >= end for tp, end in ends.items())
            if at_end and len(values) >= count:
                return values
    raise AssertionError(f"{len(values)} of {count} records came: {values[:20]}")


@VERSIONS
def test_committed_records_are_seen_together_and_aborted_ones_never(
    bootstrap: str, topic: TopicMaker, version: int
) -> None:
    name = topic(partitions=3)
    with transactional(bootstrap, f"{name}-id", version) as producer:
        for number in range(4):
            producer.begin_transaction()
            deliveries = [producer.send(name, f"{number}-{part}", partition=part) for part in range(3)]
            if number % 2:
                producer.flush(WAIT_S)
                producer.abort_transaction(WAIT_S)
            else:
                producer.commit_transaction(WAIT_S)
                assert all(each.result(0).offset >= 0 for each in deliveries)
    assert sorted(read(bootstrap, name, 6, partitions=3)) == ["0-0", "0-1", "0-2", "2-0", "2-1", "2-2"]
    assert len(read(bootstrap, name, 12, partitions=3, isolation="read_uncommitted")) == 12


@VERSIONS
def test_block_commits_or_aborts(bootstrap: str, topic: TopicMaker, version: int) -> None:
    name = topic()
    with transactional(bootstrap, f"{name}-id", version) as producer:
        with producer.transaction():
            producer.send(name, "kept")
        with pytest.raises(ZeroDivisionError), producer.transaction():
            _ = producer.send(name, "dropped"), 1 / 0
        with producer.transaction():
            pass
        with producer.transaction():
            producer.send(name, "kept too")
    assert read(bootstrap, name, 2) == ["kept", "kept too"]


@VERSIONS
def test_unsent_records_of_an_aborted_transaction_fail(bootstrap: str, topic: TopicMaker, version: int) -> None:
    name = topic()
    with transactional(bootstrap, f"{name}-id", version, linger_ms=10_000) as producer:
        producer.begin_transaction()
        lost = producer.send(name, "never sent")
        producer.abort_transaction(WAIT_S)
        with pytest.raises(TransactionAborted):
            lost.result(0)
        with producer.transaction():
            producer.send(name, "next")
    assert read(bootstrap, name, 1, isolation="read_uncommitted") == ["next"]


@VERSIONS
def test_older_producer_is_fenced(bootstrap: str, topic: TopicMaker, version: int) -> None:
    name = topic()
    with transactional(bootstrap, f"{name}-id", version) as old:
        old.begin_transaction()
        old.send(name, "old").result(WAIT_S)
        with transactional(bootstrap, f"{name}-id", version) as new, new.transaction():
            new.send(name, "new")
        with pytest.raises(KafkaError):
            old.send(name, "zombie").result(WAIT_S)
        with pytest.raises(KafkaError):
            old.commit_transaction(WAIT_S)
        if manager_of(old).machine.state is not TransactionState.FATAL_ERROR:
            # A leader cannot tell a takeover from a time-out: the coordinator's word decides.
            with pytest.raises(ProducerFenced):
                old.abort_transaction(WAIT_S)
        with pytest.raises(ProducerFenced, match="id"):
            old.begin_transaction()
        with pytest.raises(ProducerFenced):
            old.send(name, "more")
    assert read(bootstrap, name, 1) == ["new"]


@VERSIONS
def test_record_that_is_refused_spoils_the_transaction_but_not_the_producer(
    bootstrap: str, topic: TopicMaker, version: int
) -> None:
    name = topic(config={"max.message.bytes": "1000"})
    with transactional(bootstrap, f"{name}-id", version) as producer:
        for _ in range(2):
            producer.begin_transaction()
            producer.send(name, "dropped")
            too_large = producer.send(name, b"x" * 5_000)
            with pytest.raises(RecordTooLarge):
                too_large.result(WAIT_S)
            with pytest.raises(TransactionError, match="abort_transaction"):
                producer.send(name, "refused")
            with pytest.raises(TransactionError):
                producer.commit_transaction(WAIT_S)
            producer.abort_transaction(WAIT_S)
            with producer.transaction():
                producer.send(name, "kept")
    assert read(bootstrap, name, 2) == ["kept", "kept"]


@VERSIONS
def test_block_whose_commit_fails_aborts_and_the_next_one_works(
    bootstrap: str, topic: TopicMaker, version: int
) -> None:
    name = topic(config={"max.message.bytes": "1000"})
    with transactional(bootstrap, f"{name}-id", version) as producer:
        for _ in range(2):
            with pytest.raises(TransactionError, match="larger than the topic takes"), producer.transaction():
                producer.send(name, b"x" * 5_000)
            with producer.transaction():
                producer.send(name, "kept")
    assert read(bootstrap, name, 2) == ["kept", "kept"]


@VERSIONS
@pytest.mark.parametrize("waits", [True, False])
def test_block_of_a_fenced_producer_raises_that_it_is_fenced(
    bootstrap: str, topic: TopicMaker, version: int, waits: bool
) -> None:
    name = topic()
    with transactional(bootstrap, f"{name}-id", version) as old:
        with pytest.raises(ProducerFenced) as caught, old.transaction():  # noqa: PT012 - the takeover is in the block
            old.send(name, "old").result(WAIT_S)
            with transactional(bootstrap, f"{name}-id", version):
                pass
            zombie = old.send(name, "zombie")
            if waits:
                zombie.result(WAIT_S)
        assert caught.value.fatal
        assert not caught.value.abortable
        with pytest.raises(ProducerFenced), old.transaction():
            raise AssertionError("a fenced producer begins nothing")
    assert manager_of_state(old) is TransactionState.FATAL_ERROR


def manager_of_state(producer: Producer) -> TransactionState:
    manager = producer._core._transactions
    assert manager is not None
    return manager.machine.state


def test_calls_out_of_order_are_refused(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with Producer(bootstrap_servers=bootstrap, transactional_id=f"{name}-id") as producer:
        with pytest.raises(InvalidState, match="init_transactions"):
            producer.begin_transaction()
        with pytest.raises(InvalidState, match="init_transactions"):
            producer.send(name, "x")
        producer.init_transactions(WAIT_S)
        for call in (producer.commit_transaction, producer.abort_transaction, producer.init_transactions):
            with pytest.raises(InvalidState, match="begin_transaction"):
                call()
        producer.begin_transaction()
        with pytest.raises(InvalidState, match="commit or abort"):
            producer.begin_transaction()
    with Producer(bootstrap_servers=bootstrap) as plain, pytest.raises(InvalidState, match=r"transactional\.id"):
        plain.begin_transaction()


@VERSIONS
def test_offsets_belong_to_the_transaction(bootstrap: str, topic: TopicMaker, version: int) -> None:
    name, group = topic(), topic.name()
    tp = TopicPartition(name, 0)
    with (
        transactional(bootstrap, f"{name}-id", version) as producer,
        Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer,
    ):
        producer.begin_transaction()
        producer.send_offsets({tp: OffsetAndMetadata(7, "note")}, group, WAIT_S)
        producer.abort_transaction(WAIT_S)
        assert consumer.committed([tp]) == {tp: None}
        with producer.transaction():
            producer.send(name, "x")
            producer.send_offsets({tp: OffsetAndMetadata(9, "note")}, consumer.group_metadata(), WAIT_S)
        committed = consumer.committed([tp])[tp]
        assert committed is not None
        assert (committed.offset, committed.metadata) == (9, "note")


def test_offsets_of_a_member_that_is_gone_are_refused(bootstrap: str, topic: TopicMaker) -> None:
    name, group = topic(), topic.name()
    tp = TopicPartition(name, 0)
    with transactional(bootstrap, f"{name}-id", 2) as producer:
        with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
            consumer.subscribe([name])
            for _ in range(100):
                consumer.poll(timeout_ms=100)
                if consumer.assignment():
                    break
            identity = consumer.group_metadata()
        assert identity.member_id
        producer.begin_transaction()
        with pytest.raises(CommitFailed):
            producer.send_offsets({tp: 1}, identity, WAIT_S)
        producer.abort_transaction(WAIT_S)
        producer.begin_transaction()


@VERSIONS
def test_offsets_for_a_topic_that_does_not_exist_can_be_aborted(
    bootstrap: str, topic: TopicMaker, version: int
) -> None:
    name, group = topic(), topic.name()
    with transactional(bootstrap, f"{name}-id", version) as producer:
        producer.begin_transaction()
        with pytest.raises(KafkaTimeout, match="UNKNOWN_TOPIC_OR_PARTITION"):
            producer.send_offsets({TopicPartition(f"no-{name}", 0): 1}, group, 1)
        producer.abort_transaction(WAIT_S)
        with producer.transaction():
            producer.send(name, "next")
    assert read(bootstrap, name, 1) == ["next"]


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        await asyncio.wait_for(test(), 3 * WAIT_S)

    asyncio.run(bounded())


@VERSIONS
def test_asyncio_face(bootstrap: str, topic: TopicMaker, version: int) -> None:
    name = topic()

    async def test() -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap, transactional_id=f"{name}-id") as producer:
            manager_of(producer).version_max = version
            await producer.init_transactions()
            for number in range(3):
                async with producer.transaction():
                    await producer.send(name, str(number))

    run(test)
    assert read(bootstrap, name, 3) == ["0", "1", "2"]


@VERSIONS
def test_asyncio_block_whose_commit_fails_aborts(bootstrap: str, topic: TopicMaker, version: int) -> None:
    name = topic(config={"max.message.bytes": "1000"})

    async def test() -> None:
        async with AsyncProducer(bootstrap_servers=bootstrap, transactional_id=f"{name}-id") as producer:
            manager_of(producer).version_max = version
            await producer.init_transactions()
            with pytest.raises(TransactionError):
                async with producer.transaction():
                    await producer.send(name, b"x" * 5_000)
            async with producer.transaction():
                await producer.send(name, "kept")

    run(test)
    assert read(bootstrap, name, 1) == ["kept"]


def test_many_small_transactions_follow_each_other_quickly(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with transactional(bootstrap, f"{name}-id", 2) as producer:
        for number in range(30):
            with producer.transaction():
                producer.send(name, str(number))
    assert read(bootstrap, name, 30) == [str(number) for number in range(30)]


def test_close_aborts_an_open_transaction(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with transactional(bootstrap, f"{name}-id", 2) as producer:
        producer.begin_transaction()
        producer.send(name, "dropped").result(WAIT_S)
    with Producer(bootstrap_servers=bootstrap) as plain:
        plain.send(name, "plain").result(WAIT_S)
    assert read(bootstrap, name, 1) == ["plain"], "no open transaction holds the reader up"


def test_commit_that_timed_out_is_called_again(start_cluster: Callable[..., Broker]) -> None:
    restartable = start_cluster(**QUICK_RESTART)
    topic = TopicMaker(restartable.bootstrap, "timed-out")
    name = topic()
    with transactional(restartable.bootstrap, "id", 2) as producer:
        producer.begin_transaction()
        producer.send(name, "kept").result(WAIT_S)
        restartable.kill()
        with pytest.raises(KafkaTimeout, match=r"commit_transaction\(\) again"):
            producer.commit_transaction(0.3)
        with pytest.raises(InvalidState, match="commit_transaction"):
            producer.abort_transaction(1)
        restartable.start()
        producer.commit_transaction(3 * WAIT_S)
        with producer.transaction():
            producer.send(name, "next")
    assert read(restartable.bootstrap, name, 2) == ["kept", "next"]


@VERSIONS
def test_transaction_that_outlives_its_time_is_ended_by_the_coordinator(
    start_cluster: Callable[..., Broker], version: int
) -> None:
    broker = start_cluster(transaction_abort_timed_out_transaction_cleanup_interval_ms="100")
    name = TopicMaker(broker.bootstrap, "late")()
    with transactional(broker.bootstrap, "id", version, transaction_timeout_ms=3_000) as producer:
        producer.begin_transaction()
        producer.send(name, "dropped").result(WAIT_S)
        with Producer(bootstrap_servers=broker.bootstrap) as plain:
            plain.send(name, "plain").result(WAIT_S)
        assert read(broker.bootstrap, name, 1) == ["plain"], "the reader need not wait for the producer"
        with pytest.raises(KafkaError):
            producer.commit_transaction(WAIT_S)
        with pytest.raises(KafkaError, match=r"transaction\.timeout\.ms"):
            producer.begin_transaction()
    with transactional(broker.bootstrap, "id", version) as producer, producer.transaction():
        producer.send(name, "next")
    assert read(broker.bootstrap, name, 2) == ["plain", "next"]
