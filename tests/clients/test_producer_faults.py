"""The producer when things go wrong: nothing lost, doubled or reordered; no hang; errors that say what to do."""

from __future__ import annotations

import operator
import os
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.client.errors import (
    BufferFull,
    ClientClosed,
    ClusterAuthorizationFailed,
    ForkedClient,
    KafkaTimeout,
    TopicAuthorizationFailed,
)
from penstock.client.producer.blocking import Producer
from penstock.protocol.messages.produce import LeaderIdAndEpoch, PartitionProduceResponse
from tests.clients.checker import wait_until
from tests.clients.producer_support import ScriptedBroker, read_all
from tests.clients.support import TopicMaker
from tests.support.brokers import Broker

WAIT_S = 60.0

Script = Callable[..., ScriptedBroker]


@pytest.fixture
def scripted() -> Iterator[Script]:
    made: list[ScriptedBroker] = []

    def make(on_produce: Any, nodes: int = 1) -> ScriptedBroker:
        made.append(ScriptedBroker(on_produce, nodes))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


def written(_: ScriptedBroker, request: Any, index: int) -> PartitionProduceResponse:
    return PartitionProduceResponse(index=0, base_offset=index)


def quick(broker: ScriptedBroker, **options: Any) -> Producer:
    values = {"linger_ms": 0, "retry_backoff_ms": 10, "reconnect_backoff_ms": 10} | options
    return Producer(bootstrap_servers=broker.bootstrap, **values)


# Real brokers.


def wait_for_more(counts: list[int]) -> None:
    """Until more records of each partition were handed over."""
    goals = [count + 1_000 for count in counts]
    time.sleep(0.3)
    wait_until(lambda: all(map(operator.ge, counts, goals)), WAIT_S, "the load goes on")


@pytest.mark.parametrize("how", ["kill", "stop"])
def test_nothing_is_lost_doubled_or_reordered_when_the_broker_restarts(restartable: Broker, how: str) -> None:
    topic = TopicMaker(restartable.bootstrap, "restart")(partitions=2)
    counts = [0, 0]
    failures: list[Any] = []
    stop = threading.Event()

    def load(partition: int) -> None:
        while not stop.is_set():
            for _ in range(50):
                producer.send(
                    topic, b"%d" % counts[partition], partition=partition,
                    on_delivery=lambda _, error: failures.append(error) if error else None,
                )  # fmt: skip
                counts[partition] += 1
            time.sleep(0.002)

    with Producer(bootstrap_servers=restartable.bootstrap, linger_ms=1, batch_size=1000) as producer:
        threads = [threading.Thread(target=load, args=(partition,)) for partition in range(2)]
        for thread in threads:
            thread.start()
        wait_for_more(counts)
        getattr(restartable, how)()
        restartable.start()
        wait_for_more(counts)
        stop.set()
        for thread in threads:
            thread.join(WAIT_S)
        producer.flush(WAIT_S)
        closed = producer.metrics()["connection-close-total"]
    assert not failures
    for partition in range(2):
        values = [each.value for each in read_all(restartable.bootstrap, topic, 2) if each.partition == partition]
        assert values == [b"%d" % i for i in range(counts[partition])]
    assert closed > 0, "the load went on while the broker was away"


def test_a_broker_that_is_gone_fails_records_in_time(restartable: Broker) -> None:
    topic = TopicMaker(restartable.bootstrap, "gone")()
    options = {"delivery_timeout_ms": 3_000, "request_timeout_ms": 1_500, "linger_ms": 0}
    with Producer(bootstrap_servers=restartable.bootstrap, **options) as producer:  # type: ignore[arg-type]
        producer.send(topic, b"").result(WAIT_S)
        restartable.kill()
        started = time.monotonic()
        with pytest.raises(KafkaTimeout, match=r"delivery\.timeout\.ms"):
            producer.send(topic, b"").result(WAIT_S)
        assert time.monotonic() - started < 30


