"""Queues of batches and the memory behind them."""

from __future__ import annotations

import random
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.errors import ClientClosed, error_for
from penstock.client.producer.accumulator import Accumulator, PartitionQueue, record_bytes
from penstock.client.producer.batch import ProducerBatch
from penstock.client.producer.delivery import Outcome
from penstock.client.producer.memory import MemoryPool
from penstock.client.producer.partitioner import Sticky
from penstock.records.kernel import BatchWriter


class FakeClock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)


class Fixture:
    def __init__(self, memory: int = 10_000) -> None:
        self.clock = FakeClock()
        self.wakes = 0
        self.memory = MemoryPool(memory)
        self.accumulator = Accumulator(
            clock=self.clock,
            memory=self.memory,
            delivery_timeout_ms=1_000,
            wake=self._wake,
            make_keyless=lambda: Sticky(random.Random(1), switch_bytes=100),
        )
        self.topic = self.accumulator.topic("t")
        self.topic.update(2, [0, 1])

    def _wake(self) -> None:
        self.wakes += 1

    def begin(self, partition: int = 0, records: int = 1, size: int = 1_000) -> ProducerBatch:
        queue = self.topic.queues[partition]
        with queue.lock:
            queue.close_open()
            batch = self.accumulator.begin(queue, size, size, None)
            assert batch is not None
            assert batch.writer is not None
            for _ in range(records):
                batch.writer.append(0, None, b"v")
            self.accumulator.publish(queue, batch)
            self.accumulator.wake()
        return batch

    @property
    def queue(self) -> PartitionQueue:
        return self.topic.queues[0]


def test_one_wake_up_until_the_io_thread_looks() -> None:
    world = Fixture()
    world.begin()
    world.begin(1)
    assert world.wakes == 1
    world.accumulator.woken = False
    world.begin()
    assert world.wakes == 2


def test_batches_leave_in_order_and_the_open_one_is_closed() -> None:
    world = Fixture()
    first, second = world.begin(), world.begin()
    assert world.accumulator.is_full(world.queue)
    assert world.accumulator.take(world.queue) is first
    assert not world.accumulator.is_full(world.queue)
    assert world.accumulator.take(world.queue) is second
    assert world.queue.open is None
    assert second.writer is None
    assert world.accumulator.queues() == [world.queue]
    assert world.accumulator.queues() == [], "empty queues drop out"


def test_memory_is_given_back_at_the_end_and_once() -> None:
    world = Fixture()
    batch = world.begin()
    assert world.memory.free_bytes == 9_000
    world.accumulator.take(world.queue)
    world.accumulator.finish(batch, Outcome(0))
    world.accumulator.finish(batch, Outcome(0))
    assert world.memory.free_bytes == 10_000
    assert world.accumulator.incomplete == []


def test_without_memory_no_batch_is_begun() -> None:
    world = Fixture(memory=1_500)
    world.begin()
    with world.queue.lock:
        world.queue.close_open()
        assert world.accumulator.begin(world.queue, 1_000, 1_000, None) is None


def test_a_closed_accumulator_takes_nothing() -> None:
    world = Fixture()
    world.accumulator.closed = True
    with pytest.raises(ClientClosed):
        world.begin()


def test_repeated_batches_come_back_in_the_order_of_their_sequences() -> None:
    world = Fixture()
    batches = [world.begin() for _ in range(4)]
    taken = [world.accumulator.take(world.queue) for _ in range(3)]
    for sequence, batch in enumerate(taken):
        batch.base_sequence = sequence
    world.accumulator.give_back([taken[1], taken[2], taken[0]])
    assert list(world.queue.batches) == batches


def test_expired_batches_are_taken_out_wherever_they_stand() -> None:
    world = Fixture()
    old = world.begin()
    world.clock.now = 0.5
    young = world.begin()
    assert world.accumulator.expired(0.9) == []
    assert world.accumulator.next_deadline(default=9.0) == 1.0
    assert world.accumulator.expired(1.0) == [old]
    assert list(world.queue.batches) == [young]
    assert world.accumulator.expired(2.0) == [young]
    assert world.queue.open is None


