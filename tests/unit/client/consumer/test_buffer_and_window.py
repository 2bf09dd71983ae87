"""What waits to be taken, and what an iterator has not given yet."""

from __future__ import annotations

import pytest

from penstock.base.errors import KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.deserializing import Deserializing
from penstock.client.consumer.fetching.buffer import FetchBuffer
from penstock.client.consumer.fetching.partition_fetch import PartitionFetch
from penstock.client.consumer.interceptors import ConsumerInterceptor, Interceptors
from penstock.client.consumer.positions import EARLIEST
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.consumer.window import IterationWindow
from penstock.client.errors import SerializationError
from penstock.records.builder import build_batch
from penstock.records.record import ConsumerRecord, Record

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Shelf:
    """A buffer with an assignment."""

    def __init__(self, *partitions: TopicPartition) -> None:
        self.subscription = SubscriptionState(EARLIEST)
        self.subscription.assign(partitions)
        for partition in partitions:
            self.subscription.seek(partition, 0)
        self.buffer = FetchBuffer(self.subscription)

    def add(self, partition: TopicPartition, base: int, count: int, *, damaged: bool = False) -> None:
        data = bytearray(build_batch([Record(0, None, b"v")] * count, base_offset=base, leader_epoch=4))
        if damaged:
            data[-1] ^= 1
        state = self.subscription.state(partition)
        one = PartitionFetch(partition, bytes(data), 0, len(data), offset=base, epoch=-1, aborted=None, check_crcs=True)
        self.buffer.add(one, state, base + count)

    def position(self, partition: TopicPartition) -> int:
        position = self.subscription.state(partition).position
        assert position is not None
        return position.offset


def where(records: list[ConsumerRecord]) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records]


def test_positions_move_behind_what_was_taken() -> None:
    shelf = Shelf(A)
    shelf.add(A, 0, 5)
    assert where(shelf.buffer.take(3)) == [(0, 0), (0, 1), (0, 2)]
    assert shelf.position(A) == 3
    state = shelf.subscription.state(A)
    assert shelf.buffer.next_offset(A, state) == 5, "the next fetch begins behind what is here"
    assert state.position is not None
    assert state.position.offset_epoch == 4


def test_partitions_take_turns_by_fetches() -> None:
    shelf = Shelf(A, B)
    shelf.add(A, 0, 2)
    shelf.add(A, 2, 2)
    shelf.add(B, 0, 2)
    assert not shelf.buffer.has_room(A, shelf.subscription.state(A))
    assert where(shelf.buffer.take(2)) == [(0, 0), (0, 1)]
    assert shelf.buffer.has_room(A, shelf.subscription.state(A))
    assert where(shelf.buffer.take(2)) == [(1, 0), (1, 1)]
    assert where(shelf.buffer.take(2)) == [(0, 2), (0, 3)]
    assert shelf.buffer.take(2) == []


def test_a_seek_drops_what_was_fetched() -> None:
    shelf = Shelf(A)
    shelf.add(A, 0, 5)
    shelf.subscription.seek(A, 3)
    assert shelf.buffer.take(5) == []
    assert shelf.position(A) == 3


def test_a_paused_partition_keeps_what_it_has() -> None:
    shelf = Shelf(A, B)
    shelf.add(A, 0, 1)
    shelf.add(B, 0, 1)
    shelf.subscription.state(A).paused = True
    before = shelf.buffer.bytes_active
    assert where(shelf.buffer.take(5)) == [(1, 0)]
    assert shelf.buffer.bytes_active == 0 < before
    shelf.subscription.state(A).paused = False
    assert where(shelf.buffer.take(5)) == [(0, 0)]


def test_a_partition_that_is_gone_is_dropped() -> None:
    shelf = Shelf(A, B)
    shelf.add(A, 0, 1)
    shelf.subscription.assign([B])
    shelf.buffer.drop_unassigned()
    assert shelf.buffer.take(5) == []


