"""Streams without a consumer: which partition feeds which, and what counts as finished."""

from __future__ import annotations

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.consumer.streams.buffer import StreamBuffer
from penstock.client.consumer.streams.routing import StreamRouting
from penstock.records.record import ConsumerRecord

P = [TopicPartition("t", number) for number in range(8)]


def record(partition: int, offset: int) -> ConsumerRecord:
    return ConsumerRecord("t", partition, offset, 0, 0, None, b"v", (), 0)


def buffer(size: int = 4) -> StreamBuffer:
    return StreamBuffer(size, lambda: None)


@given(st.integers(1, 5), st.sets(st.sampled_from(P)), st.sets(st.sampled_from(P)))
def test_streams_are_even_and_a_partition_stays_where_it_is(
    streams: int, first: set[TopicPartition], second: set[TopicPartition]
) -> None:
    routing = StreamRouting(streams)
    routing.assigned(first)
    sizes = [len(routing.partitions_of(number)) for number in range(streams)]
    assert sum(sizes) == len(first)
    assert max(sizes) - min(sizes) <= 1
    before = {each: routing.stream_of(each) for each in first & second}
    routing.revoked(first - second)
    routing.assigned(second - first)
    assert all(routing.stream_of(each) == number for each, number in before.items())
    assert sum(len(routing.partitions_of(number)) for number in range(streams)) == len(second)


def test_record_is_finished_when_the_next_is_asked_for() -> None:
    queue = buffer()
    queue.put([record(0, 5), record(0, 6)])
    assert queue.take() == record(0, 5)
    assert queue.finished() == {}
    assert queue.take() == record(0, 6)
    assert queue.finished() == {P[0]: 6}
    assert queue.take() is None
    assert queue.finished() == {P[0]: 7}


def test_explicit_commit_counts_the_record_that_is_out() -> None:
    queue = buffer()
    queue.put([record(0, 5)])
    queue.take()
    assert queue.finished(with_current=True) == {P[0]: 6}


def test_revoked_partition_counts_no_more() -> None:
    queue = buffer()
    queue.put([record(0, 1), record(1, 1), record(0, 2)])
    queue.take()
    queue.drop({P[0]})
    assert queue.take() == record(1, 1)
    assert queue.take() is None
    assert queue.finished() == {P[1]: 2}


def test_full_buffer_tells_when_it_is_half_empty_once() -> None:
    told: list[int] = []
    queue = StreamBuffer(4, lambda: told.append(len(queue)))
    queue.put(record(0, offset) for offset in range(4))
    assert queue.room == 0
    queue.is_full = True
    for _ in range(4):
        queue.take()
    assert told == [2]
    assert not queue.is_full
    assert queue.room == 4


def test_end_and_error_reach_a_taker_that_waits() -> None:
    queue = buffer()
    waiter = threading.Thread(target=queue.wait, args=(10,))
    waiter.start()
    queue.close()
    waiter.join(5)
    assert not waiter.is_alive()
    with pytest.raises(EOFError):
        queue.take()
    failed = buffer()
    failed.close(RuntimeError("no more"))
    with pytest.raises(RuntimeError, match="no more"):
        failed.take()
