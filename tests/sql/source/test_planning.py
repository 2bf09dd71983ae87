"""Planner and fetching against a broker, without Spark around them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

from penstock import Admin, NewPartitions, Producer, TopicPartition
from penstock.sql.spark.source.clients import CONSUMERS
from penstock.sql.spark.source.errors import DataLossError, SourceError
from penstock.sql.spark.source.fetching import read_ranges
from penstock.sql.spark.source.offsets import Offsets
from penstock.sql.spark.source.options import ReadOptions, read_options
from penstock.sql.spark.source.planning import Planner
from penstock.sql.spark.source.ranges import OffsetRange
from penstock.testing import EphemeralBroker

NewTopic = Callable[..., str]


@pytest.fixture(autouse=True)
def _close_clients() -> Iterator[None]:
    yield
    CONSUMERS.close()


def options(kafka: EphemeralBroker, topic: str, **more: str) -> ReadOptions:
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "subscribe": topic, "startingOffsets": "earliest"}
    return read_options({**given, **more}, streaming="endingOffsets" not in more)


@pytest.fixture
def plan(kafka: EphemeralBroker) -> Iterator[Callable[..., Planner]]:
    opened: list[Planner] = []

    def make(topic: str, **more: str) -> Planner:
        opened.append(Planner(options(kafka, topic, **more)))
        return opened[-1]

    yield make
    for planner in opened:
        planner.close()


def send(producer: Producer, topic: str, count: int, partition: int = 0, **more: Any) -> None:
    for delivery in [producer.send(topic, b"%d" % number, partition=partition, **more) for number in range(count)]:
        delivery.result()


def offsets(topic: str, *values: int) -> Offsets:
    return {TopicPartition(topic, index): value for index, value in enumerate(values)}


# Planning.


def test_a_stream_goes_from_its_beginning_to_the_end_there_is(
    plan: Any, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic(2)
    send(producer, topic, 3, partition=1)
    planner = plan(topic)
    assert planner.initial() == offsets(topic, 0, 0)
    assert planner.latest(planner.initial(), 100) == offsets(topic, 0, 3)
    assert planner.reported() == offsets(topic, 0, 3)


def test_a_planner_that_waits_is_woken_by_the_next_record(plan: Any, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    planner = plan(topic, startingOffsets="latest")
    start = planner.initial()
    assert planner.latest(start, 100) == start
    for number in range(1, 4):
        sending = threading.Timer(0.05, send, (producer, topic, 1))
        sending.start()
        found = planner.latest(start, 100)
        while found == start:
            found = planner.latest(start, 100)
        sending.join()
        assert found == offsets(topic, number, 0)
        start = found


def test_questions_do_not_wait_behind_the_fetch_that_waits(plan: Any, producer: Producer, new_topic: NewTopic) -> None:
    """A broker answers the requests of one connection in order: the offsets were told a second late."""
    topic = new_topic()
    planner = plan(topic)
    start = planner.initial()
    planner.latest(start, 100)
    assert planner._watch._consumer.assignment()
    assert not planner._consumer.assignment()


def test_rows_per_trigger_are_bounded_and_all_come(plan: Any, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic(2)
    now = int(time.time() * 1000) - 100_000
    for number in range(50):
        send(producer, topic, 1, partition=0, timestamp_ms=now + number * 1000)
        send(producer, topic, 1, partition=1, timestamp_ms=now + number * 100)
    planner = plan(topic)
    start, seen = planner.initial(), 0
    while (end := planner.latest(start, 20)) != start:
        rows = sum(end.values()) - sum(start.values())
        assert 0 < rows <= 20
        seen, start = seen + rows, end
    assert seen == 100


def test_partitions_that_are_new_are_read_from_their_beginning(
    kafka: EphemeralBroker, plan: Any, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    planner = plan(topic, startingOffsets="latest", **{"partition.metadata.cache.ttl.ms": "1"})
    start = planner.initial()
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.create_partitions({topic: NewPartitions(total_count=2)})
    send(producer, topic, 2, partition=1)
    end = planner.latest(start, 100)
    assert end == offsets(topic, 0, 2)
    assert [each.rows for each in planner.ranges(start, end)] == [0, 2]


def test_topics_by_pattern_and_partitions_by_number(
    kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic(3)
    base = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "startingOffsets": "earliest"}
    for chosen, expected in (
        ({"subscribePattern": topic[:-1] + f"[{topic[-1]}]"}, {0, 1, 2}),
        ({"assign": f'{{"{topic}":[1]}}'}, {1}),
    ):
        planner = Planner(read_options({**base, **chosen}, streaming=True))
        try:
            assert {each.partition for each in planner.initial()} == expected
        finally:
            planner.close()


def test_offsets_by_number_and_time(plan: Any, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic()
    now = int(time.time() * 1000) - 10_000
    for number in range(5):
        send(producer, topic, 1, timestamp_ms=now + number)
    assert plan(topic, startingOffsets=f'{{"{topic}":{{"0":3}}}}').initial() == offsets(topic, 3)
    assert plan(topic, startingOffsets=f'{{"{topic}":{{"0":-1}}}}').initial() == offsets(topic, 5)
    assert plan(topic, startingTimestamp=str(now + 2)).initial() == offsets(topic, 2)
    by_time = f'{{"{topic}":{{"0":{now + 9}}}}}'
    with pytest.raises(SourceError, match="no record as late"):
        plan(topic, startingOffsetsByTimestamp=by_time).initial()
    lenient = plan(topic, startingOffsetsByTimestamp=by_time, startingOffsetsByTimestampStrategy="latest")
    assert lenient.initial() == offsets(topic, 5)
    with pytest.raises(SourceError, match="must name every partition"):
        plan(topic, startingOffsets='{"other":{"0":3}}').initial()


def test_available_now_ends_where_it_was_prepared(plan: Any, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic()
    now = int(time.time() * 1000)
    for number in range(3):
        send(producer, topic, 1, timestamp_ms=now - 3_000 + number * 1000)
    planner = plan(topic)
    planner.stop_at_present()
    send(producer, topic, 2)
    end = planner.latest(planner.initial(), 2)
    assert end == offsets(topic, 2)
    end = planner.latest(end, 100)
    assert end == offsets(topic, 3)
    assert planner.latest(end, 100) == end


def test_few_rows_wait_for_more_until_the_delay_is_over(plan: Any, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic()
    send(producer, topic, 1)
    patient = plan(topic, minOffsetsPerTrigger="2", maxTriggerDelay="1h")
    start = patient.initial()
    assert patient.latest(start, 100) == start
    send(producer, topic, 1)
    assert patient.latest(start, 100) == offsets(topic, 2)
    hasty = plan(topic, minOffsetsPerTrigger="100", maxTriggerDelay="0ms")
    assert hasty.latest(start, 100) == offsets(topic, 2)


def test_open_and_aborted_transactions_are_not_read(
    kafka: EphemeralBroker, plan: Any, new_topic: NewTopic, producer: Producer
) -> None:
    topic = new_topic()
    with Producer(bootstrap_servers=kafka.bootstrap_servers, transactional_id=f"{topic}-t") as writer:
        writer.init_transactions()
        for commits in (True, False, True):
            writer.begin_transaction()
            writer.send(topic, b"committed" if commits else b"aborted").result()
            if commits:
                writer.commit_transaction()
            else:
                writer.abort_transaction()
        writer.begin_transaction()
        writer.send(topic, b"open").result()
        planner = plan(topic)
        end = planner.latest(planner.initial(), 100)
        assert end == offsets(topic, 6)
        values = column(read(kafka, topic, [(0, 0, 6)]), "value")
        assert values == [b"committed", b"committed"]
        writer.abort_transaction()


def test_progress_is_committed_for_those_who_watch_the_lag_before_another_batch_comes(
    kafka: EphemeralBroker, plan: Any, producer: Producer, new_topic: NewTopic
) -> None:
    """Spark commits a batch when it has made the next one: behind the last batch the lag stayed for ever."""
    topic = new_topic()
    send(producer, topic, 4)
    planner = plan(topic, **{"penstock.commit.group": f"{topic}-group"})
    end = planner.latest(planner.initial(), 100)
    planner.close()
    resumed = plan(topic, **{"penstock.commit.group": f"{topic}-group"})
    assert resumed.latest(end, 100) == end
    resumed.close()
    assert committed(kafka, topic) == 4


def committed(kafka: EphemeralBroker, topic: str) -> int:
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        found = admin.list_group_offsets(f"{topic}-group")[f"{topic}-group"]
    return found[TopicPartition(topic, 0)].offset


def test_a_deleted_topic_does_not_come_back_because_it_is_read(
    kafka: EphemeralBroker, plan: Any, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    send(producer, topic, 1)
    planner = plan(topic)
    end = planner.latest(planner.initial(), 100)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_topics([topic])
        with pytest.raises(DataLossError, match="does not exist any more"):
            planner.latest(end, 100)
        assert topic not in admin.list_topics()


def test_a_topic_that_does_not_exist_is_named(plan: Any) -> None:
    with pytest.raises(SourceError, match="nowhere does not exist"):
        plan("nowhere").initial()


def test_a_topic_made_anew_stops_the_query(
    kafka: EphemeralBroker, plan: Any, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    send(producer, topic, 5)
    strict = plan(topic, **{"partition.metadata.cache.ttl.ms": "1"})
    end = strict.latest(strict.initial(), 100)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_topics([topic])
    with pytest.raises(DataLossError, match="does not exist any more"):
        strict.latest(end, 100)
    kafka.create_topic(topic)
    with pytest.raises(DataLossError, match="made anew"):
        plan(topic).latest(end, 100)
    assert plan(topic, failOnDataLoss="false").latest(end, 100) == offsets(topic, 0)


# Fetching.


def read(
    kafka: EphemeralBroker, topic: str, spans: list[tuple[int, int, int]], headers: bool = False, **more: str
) -> list[pa.RecordBatch]:
    ranges = [
        OffsetRange(partition=TopicPartition(topic, partition), start=start, end=end) for partition, start, end in spans
    ]
    return list(read_ranges(ranges, options(kafka, topic, **more), headers=headers))


def column(batches: list[pa.RecordBatch], name: str) -> list[Any]:
    return [value for batch in batches for value in batch.column(name).to_pylist()]


def test_exactly_the_range_is_read(kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic()
    send(producer, topic, 50)
    assert column(read(kafka, topic, [(0, 7, 33)]), "offset") == list(range(7, 33))
    assert column(read(kafka, topic, [(0, 33, 34)]), "offset") == [33]


def test_several_ranges_are_read_together(kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic(3)
    for partition in range(3):
        send(producer, topic, 20, partition=partition)
    batches = read(kafka, topic, [(0, 0, 5), (1, 18, 20), (2, 3, 4)])
    found = sorted(zip(column(batches, "partition"), column(batches, "offset"), strict=True))
    assert found == [*((0, offset) for offset in range(5)), (1, 18), (1, 19), (2, 3)]


def test_records_lost_to_retention_stop_the_query_with_their_range(
    kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic
) -> None:
    topic = new_topic()
    send(producer, topic, 20)
    with Admin(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_records({TopicPartition(topic, 0): 12})
    with pytest.raises(DataLossError, match=r"offsets 5 to 11 were deleted"):
        read(kafka, topic, [(0, 5, 15)])
    assert column(read(kafka, topic, [(0, 5, 15)], failOnDataLoss="false"), "offset") == [12, 13, 14]
    assert read(kafka, topic, [(0, 5, 9)], failOnDataLoss="false") == []


def test_an_end_that_never_comes_is_told(kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic()
    send(producer, topic, 2)
    with pytest.raises(SourceError, match="No record came"):
        read(kafka, topic, [(0, 0, 5)], **{"kafkaConsumer.pollTimeoutMs": "50"})


def test_a_partition_that_became_shorter_stops_the_query(
    kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic
) -> None:
    """The topic was made anew after the batch was planned, and the first offset is still inside the log."""
    topic = new_topic(2)
    send(producer, topic, 2)
    send(producer, topic, 5, partition=1)
    with pytest.raises(DataLossError, match=r"up to offset 5, but ends at 2. The topic was made anew"):
        read(kafka, topic, [(0, 0, 5), (1, 0, 5)])
    batches = read(kafka, topic, [(0, 0, 5), (1, 0, 5)], failOnDataLoss="false")
    assert sorted(column(batches, "offset")) == [0, 0, 1, 1, 2, 3, 4]


def test_headers_come_if_they_are_asked_for(kafka: EphemeralBroker, producer: Producer, new_topic: NewTopic) -> None:
    topic = new_topic()
    send(producer, topic, 1, headers=[("a", b"1")])
    assert column(read(kafka, topic, [(0, 0, 1)], headers=True), "headers") == [[{"key": "a", "value": b"1"}]]
