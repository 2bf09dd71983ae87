"""The consumer when things go wrong with real brokers: gone, killed, deleted, out of range, forked."""

from __future__ import annotations

import os
import time

import pytest

from penstock import (
    Consumer,
    ForkedClient,
    KafkaError,
    NoBrokersReachable,
    NoOffsetForPartition,
    OffsetOutOfRange,
    TopicPartition,
    UnknownTopicOrPartition,
)
from tests.clients.checker import wait_until
from tests.clients.consuming import delete_records, numbers, produce, read, values
from tests.clients.support import TopicMaker
from tests.support.brokers import Broker
from tests.support.ports import free_port


def reader(bootstrap: str, *partitions: TopicPartition, **options: object) -> Consumer:
    settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **options}
    consumer = Consumer(bootstrap_servers=bootstrap, **settings)  # type: ignore[arg-type]
    consumer.assign(partitions)
    return consumer


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_broker_that_comes_back_is_read_on(restartable: Broker, how: str) -> None:
    name = TopicMaker(restartable.bootstrap, "restart")(partitions=2)
    tps = [TopicPartition(name, 0), TopicPartition(name, 1)]
    for partition in range(2):
        produce(restartable.bootstrap, name, numbers(1000), partition)
    with reader(restartable.bootstrap, *tps, max_poll_records=100) as consumer:
        seen = read(consumer, 300)
        getattr(restartable, how)()
        for _ in range(50):
            # What was fetched before is still given; nothing is raised while the broker is away.
            seen += consumer.poll(20)
        restartable.start()
        for partition in range(2):
            produce(restartable.bootstrap, name, numbers(10, 1000), partition)
        seen += read(consumer, 2020 - len(seen))
    for partition in range(2):
        assert values([record for record in seen if record.partition == partition]) == numbers(1010)


def test_a_wrong_address_is_told() -> None:
    with reader(f"127.0.0.1:{free_port()}", TopicPartition("t", 0), default_api_timeout_ms=500) as consumer:
        started = time.monotonic()
        with pytest.raises(NoBrokersReachable, match=r"bootstrap\.servers"):
            consumer.poll(60_000)
        with pytest.raises((NoBrokersReachable, TimeoutError)):
            consumer.position(TopicPartition("t", 0))
        assert time.monotonic() - started < 30
        started = time.monotonic()
    assert time.monotonic() - started < 20, "closing does not wait for a broker that is not there"


def test_offsets_out_of_range(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(10))
    with reader(bootstrap, tp) as consumer:
        consumer.seek(tp, 100)
        assert values(read(consumer, 10)) == numbers(10)
    with reader(bootstrap, tp, auto_offset_reset="latest") as consumer:
        consumer.seek(tp, 100)
        wait_until(lambda: consumer.poll(100) == [] and consumer.position(tp) == 10, 60, "the position was reset")
        produce(bootstrap, tp.topic, [b"new"])
        assert values(read(consumer, 1)) == [b"new"]
    with reader(bootstrap, tp, auto_offset_reset="none") as consumer:
        consumer.seek(tp, 100)
        with pytest.raises(OffsetOutOfRange, match="Offset 100") as caught:
            consumer.poll(60_000)
        assert caught.value.partitions == {tp: 100}
        consumer.seek(tp, 9)
        assert values(read(consumer, 2)) == [b"9", b"new"]


def test_no_policy_and_no_offset(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    with reader(bootstrap, tp, auto_offset_reset="none") as consumer:
        with pytest.raises(NoOffsetForPartition, match=r"auto\.offset\.reset"):
            consumer.poll(60_000)
        consumer.seek(tp, 0)
        assert consumer.poll(100) == []


def test_a_position_in_an_unknown_topic_names_the_cause(bootstrap: str, topic: TopicMaker) -> None:
    """It was a time-out that named none."""
    unknown, beyond = TopicPartition(topic.name(), 0), TopicPartition(topic(), 7)
    with Consumer(bootstrap_servers=bootstrap, allow_auto_create_topics=False) as consumer:
        consumer.assign([unknown, beyond])
        with pytest.raises(UnknownTopicOrPartition, match=f"{unknown.topic} does not exist"):
            consumer.position(unknown, timeout_ms=500)
        with pytest.raises(UnknownTopicOrPartition, match=f"no partition {beyond}: topic .* has partition 0 only"):
            consumer.position(beyond, timeout_ms=500)


def test_an_unknown_topic_is_warned_of_once(
    bootstrap: str, topic: TopicMaker, caplog: pytest.LogCaptureFixture
) -> None:
    unknown = topic.name()
    with Consumer(bootstrap_servers=bootstrap, group_id=unknown, allow_auto_create_topics=False) as consumer:
        consumer.subscribe([unknown])
        while f"topic {unknown} does not exist" not in caplog.text:
            assert consumer.poll(200) == []
        consumer.poll(1000)
    assert caplog.text.count(f"topic {unknown} does not exist") == 1


def test_records_deleted_under_the_reader(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    for start in (0, 10):
        produce(bootstrap, tp.topic, numbers(10, start))
    delete_records(bootstrap, tp.topic, 10)
    with reader(bootstrap, tp) as consumer:
        consumer.seek(tp, 3)
        assert values(read(consumer, 10)) == numbers(10, 10)


def test_a_deleted_topic_and_its_successor(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    tp = TopicPartition(name, 0)
    produce(bootstrap, name, numbers(5))
    with reader(bootstrap, tp, allow_auto_create_topics=False, metadata_max_age_ms=200) as consumer:
        read(consumer, 5)
        topic.delete(name)
        for _ in range(5):
            assert consumer.poll(50) == []
        # Kafka may still be deleting it.
        deadline = time.monotonic() + 60
        while True:
            try:
                topic(name=name)
                break
            except KafkaError:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        produce(bootstrap, name, [b"again"])
        assert values(read(consumer, 1)) == [b"again"]


def test_a_forked_child_is_told(bootstrap: str, topic: TopicMaker) -> None:
    with reader(bootstrap, TopicPartition(topic(), 0)) as consumer:
        consumer.poll(0)
        child = os.fork()
        if not child:
            # No test framework in the child: only its exit code counts.
            code = 1
            try:
                consumer.poll(1000)
            except ForkedClient:
                code = 42
            finally:
                os._exit(code)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 42
        assert consumer.poll(0) == []