def test_a_forked_child_is_told(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(name, b"parent").result(WAIT_S)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                producer.send(name, b"child", b"key")
                text = "no error"
            except ForkedClient as error:
                text = str(error)
            except BaseException as error:  # noqa: BLE001 - told to the parent
                text = repr(error)
            os.write(writing, text.encode())
            os._exit(0)
        os.waitpid(child, 0)
        assert b"make a new client" in os.read(reading, 10_000)
        os.close(reading)
        os.close(writing)
        assert producer.send(name, b"parent").result(WAIT_S).offset == 1


# Addresses.


def test_a_wrong_address_is_an_error_in_time() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    with Producer(bootstrap_servers=f"127.0.0.1:{port}", max_block_ms=300) as producer:
        started = time.monotonic()
        with pytest.raises(KafkaTimeout, match=str(port)):
            producer.send("t", b"")
        assert time.monotonic() - started < 30


def test_an_address_that_never_answers_is_an_error_in_time() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        Producer(bootstrap_servers=f"127.0.0.1:{silent.getsockname()[1]}", max_block_ms=300) as producer,
        pytest.raises(KafkaTimeout),
    ):
        producer.send("t", b"")


# A broker by script.


def _fill(producer: Producer, topic: str) -> None:
    for _ in range(1_000):
        producer.send(topic, b"x" * 100)


def test_a_full_buffer_blocks_and_then_says_so(scripted: Script) -> None:
    broker = scripted(lambda *_: None)
    with quick(broker, buffer_memory=20_000, batch_size=5_000, max_block_ms=200) as producer:
        with pytest.raises(BufferFull, match=r"buffer\.memory=20000"):
            _fill(producer, broker.topic)
        with pytest.raises(BufferFull):
            producer.send_many(broker.topic, [b"x" * 100] * 1_000)
        producer.close(timeout=0)


def test_a_slow_broker_lets_the_sender_go_on_when_memory_is_free(scripted: Script) -> None:
    def slow(broker: ScriptedBroker, request: Any, index: int) -> PartitionProduceResponse:
        time.sleep(0.01)
        return written(broker, request, index)

    broker = scripted(slow)
    with quick(broker, buffer_memory=10_000, batch_size=1_000) as producer:
        deliveries = [producer.send(broker.topic, b"x" * 100) for _ in range(300)]
        producer.flush(WAIT_S)
        assert all(delivery.exception() is None for delivery in deliveries)
        assert producer.metrics()["buffer-available-bytes"] == 10_000


def test_a_half_open_broker_is_left_and_the_batch_sent_again(scripted: Script) -> None:
    broker = scripted(lambda broker, request, index: None if index == 0 else written(broker, request, index))
    with quick(broker, request_timeout_ms=300, delivery_timeout_ms=30_000) as producer:
        assert producer.send(broker.topic, b"v").result(WAIT_S).offset == 1
    first, second = (request.topic_data[0].partition_data[0].records for _, request in broker.produced)
    assert bytes(first) == bytes(second), "the same batch with the same sequence"


def test_close_with_a_time_out_gives_up_what_is_left(scripted: Script) -> None:
    broker = scripted(lambda *_: None)
    producer = quick(broker)
    failed: list[Any] = []
    delivery = producer.send(broker.topic, b"v", on_delivery=lambda _, error: failed.append(error))
    started = time.monotonic()
    producer.close(timeout=0.2)
    assert time.monotonic() - started < 20
    with pytest.raises(ClientClosed, match="closed before"):
        delivery.result(0)
    assert isinstance(failed[0], ClientClosed)


def test_a_thread_that_waits_for_memory_is_freed_by_close(scripted: Script) -> None:
    broker = scripted(lambda *_: None)
    producer = quick(broker, buffer_memory=5_000, batch_size=5_000)
    raised: list[BaseException] = []

    def fill() -> None:
        try:
            while True:
                producer.send(broker.topic, b"x" * 1_000)
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            raised.append(error)

    thread = threading.Thread(target=fill)
    thread.start()
    while not producer.metrics()["waiting-threads"]:
        time.sleep(0.01)
    producer.close(timeout=0)
    thread.join(60)
    assert isinstance(raised[0], ClientClosed)