def test_damage_is_raised_after_the_records_before_it_and_then_fetched_again() -> None:
    shelf = Shelf(A, B)
    shelf.add(A, 0, 2)
    shelf.add(A, 2, 2, damaged=True)
    shelf.add(B, 0, 1)
    assert where(shelf.buffer.take(10)) == [(0, 0), (0, 1), (1, 0)]
    with pytest.raises(KafkaError, match="damaged"):
        shelf.buffer.take(10)
    state = shelf.subscription.state(A)
    assert shelf.buffer.next_offset(A, state) == 2


# Deserializers.


def test_a_deserializer_that_fails_keeps_the_position_and_names_the_record() -> None:
    shelf = Shelf(A)
    shelf.add(A, 0, 3)

    def value(data: bytes) -> str:
        seen.append(data)
        if len(seen) > 1:
            raise ValueError("not today")
        return data.decode()

    seen: list[bytes] = []
    convert = Deserializing(None, value).convert
    records = shelf.buffer.take(10, convert)
    assert [record.value for record in records] == ["v"]
    with pytest.raises(SerializationError, match=r"value of the record at offset 1 of t-0 .* Seek to 2") as caught:
        shelf.buffer.take(10, convert)
    assert (caught.value.topic, caught.value.partition, caught.value.offset) == ("t", 0, 1)
    assert shelf.position(A) == 1


def test_without_deserializers_nothing_is_converted() -> None:
    assert Deserializing(None, None).convert is None


# Interceptors.


class Upper(ConsumerInterceptor):
    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        return ConsumerRecords(record._replace(value=record.value.upper()) for record in records)


class Broken:
    def configure(self, config: object) -> None:
        raise RuntimeError("configure")

    def on_consume(self, records: ConsumerRecords) -> ConsumerRecords:
        raise RuntimeError("on_consume")

    def close(self) -> None:
        raise RuntimeError("close")


def test_one_interceptor_that_fails_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    all_ = Interceptors([Broken, Upper()], {})
    records = ConsumerRecords([ConsumerRecord("t", 0, 0, 0, 0, None, b"a")])
    assert [record.value for record in all_.on_consume(records)] == [b"A"]
    all_.on_commit({})
    all_.close()
    assert "Broken failed in on_consume" in caplog.text


# Iterating.


def records_of(*places: tuple[int, int]) -> ConsumerRecords:
    return ConsumerRecords(ConsumerRecord("t", partition, offset, 0, 0, None, b"") for partition, offset in places)


def test_the_window_knows_what_was_not_given_yet() -> None:
    window = IterationWindow()
    iterator = window.open(records_of((0, 0), (0, 1), (1, 7), (1, 8)))
    assert window.unread() == {A: 0, B: 7}
    next(iterator)
    assert window.unread() == {A: 1, B: 7}
    next(iterator)
    next(iterator)
    assert window.unread() == {B: 8}
    next(iterator)
    assert window.unread() == {}
    assert list(iterator) == []


def test_a_seek_inside_a_loop_takes_the_rest_out_of_it() -> None:
    window = IterationWindow()
    iterator = window.open(records_of((0, 0), (0, 1), (1, 7), (0, 2), (1, 8)))
    next(iterator)
    window.drop([A])
    assert where(list(iterator)) == [(1, 7), (1, 8)]
    window.drop()
    assert window.unread() == {}


def test_a_poll_inside_a_loop_gets_what_is_left() -> None:
    window = IterationWindow()
    iterator = window.open(records_of((0, 0), (0, 1), (0, 2)))
    next(iterator)
    assert where(window.take(1)) == [(0, 1)]
    assert list(iterator) == [], "the loop does not get them as well"
    assert window.unread() == {A: 2}
    assert where(window.take(9)) == [(0, 2)]
    assert window.take(9) == []


def test_records_are_found_by_partition() -> None:
    records = records_of((0, 0), (1, 7), (0, 1))
    assert records.partitions == (A, B)
    assert where(records.of(A)) == [(0, 0), (0, 1)]
    assert where(records.by_partition()[B]) == [(1, 7)]
