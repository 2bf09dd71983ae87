"""A network that is slow, cuts and goes silent: time-outs as the options promise, and nothing lost or doubled."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import pytest

from penstock import Consumer, Producer, TopicPartition
from penstock.client.errors import BufferFull, KafkaTimeout
from tests.clients.checker import GroupLedger, Readers, Writers, check_log, wait_until
from tests.clients.faulty_proxy import FaultyProxy
from tests.clients.producer_support import read_all
from tests.clients.support import TopicMaker
from tests.support.brokers import Broker

WAIT_S = 60.0
NOT_A_HANG_S = 25.0
"""Below the time-outs that the tests leave as they are; a busy machine has its time."""


class Behind(NamedTuple):
    """A broker that clients reach through the proxy only, as that is what it advertises."""

    proxy: FaultyProxy
    bootstrap: str


@pytest.fixture(scope="module")
def behind_by_kind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Behind]]:
    from tests.clients.conftest import KINDS

    made: dict[str, tuple[Broker, Behind]] = {}

    def get(kind: str) -> Behind:
        if kind not in made:
            proxy = FaultyProxy()
            advertised = {"advertised.listeners": f"PLAINTEXT://{proxy.bootstrap}"}
            broker = KINDS[kind](tmp_path_factory.mktemp(f"behind-{kind}"), advertised)
            proxy.broker_port = broker.port
            made[kind] = broker, Behind(proxy, proxy.bootstrap)
            broker.start()
        return made[kind][1]

    yield get
    for broker, behind in made.values():
        broker.kill()
        behind.proxy.close()


@pytest.fixture
def behind(cluster_kind: str, behind_by_kind: Callable[[str], Behind]) -> Iterator[Behind]:
    found = behind_by_kind(cluster_kind)
    yield found
    found.proxy.heal()
    found.proxy.cut()


@pytest.fixture
def topic(behind: Behind, request: pytest.FixtureRequest) -> str:
    return TopicMaker(behind.bootstrap, request.node.name)(partitions=2)


@contextmanager
def took(least_s: float) -> Iterator[None]:
    """At least so long, as a time-out says, and not until some longer one."""
    started = time.monotonic()
    yield
    seconds = time.monotonic() - started
    assert least_s <= seconds <= NOT_A_HANG_S, f"took {seconds:.2f} s"


def producing(behind: Behind, **options: Any) -> Producer:
    return Producer(bootstrap_servers=behind.bootstrap, **{"linger_ms": 0, "reconnect_backoff_ms": 20, **options})


def reading(behind: Behind, topic: str, **options: Any) -> Consumer:
    consumer = Consumer(
        bootstrap_servers=behind.bootstrap, auto_offset_reset="earliest", group_id=topic, enable_auto_commit=False,
        **{"reconnect_backoff_ms": 20, **options},
    )  # fmt: skip
    consumer.assign([TopicPartition(topic, 0)])
    return consumer


def values(behind: Behind, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(behind.bootstrap, topic, 2)]


# Producers.


def test_a_silent_connection_is_left_after_the_request_time_out(behind: Behind, topic: str) -> None:
    with producing(behind, request_timeout_ms=1_000) as producer:
        producer.send(topic, b"0", partition=0).result(WAIT_S)
        behind.proxy.silence()
        with took(0.9):
            producer.send(topic, b"1", partition=0).result(WAIT_S)
    assert values(behind, topic) == [b"0", b"1"]


def test_a_silent_broker_fails_records_after_the_delivery_time_out(behind: Behind, topic: str) -> None:
    with producing(behind, request_timeout_ms=1_000, delivery_timeout_ms=3_000) as producer:
        producer.send(topic, b"0", partition=0).result(WAIT_S)
        behind.proxy.silence(new=True)
        with took(2.9), pytest.raises(KafkaTimeout, match=r"delivery\.timeout\.ms"):
            producer.send(topic, b"1", partition=0).result(WAIT_S)
        behind.proxy.heal()
        producer.send(topic, b"2", partition=0).result(WAIT_S)
    assert values(behind, topic) == [b"0", b"2"]


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_record_whose_answer_was_lost_is_there_once(behind: Behind, topic: str, idempotent: bool) -> None:
    """Without idempotence it is there twice, which shows that the proxy does what the other tests rely on."""
    with producing(behind, request_timeout_ms=2_000, enable_idempotence=idempotent) as producer:
        producer.send(topic, b"0", partition=0).result(WAIT_S)
        behind.proxy.lose_answers()
        producer.send(topic, b"1", partition=0).result(WAIT_S)
        producer.send(topic, b"2", partition=0).result(WAIT_S)
    found = values(behind, topic)
    assert list(dict.fromkeys(found)) == [b"0", b"1", b"2"]
    assert found.count(b"1") == 1 if idempotent else found.count(b"1") >= 2


def test_a_slow_broker_is_waited_for(behind: Behind, topic: str) -> None:
    with producing(behind, linger_ms=5) as producer:
        producer.send(topic, b"first", partition=0).result(WAIT_S)
        behind.proxy.delay_s = 0.1
        with took(0.2):
            for delivery in [producer.send(topic, b"%d" % number, partition=0) for number in range(500)]:
                delivery.result(WAIT_S)
    assert values(behind, topic)[1:] == [b"%d" % number for number in range(500)]


def test_a_silent_address_ends_send_flush_and_close_in_time(behind: Behind, topic: str) -> None:
    behind.proxy.silence(new=True)
    producer = producing(behind, max_block_ms=1_000, request_timeout_ms=500, delivery_timeout_ms=60_000)
    with took(0.9), pytest.raises(KafkaTimeout):
        producer.send(topic, b"")
    with took(0):
        producer.close(1)


def test_flush_and_close_keep_their_time_outs(behind: Behind, topic: str) -> None:
    producer = producing(behind)
    producer.send(topic, b"0").result(WAIT_S)
    behind.proxy.silence(new=True)
    delivery = producer.send(topic, b"1")
    with took(0.4), pytest.raises(KafkaTimeout):
        producer.flush(0.5)
    with took(0.4):
        producer.close(0.5)
    assert delivery.exception(1) is not None


def _fill(producer: Producer, topic: str) -> None:
    for _ in range(200):
        producer.send(topic, bytes(1_000))


def test_a_full_buffer_behind_a_silent_broker(behind: Behind, topic: str) -> None:
    producer = producing(behind, buffer_memory=100_000, batch_size=10_000, max_block_ms=3_000, linger_ms=5)
    producer.send(topic, b"0").result(WAIT_S)
    behind.proxy.silence(new=True)
    with took(2.9), pytest.raises(BufferFull):
        _fill(producer, topic)
    with took(0):
        producer.close(0)


# Consumers.


def test_a_consumer_leaves_a_silent_connection(behind: Behind, topic: str) -> None:
    with producing(behind) as producer:
        producer.send(topic, b"0", partition=0).result(WAIT_S)
        with reading(behind, topic, request_timeout_ms=1_500) as consumer:
            wait_until(lambda: [each.value for each in consumer.poll(200)] == [b"0"], WAIT_S, "the first record")
            behind.proxy.silence()
            producer.close(0)
            with producing(behind) as other:
                other.send(topic, b"1", partition=0).result(WAIT_S)
            with took(0):
                wait_until(lambda: [each.value for each in consumer.poll(200)] == [b"1"], WAIT_S, "the second record")


def test_calls_of_a_consumer_keep_their_time_outs(behind: Behind, topic: str) -> None:
    consumer = reading(behind, topic)
    tp = TopicPartition(topic, 0)
    consumer.commit({tp: 0})
    consumer.poll(200)
    behind.proxy.silence(new=True)
    with took(0.2):
        assert not consumer.poll(300)
    for call in (
        lambda: consumer.commit({tp: 0}, timeout_ms=500),
        lambda: consumer.committed([tp], timeout_ms=500),
        lambda: consumer.end_offsets([tp], timeout_ms=500),
        lambda: consumer.offsets_for_times({tp: 0}, timeout_ms=500),
        lambda: consumer.list_topics(timeout_ms=500),
    ):
        with took(0.4), pytest.raises(KafkaTimeout):
            call()
    with took(0):
        consumer.close(1_000)


def test_a_member_of_a_group_polls_and_closes_in_time(behind: Behind, topic: str) -> None:
    consumer = Consumer(bootstrap_servers=behind.bootstrap, group_id=f"{topic}-silent", auto_offset_reset="earliest")
    consumer.subscribe([topic])
    wait_until(lambda: consumer.poll(100) is not None and bool(consumer.assignment()), WAIT_S, "an assignment")
    behind.proxy.silence(new=True)
    with took(0.2):
        assert not consumer.poll(300)
    with took(0):
        consumer.close(1_000)


# Load.


def test_cuts_and_silence_under_load(behind: Behind, topic: str) -> None:
    ledger = GroupLedger()
    readers = Readers(
        behind.bootstrap, topic, ledger, request_timeout_ms=2_000, session_timeout_ms=10_000, heartbeat_interval_ms=500,
        reconnect_backoff_ms=20,
    )  # fmt: skip
    with producing(behind, linger_ms=2, batch_size=2_000, request_timeout_ms=1_000) as producer:
        writers = Writers(producer, topic, per_round=5)
        readers.start()
        writers.start()
        pause = threading.Event()
        for number in range(12):
            pause.wait(0.25)
            behind.proxy.silence() if number % 4 == 3 else behind.proxy.cut()
        writers.stop()
    assert not writers.errors, writers.errors[:3]
    records = read_all(behind.bootstrap, topic, 2)
    verdict = check_log(writers.written, ((each.key or b"", int(each.value or b"-1")) for each in records))
    assert verdict.is_clean, verdict
    ends = {TopicPartition(topic, number): sum(each.partition == number for each in records) for number in range(2)}
    wait_until(lambda: not ledger.missing(ends) or bool(readers.errors), WAIT_S, "the group read it all")
    readers.stop()
    assert not readers.errors, readers.errors[:3]
    assert not ledger.faults, ledger.faults[:5]
