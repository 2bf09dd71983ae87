"""Every fault as a real client sees it."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError as AiokafkaError
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.testing import EphemeralBroker, Faults
from tests.integration.driving import read_values, send_values
from tests.support.raw_client import connect

pytestmark = pytest.mark.filterwarnings("default")

FAST = {"retry.backoff.ms": 50, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 100, "log_level": 0}


@pytest.fixture
def kafka() -> Iterator[EphemeralBroker]:
    with EphemeralBroker() as broker:
        broker.create_topic("t")
        yield broker


@pytest.fixture
def faults(kafka: EphemeralBroker) -> Faults:
    return kafka.faults


def send(kafka: EphemeralBroker, value: bytes = b"x", **settings: Any) -> KafkaError | None:
    """Produce one record with librdkafka; gives the error of its delivery, None when it was acknowledged."""
    config = {"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 0, **FAST}
    config.update({key.replace("_", "."): value for key, value in settings.items()})
    producer = Producer(config)
    outcome: list[KafkaError | None] = []
    producer.produce("t", value, on_delivery=lambda error, _: outcome.append(error))
    assert producer.flush(20) == 0
    return outcome[0]


def values(kafka: EphemeralBroker) -> list[bytes]:
    with connect("127.0.0.1", kafka.port) as client:
        return [value for value in read_values(client, "t") if value is not None]


def seconds_of(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


# -- Answers -----------------------------------------------------------------------------------------------------------


def test_a_retriable_code_is_retried_as_often_as_it_comes(kafka: EphemeralBroker, faults: Faults) -> None:
    fault = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    assert send(kafka) is None
    assert fault.hits == 2
    assert not faults.pending
    assert values(kafka) == [b"x"]


def test_a_final_code_reaches_the_application(kafka: EphemeralBroker, faults: Faults) -> None:
    faults.fail(0, 29)
    error = send(kafka)
    assert error is not None
    assert error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert "answered TOPIC_AUTHORIZATION_FAILED" in kafka.log_text()
    assert send(kafka) is None


def test_a_fault_can_wait_and_choose_its_client(kafka: EphemeralBroker, faults: Faults) -> None:
    faults.fail("Produce", "INVALID_REQUEST", after=1, client_id="unlucky")
    assert send(kafka, client_id="lucky") is None
    assert send(kafka, client_id="unlucky") is None
    assert send(kafka, client_id="lucky") is None
    assert send(kafka, client_id="unlucky") is not None


def test_acks_0_learns_of_an_error_by_the_end_of_its_connection(kafka: EphemeralBroker, faults: Faults) -> None:
    faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER")
    send(kafka, acks="0")
    assert "acks=0 failed (NOT_LEADER_OR_FOLLOWER, by a fault)" in wait_for_text(kafka, "acks=0 failed")


def wait_for_text(kafka: EphemeralBroker, text: str) -> str:
    deadline = time.monotonic() + 60
    while text not in kafka.log_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    return kafka.log_text()


def test_a_late_answer(kafka: EphemeralBroker, faults: Faults) -> None:
    assert send(kafka) is None
    faults.delay("Produce", 1.2)
    assert seconds_of(lambda: send(kafka)) >= 1.2


def test_a_lost_request_is_sent_again(kafka: EphemeralBroker, faults: Faults) -> None:
    fault = faults.drop("Produce")
    assert send(kafka, socket_timeout_ms=1000) is None
    assert fault.hits == 1
    assert values(kafka) == [b"x"]


def test_a_lost_answer_makes_a_duplicate_unless_the_producer_is_idempotent(
    kafka: EphemeralBroker, faults: Faults
) -> None:
    faults.drop("Produce", handled=True)
    assert send(kafka, b"plain", socket_timeout_ms=1000, acks="1") is None
    assert values(kafka) == [b"plain", b"plain"]
    faults.drop("Produce", handled=True)
    assert send(kafka, b"once", socket_timeout_ms=1000, enable_idempotence=True) is None
    assert values(kafka) == [b"plain", b"plain", b"once"]


def test_clear_lets_late_answers_go_and_ends_connections_that_wait(kafka: EphemeralBroker, faults: Faults) -> None:
    with connect("127.0.0.1", kafka.port) as late, connect("127.0.0.1", kafka.port) as never:
        faults.delay("Metadata", 60)
        late.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        faults.wait_for(faults.drop("Metadata"), hits=0)
        fault = faults.pending[0]
        never.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        faults.wait_for(fault)
        faults.clear()
        assert late.recv_frame()
        assert never.is_closed_by_peer()


def test_a_stop_does_not_wait_for_what_faults_hold_back(kafka: EphemeralBroker, faults: Faults) -> None:
    fault = faults.drop("Metadata", times=None)
    with connect("127.0.0.1", kafka.port) as client:
        client.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        faults.wait_for(fault)
        kafka.restart()
        assert client.is_closed_by_peer()


def test_metadata_errors_pass(kafka: EphemeralBroker, faults: Faults) -> None:
    fault = faults.fail("Metadata", "LEADER_NOT_AVAILABLE", times=3)
    assert send(kafka, topic_metadata_refresh_fast_interval_ms=50) is None
    assert fault.hits == 3


async def test_aiokafka_sees_codes_and_retries(kafka: EphemeralBroker, faults: Faults) -> None:
    async with AIOKafkaProducer(bootstrap_servers=kafka.bootstrap_servers, retry_backoff_ms=50) as producer:
        fault = faults.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
        assert (await producer.send_and_wait("t", b"a")).offset == 0
        assert fault.hits == 2
        faults.fail("Produce", "MESSAGE_TOO_LARGE")
        with pytest.raises(AiokafkaError):
            await producer.send_and_wait("t", b"b")
    consumer = AIOKafkaConsumer("t", bootstrap_servers=kafka.bootstrap_servers, auto_offset_reset="earliest")
    async with consumer:
        fault = faults.fail("Fetch", "NOT_LEADER_OR_FOLLOWER")
        assert (await asyncio.wait_for(consumer.getone(), 20)).value == b"a"
        assert fault.hits == 1


def test_kafka_python_sees_codes(kafka: EphemeralBroker, faults: Faults) -> None:
    import kafka as kafka_python
    from kafka.errors import TopicAuthorizationFailedError

    producer = kafka_python.KafkaProducer(bootstrap_servers=kafka.bootstrap_servers, enable_idempotence=False)
    try:
        faults.fail("Produce", "TOPIC_AUTHORIZATION_FAILED")
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send("t", b"x").get(20)
        assert producer.send("t", b"y").get(20).offset == 0
    finally:
        producer.close()


# -- Connections -------------------------------------------------------------------------------------------------------


def test_connections_are_cut_all_or_by_client(kafka: EphemeralBroker, faults: Faults) -> None:
    with connect("127.0.0.1", kafka.port) as one, connect("127.0.0.1", kafka.port) as other:
        one.client_id, other.client_id = "one", "other"
        for client in (one, other):
            client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert faults.disconnect(client_id="nobody") == 0
        assert faults.disconnect(client_id="one") == 1
        assert one.is_closed_by_peer()
        other.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert faults.disconnect() == 1
        assert other.is_closed_by_peer()


def test_a_producer_survives_a_cut_and_a_cut_in_mid_request(kafka: EphemeralBroker, faults: Faults) -> None:
    fault = faults.disconnect_after(1, api="Produce")
    assert send(kafka, b"1") is None
    assert send(kafka, b"2") is None
    assert fault.hits == 1
    faults.disconnect_after(api="Produce", handled=True)
    assert send(kafka, b"3", enable_idempotence=True) is None
    assert values(kafka) == [b"1", b"2", b"3"]


def test_any_request_counts_when_no_api_is_named(kafka: EphemeralBroker, faults: Faults) -> None:
    faults.disconnect_after(2)
    with connect("127.0.0.1", kafka.port) as client:
        for _ in range(2):
            client.call(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        client.send(ApiKey.METADATA, 9, MetadataRequest(topics=[]))
        assert client.is_closed_by_peer()


# -- Groups ------------------------------------------------------------------------------------------------------------


def test_a_forced_rebalance_reaches_the_members(kafka: EphemeralBroker, faults: Faults) -> None:
    assigned: list[int] = []
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 200,
            **FAST,
        }
    )
    consumer.subscribe(["t"], on_assign=lambda _, partitions: assigned.append(len(partitions)))
    try:
        _poll_until(consumer, lambda: assigned == [1])
        faults.rebalance("g")
        _poll_until(consumer, lambda: assigned == [1, 1])
        assert "asked for by a fault" in kafka.log_text()
    finally:
        consumer.close()
    with pytest.raises(ValueError, match=r"the group 'nobody' cannot rebalance: .*; let a consumer join it first"):
        faults.rebalance("nobody")


def test_a_rebalance_of_no_group_says_so(kafka: EphemeralBroker) -> None:
    with EphemeralBroker() as fresh, pytest.raises(ValueError, match="'nosuch' cannot rebalance: it does not exist"):
        fresh.faults.rebalance("nosuch")


def _poll_until(consumer: Consumer, condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        consumer.poll(0.1)


# -- The disk ----------------------------------------------------------------------------------------------------------


def test_a_full_disk_and_its_healing(kafka: EphemeralBroker, faults: Faults) -> None:
    assert send(kafka, b"before") is None
    with faults.full_disk():
        error = send(kafka, b"lost", retries=0)
        assert error is not None
        assert "No space left on device" in kafka.log_text()
        assert values(kafka) == [b"before"]
        with pytest.raises(Exception, match=r"was not made: .*No space left"):
            kafka.create_topic("no-room")
    assert send(kafka, b"after") is None
    kafka.create_topic("room")
    assert values(kafka) == [b"before", b"after"]


def test_a_producer_that_retries_waits_for_room(kafka: EphemeralBroker, faults: Faults) -> None:
    faults.fill_disk()
    timer = threading.Timer(0.8, faults.heal_disk)
    timer.start()
    assert send(kafka, b"patient") is None
    timer.join()
    assert values(kafka) == [b"patient"]


def test_commits_fail_on_a_full_disk_and_work_afterwards(kafka: EphemeralBroker, faults: Faults) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "g", **FAST})
    try:
        offsets = [TopicPartition("t", 0, 1)]
        consumer.commit(offsets=offsets, asynchronous=False)
        with faults.full_disk(), pytest.raises(KafkaException):
            consumer.commit(offsets=[TopicPartition("t", 0, 2)], asynchronous=False)
        assert consumer.committed(offsets, timeout=10)[0].offset == 1
        consumer.commit(offsets=[TopicPartition("t", 0, 3)], asynchronous=False)
        assert consumer.committed(offsets, timeout=10)[0].offset == 3
    finally:
        consumer.close()


def test_a_restart_undoes_faults_and_the_same_object_sets_new_ones(kafka: EphemeralBroker, faults: Faults) -> None:
    faults.fail("Produce", "INVALID_REQUEST", times=None)
    faults.fill_disk()
    kafka.restart()
    with connect("127.0.0.1", kafka.port) as client:
        assert send_values(client, "t", b"x") == 0
    faults.fail("Produce", "INVALID_REQUEST")
    assert send(kafka) is not None


def test_a_fault_that_nobody_meets_says_so(faults: Faults) -> None:
    fault = faults.fail("DeleteGroups", "GROUP_ID_NOT_FOUND")
    with pytest.raises(TimeoutError, match=r"0 of 1 requests met the fault .*; see whether the client sends"):
        faults.wait_for(fault, timeout=0.05)
    faults.cancel(fault)
    assert not faults.pending
