"""The consumer without a group: assign, poll, iterate, positions, offsets, Arrow, deserializers, interceptors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable

import pytest

from penstock import (
    ClientClosed,
    ConcurrentUse,
    Consumer,
    InvalidState,
    SerializationError,
    TopicPartition,
    UnknownTopicOrPartition,
    WakeUp,
)
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.consumer.interceptors import ConsumerInterceptor
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.core.types import OffsetAndMetadata
from penstock.records.compression import Codec
from tests.clients.consuming import numbers, produce, read, read_async, values
from tests.clients.support import TopicMaker


def reader(bootstrap: str, *partitions: TopicPartition, **options: object) -> Consumer:
    settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **options}
    consumer = Consumer(bootstrap_servers=bootstrap, **settings)  # type: ignore[arg-type]
    if partitions:
        consumer.assign(partitions)
    return consumer


@pytest.mark.parametrize("codec", list(Codec))
def test_reads_what_was_written(bootstrap: str, topic: TopicMaker, codec: Codec) -> None:
    name = topic()
    produce(bootstrap, name, numbers(100), codec=codec, timestamp=1234)
    produce(bootstrap, name, [None], codec=codec)
    with reader(bootstrap, TopicPartition(name, 0)) as consumer:
        records = read(consumer, 101)
    first = records[0]
    assert (first.topic, first.partition, first.offset, first.timestamp) == (name, 0, 0, 1234)
    assert (first.timestamp_type, first.key, first.value, first.headers) == (0, b"key", b"0", (("h", b"x"),))
    assert values(records) == [*numbers(100), None]


def test_several_partitions_keep_their_own_order(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=3)
    for partition in range(3):
        for start in (0, 10):
            produce(bootstrap, name, numbers(10, start), partition)
    with reader(bootstrap, *(TopicPartition(name, each) for each in range(3)), max_poll_records=7) as consumer:
        records = ConsumerRecords(read(consumer, 60))
    for partition in range(3):
        assert values(records.of(TopicPartition(name, partition))) == numbers(20)


def test_a_commit_or_position_inside_a_loop_is_exact(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(50))
    with reader(bootstrap, tp) as consumer:
        for record in consumer:
            if record.offset == 20:
                assert consumer.position(tp) == 21
                assert consumer.lag(tp) == 29
                break
        assert consumer.poll(1000)[0].offset == 21, "what the loop did not give is not lost"


def test_a_small_poll_after_a_loop_leaves_the_rest_for_later(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(50))
    with reader(bootstrap, tp) as consumer:
        next(record for record in consumer if record.offset == 20)
        assert [record.offset for record in consumer.poll(1000, max_records=3)] == [21, 22, 23]
        assert next(iter(consumer)).offset == 24
        assert [record.offset for record in consumer.poll(1000)] == [*range(25, 50)]


def test_a_seek_inside_a_loop(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(50))
    seen = []
    with reader(bootstrap, tp) as consumer:
        for record in consumer:
            seen.append(record.offset)
            if len(seen) == 5:
                consumer.seek(tp, 40)
            if record.offset == 49:
                break
    assert seen == [0, 1, 2, 3, 4, *range(40, 50)]


def test_positions_and_offsets(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    for at in (1000, 2000, 3000):
        produce(bootstrap, tp.topic, numbers(10), timestamp=at)
    with reader(bootstrap, tp, auto_offset_reset="latest") as consumer:
        assert consumer.position(tp) == 30
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets(tp) == {tp: 30}
        found = consumer.offsets_for_times({tp: 1500})[tp]
        assert found is not None
        assert (found.offset, found.timestamp) == (10, 2000)
        assert consumer.offsets_for_times({tp: 5000}) == {tp: None}
        consumer.seek(tp, OffsetAndMetadata(25))
        assert consumer.position(tp) == 25
        assert consumer.current_lag(tp) == 5
        assert [record.offset for record in read(consumer, 5)] == [25, 26, 27, 28, 29]
        consumer.seek_to_beginning()
        assert consumer.position(tp) == 0
        consumer.seek_to_end([tp])
        assert consumer.position(tp) == 30


@pytest.mark.parametrize("sought", [False, True])
def test_a_partition_that_does_not_exist_is_warned_of_once(
    bootstrap: str, topic: TopicMaker, caplog: pytest.LogCaptureFixture, sought: bool
) -> None:
    name = topic()
    with reader(bootstrap, TopicPartition(name, 55), retry_backoff_ms=20) as consumer:
        if sought:
            consumer.seek(TopicPartition(name, 55), 3)
        for _ in range(5):
            assert consumer.poll(200) == []
    told = [each.getMessage() for each in caplog.records if f"{name}-55" in each.getMessage()]
    assert told == [
        f"There is no partition {name}-55: topic {name} has partition 0 only. "
        "Nothing is read of it until it exists: assign another one, or add partitions."
    ]


def test_the_position_in_a_partition_that_does_not_exist(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(partitions=2), 2)
    with (
        reader(bootstrap, tp) as consumer,
        pytest.raises(UnknownTopicOrPartition, match=r"There is no partition .*: topic .* has partitions 0 to 1"),
    ):
        consumer.position(tp, 500)


def test_reset_by_duration(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    now = int(time.time() * 1000)
    produce(bootstrap, tp.topic, numbers(5), timestamp=now - 7_200_000)
    produce(bootstrap, tp.topic, numbers(5), timestamp=now)
    with reader(bootstrap, tp, auto_offset_reset="by_duration:PT1H") as consumer:
        assert consumer.position(tp) == 5
    with reader(bootstrap, tp, auto_offset_reset="by_duration:PT24H") as consumer:
        assert consumer.position(tp) == 0


def test_pause_and_resume(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    with reader(bootstrap, first, second) as consumer:
        consumer.pause([first])
        produce(bootstrap, name, numbers(5), 0)
        produce(bootstrap, name, numbers(5), 1)
        assert {record.partition for record in read(consumer, 5)} == {1}
        assert consumer.poll(200) == []
        assert consumer.paused() == {first}
        consumer.resume(first)
        assert {record.partition for record in read(consumer, 5)} == {0}
        with pytest.raises(InvalidState, match="not assigned"):
            consumer.pause([TopicPartition(name, 7)])


def test_assign_again_keeps_positions(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    for partition in range(2):
        produce(bootstrap, name, numbers(5), partition)
    with reader(bootstrap, first) as consumer:
        read(consumer, 5)
        consumer.assign([first, second])
        assert consumer.assignment() == {first, second}
        assert {record.partition for record in read(consumer, 5)} == {1}
        consumer.unsubscribe()
        assert consumer.assignment() == frozenset()
        with pytest.raises(InvalidState, match="nothing to poll"):
            consumer.poll(0)


def test_a_record_larger_than_the_fetch_size_comes_alone(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, [b"x" * 300_000])
    produce(bootstrap, tp.topic, [b"y" * 300_000, b"z"])
    with reader(bootstrap, tp, max_partition_fetch_bytes=1000, fetch_max_bytes=2000) as consumer:
        assert [len(record.value) for record in read(consumer, 3)] == [300_000, 300_000, 1]


def test_topics_and_partitions(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    with reader(bootstrap) as consumer:
        assert [info.partition for info in consumer.partitions_for(name)] == [0, 1]
        assert len(consumer.list_topics()[name].partitions) == 2


def test_an_unknown_topic_stays_unknown(bootstrap: str, topic: TopicMaker) -> None:
    missing = topic.name()
    with reader(bootstrap, TopicPartition(missing, 0), allow_auto_create_topics=False) as consumer:
        assert consumer.poll(300) == []
        with pytest.raises(UnknownTopicOrPartition, match=missing):
            consumer.partitions_for(missing, timeout_ms=500)
        with pytest.raises((TimeoutError, UnknownTopicOrPartition), match=missing):
            consumer.position(TopicPartition(missing, 0), timeout_ms=300)
        assert missing not in consumer.list_topics()


def test_a_topic_that_comes_later_is_read(bootstrap: str, topic: TopicMaker) -> None:
    name = topic.name()
    with reader(bootstrap, TopicPartition(name, 0), allow_auto_create_topics=False) as consumer:
        assert consumer.poll(200) == []
        topic(name=name)
        produce(bootstrap, name, numbers(3))
        assert values(read(consumer, 3)) == numbers(3)


def test_deserializers(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, [b"1", b"2", b"oops", b"4"])
    with reader(bootstrap, tp, value_deserializer=int, key_deserializer="string") as consumer:
        records = read(consumer, 2)
        assert [(record.key, record.value) for record in records] == [("key", 1), ("key", 2)]
        for _ in range(2):
            with pytest.raises(SerializationError, match="offset 2") as caught:
                consumer.poll(2000)
            assert caught.value.offset == 2
        assert consumer.position(tp) == 2
        consumer.seek(tp, 3)
        assert values(read(consumer, 1)) == [4]


class Interceptor(ConsumerInterceptor):
    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.count = 0

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        self.threads.add(threading.get_ident())
        self.count += len(records)
        if self.count == 3:
            raise RuntimeError("not this time")
        return ConsumerRecords(record._replace(value=b"seen") for record in records)


def test_interceptors_see_records_in_the_users_thread(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    mine = Interceptor()
    with reader(bootstrap, tp, interceptor_classes=[mine]) as consumer:
        produce(bootstrap, tp.topic, numbers(3))
        assert values(read(consumer, 3)) == numbers(3), "one that fails changes nothing"
        produce(bootstrap, tp.topic, numbers(2))
        assert values(read(consumer, 2)) == [b"seen"] * 2
    assert mine.threads == {threading.get_ident()}


def test_arrow(bootstrap: str, topic: TopicMaker) -> None:
    pytest.importorskip("pyarrow")
    name = topic(partitions=2)
    produce(bootstrap, name, [*numbers(10), None], 0, timestamp=77)
    produce(bootstrap, name, numbers(5), 1, codec=Codec.ZSTD)
    with reader(bootstrap, TopicPartition(name, 0), TopicPartition(name, 1)) as consumer:
        rows: list[dict[str, object]] = []
        while len(rows) < 16:
            batch = consumer.consume_arrow(5000, max_rows=4, headers=True)
            assert 0 < batch.num_rows <= 4
            rows += batch.to_pylist()
        by_partition = {each: [row for row in rows if row["partition"] == each] for each in range(2)}
        assert [row["value"] for row in by_partition[0]] == [*numbers(10), None]
        assert [row["offset"] for row in by_partition[1]] == list(range(5))
        first = by_partition[0][0]
        assert (first["topic"], first["key"], first["timestamp_type"]) == (name, b"key", 0)
        assert first["timestamp"].timestamp() == 0.077  # type: ignore[attr-defined]
        assert first["headers"] == [{"key": "h", "value": b"x"}]
        assert consumer.consume_arrow(0).num_rows == 0
        assert consumer.position(TopicPartition(name, 0)) == 11


def test_records_and_columns_take_turns(bootstrap: str, topic: TopicMaker) -> None:
    pytest.importorskip("pyarrow")
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(20))
    with reader(bootstrap, tp) as consumer:
        iterator = iter(consumer)
        assert [next(iterator).offset for _ in range(3)] == [0, 1, 2]
        assert consumer.consume_arrow(5000, max_rows=5).column("offset").to_pylist() == [3, 4, 5, 6, 7]
        assert next(iterator).offset == 8


def test_metrics_have_kafkas_names(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(20))
    with reader(bootstrap, tp, max_poll_records=5) as consumer:
        read(consumer, 5)
        metrics = consumer.metrics()
    assert metrics["records-consumed-total"] == 5
    assert metrics["records-lag-max"] == 15
    assert metrics[f"{tp}.records-lag"] == 15
    assert metrics["fetch-total"] >= 1
    assert metrics["fetch-rate"] > 0


# Threads, waking up, the end.


def test_wakeup_ends_a_poll(bootstrap: str, topic: TopicMaker) -> None:
    with reader(bootstrap, TopicPartition(topic(), 0)) as consumer:
        timer = threading.Timer(0.2, consumer.wakeup)
        timer.start()
        with pytest.raises(WakeUp):
            consumer.poll(20_000)
        timer.join()
        assert consumer.poll(0) == []


def test_a_second_thread_is_refused(bootstrap: str, topic: TopicMaker) -> None:
    with reader(bootstrap, TopicPartition(topic(), 0)) as consumer:

        def poll() -> None:
            with pytest.raises(WakeUp):
                consumer.poll(20_000)

        polling = threading.Thread(target=poll)
        polling.start()
        deadline = time.monotonic() + 60
        while consumer._owner is None and time.monotonic() < deadline:
            time.sleep(0.01)
        with pytest.raises(ConcurrentUse, match="one thread at a time"):
            consumer.assignment()
        consumer.wakeup()
        polling.join(60)
        assert not polling.is_alive()
        assert len(consumer.assignment()) == 1


def test_after_close_everything_says_so(bootstrap: str, topic: TopicMaker) -> None:
    consumer = reader(bootstrap, TopicPartition(topic(), 0))
    consumer.poll(0)
    consumer.close()
    consumer.close()
    calls: list[Callable[[], object]] = [
        consumer.poll, consumer.assignment, consumer.wakeup, lambda: consumer.seek(("t", 0), 1),  # type: ignore[arg-type]
        lambda: iter(consumer), consumer.arrow_batches,
    ]  # fmt: skip
    for call in calls:
        with pytest.raises(ClientClosed):
            call()


# asyncio.


async def test_asyncio_has_the_same(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(10))
    async with AsyncConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
        consumer.assign(tp)
        seen = []
        async for record in consumer:
            seen.append(record.offset)
            if record.offset == 4:
                assert await consumer.position(tp) == 5
                break
        assert seen == [0, 1, 2, 3, 4]
        assert [record.offset for record in await read_async(consumer, 5)] == [5, 6, 7, 8, 9]
    with pytest.raises(ClientClosed):
        await consumer.poll(0)
    for call in (consumer.__aiter__, consumer.arrow_batches):
        with pytest.raises(ClientClosed):
            call()


async def test_another_task_resumes_and_wakes(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(3))
    async with AsyncConsumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign(tp)
        consumer.pause(tp)
        polling = asyncio.create_task(consumer.poll(20_000))
        await asyncio.sleep(0.1)
        with pytest.raises(ConcurrentUse):
            await consumer.poll(0)
        consumer.resume(tp)
        async with asyncio.timeout(60):
            assert values(await polling) == numbers(3)
        polling = asyncio.create_task(consumer.poll(None))
        await asyncio.sleep(0.05)
        consumer.wakeup()
        with pytest.raises(WakeUp):
            await polling
