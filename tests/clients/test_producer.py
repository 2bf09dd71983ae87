"""The producer against both brokers: what is sent is what another client reads."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
import json
import threading
from collections import Counter, defaultdict
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest

from penstock.base.config.declaration import ConfigErrors
from penstock.client.core.types import ClusterSnapshot, RecordMetadata
from penstock.client.errors import (
    ClientClosed,
    ClientError,
    InvalidState,
    KafkaTimeout,
    RecordTooLarge,
    SerializationError,
    UnknownTopicOrPartition,
)
from penstock.client.producer.blocking import Producer
from penstock.client.producer.interceptors import ProducerInterceptor
from penstock.client.producer.producer import AsyncProducer
from penstock.client.producer.record import ProducerRecord
from penstock.records.kernel import partition_for_key
from tests.clients.producer_support import read_all
from tests.clients.support import TopicMaker

WAIT_S = 60.0


def test_a_record_with_everything(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    with Producer(bootstrap_servers=bootstrap) as producer:
        delivery = producer.send(
            name,
            b"value",
            b"key",
            partition=1,
            timestamp_ms=1_700_000_000_000,
            headers={"a": b"1", "b": None, "c": "x"},
        )
        metadata = delivery.result(WAIT_S)
    assert metadata == RecordMetadata(name, 1, 0, 1_700_000_000_000, 0, 3, 5)
    assert delivery.done()
    (seen,) = read_all(bootstrap, name, 2)
    assert (seen.key, seen.value, seen.timestamp) == (b"key", b"value", 1_700_000_000_000)
    assert seen.headers == (("a", b"1"), ("b", None), ("c", b"x"))


def test_order_and_offsets_of_many_records(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=3)
    with Producer(bootstrap_servers=bootstrap, linger_ms=1) as producer:
        deliveries = [producer.send(name, b"%d" % i, b"key %d" % (i % 17)) for i in range(5_000)]
        producer.flush(WAIT_S)
        assert all(delivery.done() for delivery in deliveries)
        written = {(d.partition, d.result().offset): b"%d" % i for i, d in enumerate(deliveries)}
    seen = read_all(bootstrap, name, 3)
    assert {(each.partition, each.offset): each.value for each in seen} == written
    by_key: defaultdict[Any, list[int]] = defaultdict(list)
    for each in seen:
        assert each.value is not None
        by_key[each.key].append(int(each.value))
        assert each.partition == partition_for_key(each.key or b"", 3)
    assert all(numbers == sorted(numbers) for numbers in by_key.values())


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_codecs(bootstrap: str, topic: TopicMaker, codec: str) -> None:
    name = topic()
    with Producer(bootstrap_servers=bootstrap, compression_type=codec) as producer:
        for i in range(500):
            producer.send(name, b"all the same %d" % (i % 3))
        producer.flush(WAIT_S)
        rate = producer.metrics()["compression-rate-avg"]
    assert [each.value for each in read_all(bootstrap, name)] == [b"all the same %d" % (i % 3) for i in range(500)]
    assert rate == 1.0 if codec == "none" else rate < 0.5


@pytest.mark.parametrize(
    "options",
    [{"acks": "0"}, {"acks": "1"}, {"enable_idempotence": False}, {"max_in_flight_requests_per_connection": 1}],
    ids=str,
)
def test_acknowledgements(bootstrap: str, topic: TopicMaker, options: dict[str, Any]) -> None:
    name = topic()
    with Producer({"bootstrap.servers": bootstrap} | {k.replace("_", "."): v for k, v in options.items()}) as producer:
        deliveries = [producer.send(name, b"%d" % i) for i in range(300)]
        producer.flush(WAIT_S)
        offsets = [delivery.result(WAIT_S).offset for delivery in deliveries]
    assert offsets == ([-1] * 300 if options.get("acks") == "0" else list(range(300)))
    assert [each.value for each in read_all(bootstrap, name)] == [b"%d" % i for i in range(300)]


@pytest.mark.parametrize("way", ["sticky", "round_robin", "random"])
def test_keyless_records_reach_all_partitions(bootstrap: str, topic: TopicMaker, way: str) -> None:
    name = topic(partitions=4)
    options = {"bootstrap.servers": bootstrap, "penstock.partitioner.keyless": way, "batch.size": 1000}
    with Producer(options) as producer:
        deliveries = [producer.send(name, b"x" * 50) for _ in range(2_000)]
        producer.flush(WAIT_S)
    counts = Counter(delivery.result().partition for delivery in deliveries)
    assert set(counts) == {0, 1, 2, 3}
    runs = sum(a.partition != b.partition for a, b in itertools.pairwise(deliveries))
    assert (runs < 400) == (way == "sticky"), "sticky stays with a partition for about a batch"


def test_own_partitioner_serializers_and_a_record_object(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=3)
    asked: list[Any] = []

    def partitioner(topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, view: ClusterSnapshot) -> int:
        asked.append((topic, key, key_bytes, value, value_bytes, view.partition_count(topic)))
        return 2

    with Producer(
        bootstrap_servers=bootstrap, partitioner=partitioner, key_serializer="string", value_serializer="json"
    ) as producer:
        record = ProducerRecord(topic=name, key="k", value={"a": 1}, headers=[("h", b"v")])
        assert producer.send(record).result(WAIT_S).partition == 2
    assert asked == [(name, "k", b"k", {"a": 1}, asked[0][4], 3)]
    (seen,) = read_all(bootstrap, name, 3)
    assert seen.headers == (("h", b"v"),)


def test_text_is_taken_and_other_things_are_refused(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert producer.send(name, "text", "key").result(WAIT_S).serialized_value_size == 4
        with pytest.raises(SerializationError):
            producer.send(name, object())
        with pytest.raises(TypeError, match="header"):
            producer.send(name, b"", headers={"a": 5})  # type: ignore[arg-type]
        assert producer.send(name, b"more").result(WAIT_S).offset == 1


def test_interceptors_see_records_and_outcomes(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    seen: list[Any] = []

    class Stamp(ProducerInterceptor):
        def configure(self, config: Any) -> None:
            seen.append(config["linger.ms"])

        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            return dataclasses.replace(record, value=record.value + b"!", headers={"stamped": b"yes"})

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            seen.append(("ack", metadata.offset, type(error).__name__))

        def close(self) -> None:
            seen.append("closed")

    class Bad(ProducerInterceptor):
        def on_send(self, record: ProducerRecord) -> ProducerRecord:
            raise ValueError("on_send")

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            raise ValueError("on_acknowledgement")

    with Producer(bootstrap_servers=bootstrap, interceptor_classes=[Bad(), Stamp], max_request_size=5000) as producer:
        called = threading.Event()

        def user(*_: object) -> None:
            seen.append("user")
            called.set()

        producer.send(name, b"one", on_delivery=user)
        assert called.wait(WAIT_S)
        with pytest.raises(RecordTooLarge):
            producer.send(name, b"x" * 6000)
        producer.send_many(name, [b"two", b"three"])
    assert seen == [
        "5", ("ack", 0, "NoneType"), "user", ("ack", -1, "RecordTooLarge"), ("ack", 1, "NoneType"),
        ("ack", 2, "NoneType"), "closed",
    ]  # fmt: skip
    assert [each.value for each in read_all(bootstrap, name)] == [b"one!", b"two!", b"three!"]


def test_many_threads_send_at_once(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for i in range(1_000):
                producer.send(name, b"%d" % i, b"thread %d" % number)
        except BaseException as error:  # noqa: BLE001 - shown by the test's own thread
            errors.append(error)

    with Producer(bootstrap_servers=bootstrap, batch_size=2000, buffer_memory=40_000) as producer:
        threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        producer.flush(WAIT_S)
        assert producer.metrics()["buffer-available-bytes"] == 40_000
    assert not errors
    by_key: defaultdict[Any, list[bytes | None]] = defaultdict(list)
    for each in read_all(bootstrap, name, 2):
        by_key[each.key].append(each.value)
    assert len(by_key) == 8
    assert all(values == [b"%d" % i for i in range(1_000)] for values in by_key.values())


def test_send_many_of_every_kind(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=3)
    with Producer(bootstrap_servers=bootstrap) as producer:
        plain = producer.send_many(name, (b"%d" % i for i in range(1_000)), partition=1)
        keyed = producer.send_many(name, [(b"k%d" % (i % 5), b"%d" % i) for i in range(1_000)])
        full = producer.send_many(
            name,
            [
                ProducerRecord(topic=name, value="v", partition=2, timestamp_ms=5, headers={"h": b""}),
                "text",
                ("k", "v"),
            ],
        )
        assert producer.send_many(name, []) == []
        producer.flush(WAIT_S)
        assert sum(each.count for each in plain) == 1_000
        assert sum(each.result().count for each in keyed) == 1_000
        assert sum(each.result().count for each in full) == 3
        with pytest.raises(TypeError, match="send\\(\\)"):
            producer.send_many(name, b"one")
        with pytest.raises(ValueError, match="elsewhere"):
            producer.send_many(name, [ProducerRecord(topic="elsewhere")])
    seen = read_all(bootstrap, name, 3)
    assert len(seen) == 2_003
    assert [each.value for each in seen if each.partition == 1][:1_000] == [b"%d" % i for i in range(1_000)]
    for key in range(5):
        values = [each.value for each in seen if each.key == b"k%d" % key]
        assert values == [b"%d" % i for i in range(1_000) if i % 5 == key]


def test_send_many_of_arrow(bootstrap: str, topic: TopicMaker) -> None:
    pa = pytest.importorskip("pyarrow")
    name = topic(partitions=3)
    table = pa.table(
        {
            "key": pa.array([None if i % 4 == 0 else f"k{i % 7}" for i in range(5_000)]),
            "value": pa.array([b"%d" % i for i in range(5_000)], pa.large_binary()),
            "timestamp": pa.array(range(5_000), pa.timestamp("ms")),
            "headers": pa.array(
                [[{"key": "h", "value": b"1"}] if i % 2 else None for i in range(5_000)],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )
    with Producer(bootstrap_servers=bootstrap) as producer:
        deliveries = producer.send_many(name, table)
        deliveries += producer.send_many(name, pa.record_batch({"value": ["a", "b"], "partition": [2, 2]}))
        assert sum(each.result(WAIT_S).count for each in deliveries) == 5_002
        with pytest.raises(ValueError, match="colour"):
            producer.send_many(name, pa.table({"colour": ["red"]}))
    seen = {each.value: each for each in read_all(bootstrap, name, 3)}
    assert len(seen) == 5_002
    assert seen[b"a"].partition == 2
    odd, third = seen[b"4001"], seen[b"4000"]
    assert (odd.key, odd.timestamp, odd.headers) == (b"k4", 4001, (("h", b"1"),))
    assert (third.key, third.headers, odd.partition) == (None, (), partition_for_key(b"k4", 3))


def test_send_many_of_a_frame_takes_its_columns(bootstrap: str, topic: TopicMaker) -> None:
    pd = pytest.importorskip("pandas", minversion="2.2")
    pa = pytest.importorskip("pyarrow")
    name = topic()
    with Producer(bootstrap_servers=bootstrap) as producer:
        producer.send_many(name, pd.DataFrame({"key": ["a", "b"], "value": ["x", None]}))
        producer.send_many(name, pa.table({"value": ["y"]}).to_reader())
        for column in (pa.array(["v"]), pa.chunked_array([["v"]])):
            with pytest.raises(TypeError, match="a column alone"):
                producer.send_many(name, column)
    assert [(each.key, each.value) for each in read_all(bootstrap, name)] == [(b"a", b"x"), (b"b", None), (None, b"y")]


def test_send_many_that_fails_half_way_gives_the_deliveries_so_far(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()

    def failing() -> Any:
        yield from (b"%d" % i for i in range(25_000))
        raise ZeroDivisionError

    with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(ZeroDivisionError) as caught:
            producer.send_many(name, failing())
        handed_over = caught.value.deliveries  # type: ignore[attr-defined]
        assert sum(each.result(WAIT_S).count for each in handed_over) == 20_000
    assert len(read_all(bootstrap, name)) == 20_000


def test_a_bad_record_does_not_hold_up_those_behind_it(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with (
        Producer(bootstrap_servers=bootstrap, value_serializer=json.dumps) as producer,
        pytest.raises(SerializationError, match="serializer dumps returned str"),
    ):
        producer.send(name, {"a": 1})
    with Producer(bootstrap_servers=bootstrap) as producer:
        with pytest.raises(TypeError, match="timestamp_ms"):
            producer.send(name, b"bad", timestamp_ms=datetime.now())  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="on_delivery"):
            producer.send(name, b"bad", on_delivery="x")  # type: ignore[arg-type]
        assert producer.send(name, b"good").result(WAIT_S).offset == 0


def test_interceptors_are_checked_with_the_rest_of_the_configuration() -> None:
    for specs in ([5], "nosuch.X"):
        with pytest.raises(ConfigErrors, match=r"interceptor\.classes"):
            Producer(bootstrap_servers="localhost:1", interceptor_classes=specs)


def test_record_too_large_for_the_client_and_for_the_topic(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(config={"max.message.bytes": "2000"})
    with Producer(bootstrap_servers=bootstrap, max_request_size=10_000, linger_ms=50) as producer:
        with pytest.raises(RecordTooLarge, match=r"max\.request\.size"):
            producer.send(name, b"x" * 10_001)
        with pytest.raises(RecordTooLarge, match=r"max\.message\.bytes"):
            producer.send(name, b"x" * 3_000).result(WAIT_S)
        # Batches above the topic's limit are split until they fit, and the others get through.
        deliveries = [producer.send(name, b"%03d" % i + b"x" * 100) for i in range(100)]
        producer.flush(WAIT_S)
        assert [delivery.result().offset for delivery in deliveries] == list(range(100))
        assert producer.metrics()["batch-split-total"] > 0
    assert [each.value[:3] for each in read_all(bootstrap, name) if each.value] == [b"%03d" % i for i in range(100)]


def test_callbacks_run_in_the_io_thread_and_may_send(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    threads: list[Any] = []
    done = threading.Event()
    with Producer(bootstrap_servers=bootstrap) as producer:

        def bad(metadata: Any, error: Any) -> None:
            threads.append(threading.current_thread())
            raise ValueError("a user's mistake")

        def blocking(metadata: Any, error: Any) -> None:
            try:
                producer.flush()
            except InvalidState as refused:
                threads.append(refused)
            threads.append(producer.send(name, b"from the callback"))
            done.set()

        producer.send(name, b"1", on_delivery=bad)
        producer.send(name, b"2", on_delivery=blocking)
        assert done.wait(WAIT_S)
        assert threads[2].result(WAIT_S).offset == 2
    assert threads[0] is not threading.current_thread()
    assert isinstance(threads[1], InvalidState)


def test_a_failing_partitioner_and_a_missing_partition(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()

    def bad(*_: object) -> int:
        raise ZeroDivisionError("partitioner")

    with (
        Producer(bootstrap_servers=bootstrap, partitioner=bad) as producer,
        pytest.raises(ClientError, match="partitioner failed"),
    ):
        producer.send(name, b"")
    with Producer(bootstrap_servers=bootstrap, max_block_ms=300) as producer:
        with pytest.raises(KafkaTimeout, match="no partition 7"):
            producer.send(name, b"", partition=7)
        with pytest.raises(ValueError, match="from 0 on"):
            producer.send(name, b"", partition=-1)


def test_new_partitions_are_found(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    with Producer(bootstrap_servers=bootstrap) as producer:
        assert producer.send(name, b"").result(WAIT_S).partition == 0
        topic.grow(name, 2)
        assert producer.send(name, b"", partition=1).result(WAIT_S).partition == 1
        assert [each.partition for each in producer.partitions_for(name)] == [0, 1]


def test_unknown_topic(start_cluster: Callable[..., Any]) -> None:
    broker = start_cluster(auto_create_topics_enable="false")
    with Producer(bootstrap_servers=broker.bootstrap, max_block_ms=500) as producer:
        with pytest.raises((UnknownTopicOrPartition, KafkaTimeout), match="nowhere"):
            producer.send("nowhere", b"")
        with pytest.raises(ClientError, match="not a name"):
            producer.send("not a name", b"")


def test_use_after_close(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    producer = Producer(bootstrap_servers=bootstrap)
    delivery = producer.send(name, b"kept")
    producer.close()
    assert delivery.result(0).offset == 0, "close sends what waits"
    producer.close()
    with pytest.raises(ClientClosed):
        producer.__enter__()
    for use in (lambda: producer.send(name, b""), lambda: producer.send_many(name, [b""]), producer.flush):
        with pytest.raises(ClientClosed):
            use()


def test_transaction_methods_need_an_id(bootstrap: str) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer, pytest.raises(InvalidState, match=r"transactional\.id"):
        producer.begin_transaction()


async def test_asyncio_face(bootstrap: str, topic: TopicMaker) -> None:
    name = await asyncio.to_thread(topic, 2)
    async with AsyncProducer(bootstrap_servers=bootstrap, batch_size=500, buffer_memory=2_000) as producer:
        deliveries = await asyncio.gather(*(producer.send(name, b"%d" % i, partition=0) for i in range(500)))
        assert [(await delivery).offset for delivery in deliveries] == list(range(500))
        many = await producer.send_many(name, [b"a", b"b"], partition=1)
        assert (await many[0]).count == 2
        with pytest.raises(InvalidState, match="await"):
            (await producer.send(name, b"")).result()
        await producer.flush(WAIT_S)
        assert producer.metrics()["record-send-total"] == 503
    with pytest.raises(ClientClosed):
        await producer.send(name, b"")
