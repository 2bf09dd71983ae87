"""Offsets of a group seen from the consumer: loops, restarts, the end, a store of the user's own."""

from __future__ import annotations

import threading

import pytest

from penstock import Consumer, InvalidState, TopicPartition
from penstock.client.core.types import OffsetAndMetadata
from tests.clients.consuming import numbers, produce, read
from tests.clients.support import TopicMaker


def member(bootstrap: str, group: str, **options: object) -> Consumer:
    settings = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 100, **options}
    return Consumer(bootstrap_servers=bootstrap, group_id=group, **settings)  # type: ignore[arg-type]


def test_a_commit_in_a_loop_stops_behind_the_record_in_hand(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    produce(bootstrap, name, numbers(50))
    with member(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.subscribe([name])
        for record in consumer:
            if record.offset == 6:
                consumer.commit()
                break
        assert consumer.committed([TopicPartition(name, 0)]) == {TopicPartition(name, 0): OffsetAndMetadata(7)}
    with member(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.subscribe(name)
        assert read(consumer, 43)[0].offset == 7


@pytest.mark.parametrize("way", ["loop", "poll"])
def test_the_commit_at_the_end_covers_what_was_given(bootstrap: str, topic: TopicMaker, way: str) -> None:
    name = topic()
    tp = TopicPartition(name, 0)
    produce(bootstrap, name, numbers(50))
    with member(bootstrap, name) as consumer:
        consumer.subscribe("^" + name)
        if way == "loop":
            for record in consumer:
                if record.offset == 9:
                    break
        else:
            read(consumer, 50)
    with member(bootstrap, name) as consumer:
        known = consumer.committed(tp)[tp]
        assert known is not None
        assert known.offset == (10 if way == "loop" else 50)


def test_assigned_partitions_begin_at_the_groups_offsets(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    first, second = TopicPartition(name, 0), TopicPartition(name, 1)
    for partition in range(2):
        produce(bootstrap, name, numbers(10), partition)
    with member(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.assign([first, second])
        consumer.commit({first: 4})
        assert (consumer.position(first), consumer.position(second)) == (4, 0)
        assert len(read(consumer, 16)) == 16
        done = threading.Event()
        seen: list[object] = []
        consumer.commit_async(callback=lambda offsets, error: (seen.append((offsets, error)), done.set()))
        while not done.is_set():
            consumer.poll(50)
        (offsets, error) = seen[0]  # type: ignore[misc]
        assert error is None
        assert {each: at.offset for each, at in offsets.items()} == {first: 10, second: 10}


def test_without_a_group_there_is_nothing_to_commit(bootstrap: str, topic: TopicMaker) -> None:
    with Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign(TopicPartition(topic(), 0))
        with pytest.raises(InvalidState, match=r"group\.id"):
            consumer.commit()
        with pytest.raises(InvalidState, match=r"group\.id"):
            consumer.group_metadata()
        consumer.unsubscribe()
        with pytest.raises(InvalidState, match=r"group\.id"):
            consumer.subscribe(["t"])


class Store:
    """The simplest store there is."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, OffsetAndMetadata] = {}

    def load(self, group: str, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {each: self.offsets[each] for each in partitions if each in self.offsets}

    def save(self, group: str, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
        self.offsets.update(offsets)


def test_a_store_of_ones_own(bootstrap: str, topic: TopicMaker) -> None:
    tp = TopicPartition(topic(), 0)
    produce(bootstrap, tp.topic, numbers(10))
    store = Store()
    store.offsets[tp] = OffsetAndMetadata(3)
    with Consumer(bootstrap_servers=bootstrap, offset_store=store, auto_offset_reset="earliest") as consumer:
        consumer.assign(tp)
        assert read(consumer, 7)[0].offset == 3
    assert store.offsets[tp].offset == 10, "closing commits there"


def test_questions_do_not_wait_behind_a_long_poll(bootstrap: str, topic: TopicMaker) -> None:
    """They did, on the same connection: for up to fetch.max.wait.ms."""
    name = topic()
    tp = TopicPartition(name, 0)
    produce(bootstrap, name, numbers(5))
    with member(bootstrap, name, fetch_max_wait_ms=60_000) as consumer:
        consumer.assign([tp])
        read(consumer, 5)
        consumer.poll(300)  # by now a fetch waits at the broker
        assert consumer.end_offsets([tp], timeout_ms=20_000) == {tp: 5}
        assert consumer.offsets_for_times({tp: 0}, timeout_ms=20_000)[tp] is not None
        assert name in consumer.list_topics(timeout_ms=20_000)