def test_a_new_leader_is_followed(scripted: Script) -> None:
    def moved(broker: ScriptedBroker, request: Any, index: int) -> PartitionProduceResponse:
        if index == 0:
            broker.leader, broker.leader_epoch = 1, 2
            return PartitionProduceResponse(
                index=0,
                error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
                current_leader=LeaderIdAndEpoch(leader_id=1, leader_epoch=2),
            )
        return written(broker, request, index)

    broker = scripted(moved, nodes=2)
    with quick(broker, retry_backoff_ms=50_000, retry_backoff_max_ms=50_000) as producer:
        started = time.monotonic()
        assert producer.send(broker.topic, b"v").result(WAIT_S).offset == 1
        assert time.monotonic() - started < 30, "a newer leader is tried without the pause (KIP-951)"
    assert [node for node, _ in broker.produced] == [0, 1]


def test_retries_keep_the_order_of_sequences(scripted: Script) -> None:
    """Every third request is refused: what is accepted has consecutive sequences all the same."""
    state = {"next": 0}
    accepted: list[int] = []

    def strict(broker: ScriptedBroker, request: Any, index: int) -> PartitionProduceResponse:
        batch = bytes(request.topic_data[0].partition_data[0].records)
        sequence = int.from_bytes(batch[53:57], "big")
        count = int.from_bytes(batch[57:61], "big")
        if sequence != state["next"]:
            return PartitionProduceResponse(index=0, error_code=ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER)
        if index % 3 == 2:
            return PartitionProduceResponse(index=0, error_code=ErrorCode.NOT_ENOUGH_REPLICAS)
        state["next"] += count
        accepted.append(sequence)
        return PartitionProduceResponse(index=0, base_offset=sequence)

    broker = scripted(strict)
    with quick(broker, batch_size=300) as producer:
        deliveries = [producer.send(broker.topic, b"x" * 50) for _ in range(120)]
        producer.flush(WAIT_S)
        assert [delivery.result().offset for delivery in deliveries] == list(range(120))
    assert accepted == sorted(accepted)


def test_a_batch_with_a_bad_checksum_or_no_right_is_failed_with_its_error(scripted: Script) -> None:
    codes = [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED]

    def refuse(broker: ScriptedBroker, request: Any, index: int) -> PartitionProduceResponse:
        return PartitionProduceResponse(index=0, error_code=codes[index]) if index < 2 else written(broker, request, 2)

    broker = scripted(refuse)
    with quick(broker) as producer:
        with pytest.raises(TopicAuthorizationFailed, match="scripted-0"):
            producer.send(broker.topic, b"v").result(WAIT_S)
        with pytest.raises(ClusterAuthorizationFailed):
            producer.send(broker.topic, b"v").result(WAIT_S)
        assert producer.send(broker.topic, b"v").result(WAIT_S).offset == 2
    epochs = [
        int.from_bytes(bytes(r.topic_data[0].partition_data[0].records)[51:53], "big") for _, r in broker.produced
    ]
    assert epochs == [0, 1, 2], "a batch that is surely not written costs an epoch"


def test_a_duplicate_counts_as_written(scripted: Script) -> None:
    broker = scripted(lambda *_: PartitionProduceResponse(index=0, error_code=ErrorCode.DUPLICATE_SEQUENCE_NUMBER))
    with quick(broker) as producer:
        assert producer.send(broker.topic, b"v").result(WAIT_S).offset == -1


def test_a_connection_cut_in_the_middle_is_made_again(scripted: Script) -> None:
    def cut(broker: ScriptedBroker, request: Any, index: int) -> PartitionProduceResponse | None:
        if index == 0:
            for each in broker._sockets:
                each.shutdown(socket.SHUT_RDWR)
            return None
        return written(broker, request, index)

    broker = scripted(cut)
    with quick(broker) as producer:
        assert producer.send(broker.topic, b"v").result(WAIT_S).offset == 1