def test_pieces_stand_where_the_batch_stood() -> None:
    world = Fixture()
    batch, behind = world.begin(records=4), world.begin()
    world.accumulator.take(world.queue)
    pieces = []
    for _ in range(2):
        piece = ProducerBatch(batch.tp, size_max=100, now=0.0, deadline=1.0)
        assert piece.writer is not None
        piece.writer.append(0, None, b"v")
        piece.close()
        piece.parent = batch
        pieces.append(piece)
    batch.pieces = list(enumerate(pieces))
    world.accumulator.split(batch, pieces)
    assert list(world.queue.batches) == [*pieces, behind]
    for piece in pieces:
        world.accumulator.finish(piece, Outcome(5))
    assert batch.outcome is not None
    assert world.memory.free_bytes == 9_000


def test_a_dropped_batch_leaves_no_trace() -> None:
    world = Fixture()
    with world.queue.lock:
        batch = world.accumulator.begin(world.queue, 1_000, 1_000, None)
        assert batch is not None
        assert world.memory.free_bytes == 9_000
        world.accumulator.drop(batch)
    assert world.memory.free_bytes == 10_000
    assert not world.queue.batches
    assert world.accumulator.incomplete == []


def test_a_topic_that_vanished_must_be_looked_up_again() -> None:
    world = Fixture()
    world.topic.update(0, [])
    assert world.topic.count == 0
    assert len(world.topic.queues) == 2, "what waits in its queues is not forgotten"


@given(
    st.one_of(st.none(), st.binary(max_size=300)),
    st.one_of(st.none(), st.binary(max_size=300)),
    st.lists(st.tuples(st.text(max_size=20), st.one_of(st.none(), st.binary(max_size=30))), max_size=4),
)
def test_the_size_of_a_record_is_never_underestimated(
    key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]
) -> None:
    writer = BatchWriter(1)
    writer.append(2**62, key, value, tuple(headers))
    assert writer.size <= record_bytes(key, value, headers)


# Memory.


def test_tickets_are_served_in_order() -> None:
    pool = MemoryPool(100)
    assert pool.try_take(100)
    served: list[str] = []
    large = pool.ask(80, lambda: served.append("large"))
    pool.ask(10, lambda: served.append("small"))
    pool.give(50)
    assert served == [], "the small one does not overtake"
    assert not pool.try_take(10)
    pool.give(40)
    assert served == ["large", "small"]
    assert large.granted
    assert pool.free_bytes == 0


def test_who_gives_up_makes_room_for_the_next() -> None:
    pool = MemoryPool(100)
    assert pool.try_take(100)
    served: list[str] = []
    large = pool.ask(90, lambda: served.append("large"))
    pool.ask(10, lambda: served.append("small"))
    pool.give(20)
    pool.give_up(large)
    assert served == ["small"]
    pool.give(80)
    assert pool.free_bytes == 90
    pool.give_up(large)
    assert pool.free_bytes == 90


def test_a_grant_that_came_too_late_goes_back() -> None:
    pool = MemoryPool(100)
    ticket = pool.ask(60, lambda: None)
    assert ticket.granted
    pool.give_up(ticket)
    pool.give_up(ticket)
    assert pool.free_bytes == 100


@settings(deadline=None, max_examples=30)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=40))
def test_memory_is_conserved_between_threads(sizes: list[int]) -> None:
    pool = MemoryPool(60)

    def work(mine: list[int]) -> None:
        for size in mine:
            granted = threading.Event()
            ticket = pool.ask(size, granted.set)
            assert granted.wait(10)
            pool.give_up(ticket)

    threads = [threading.Thread(target=work, args=(sizes[start::3],)) for start in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert (pool.free_bytes, pool.waiting) == (60, 0)


def test_an_error_ends_every_waiting_batch() -> None:
    world = Fixture()
    batches = [world.begin(), world.begin(1)]
    removed = world.accumulator.remove(lambda _: True)
    assert removed == batches
    for batch in removed:
        world.accumulator.finish(batch, Outcome(error=error_for(ErrorCode.INVALID_RECORD)))
    assert world.memory.free_bytes == 10_000
    assert TopicPartition("t", 0) == batches[0].tp
