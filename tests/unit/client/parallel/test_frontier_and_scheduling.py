"""Commits never pass an unfinished record, and order is kept where it was promised."""

from __future__ import annotations

import random
from collections import defaultdict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.consumer.parallel.frontier import Frontier
from penstock.client.consumer.parallel.scheduling import Order, Scheduler, Work
from penstock.records.record import ConsumerRecord


def record(partition: int, offset: int, key: bytes | None) -> ConsumerRecord:
    return ConsumerRecord("t", partition, offset, 0, 0, key, b"v", (), 0)


@given(st.sets(st.integers(0, 1000), min_size=1, max_size=40), st.randoms(use_true_random=False))
def test_frontier_is_the_lowest_unfinished_offset(offsets: set[int], rng: random.Random) -> None:
    frontier = Frontier()
    for offset in sorted(offsets):
        frontier.begun(offset)
    left = set(offsets)
    order = list(offsets)
    rng.shuffle(order)
    for offset in order:
        assert frontier.offset == min(left)
        assert frontier.unfinished == len(left)
        left.discard(offset)
        frontier.finished(offset)
    assert frontier.offset == max(offsets) + 1
    assert frontier.unfinished == 0
    assert frontier.has_news


def test_frontier_without_records_has_nothing_to_commit() -> None:
    frontier = Frontier()
    assert not frontier.has_news
    assert frontier.offset == -1
    frontier.begun(10)
    assert not frontier.has_news
    assert frontier.offset == 10
    with pytest.raises(ValueError, match="ascending"):
        frontier.begun(10)


_records = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([None, b"a", b"b", b"c"])), max_size=60)


@given(_records, st.sampled_from(list(Order)), st.integers(1, 6), st.randoms(use_true_random=False))
def test_lanes_keep_their_order_and_everything_is_done(
    rows: list[tuple[int, bytes | None]], order: Order, workers: int, rng: random.Random
) -> None:
    scheduler = Scheduler(order)
    frontiers: defaultdict[int, Frontier] = defaultdict(Frontier)
    for offset, (partition, key) in enumerate(rows):
        scheduler.add(record(partition, offset, key), frontiers[partition])
    running: list[Work] = []
    done: list[ConsumerRecord] = []
    while True:
        while len(running) < workers and (work := scheduler.next()) is not None:
            running.append(work)
        if not running:
            break
        lanes = [work.lane for work in running if work.lane is not None]
        assert len(lanes) == len(set(lanes)), "two of a lane at once"
        work = running.pop(rng.randrange(len(running)))
        scheduler.finished(work)
        done.append(work.record)
    assert len(done) == len(rows)
    assert scheduler.waiting == 0
    assert not scheduler._lanes
    by_lane: defaultdict[object, list[int]] = defaultdict(list)
    for each in done:
        if order is Order.KEY and each.key is not None:
            by_lane[each.partition, each.key].append(each.offset)
        if order is Order.PARTITION:
            by_lane[each.partition].append(each.offset)
    assert all(offsets == sorted(offsets) for offsets in by_lane.values())


@given(_records, st.sampled_from(list(Order)), st.integers(0, 10), st.randoms(use_true_random=False))
def test_dropped_partitions_leave_nothing_behind(
    rows: list[tuple[int, bytes | None]], order: Order, started: int, rng: random.Random
) -> None:
    scheduler = Scheduler(order)
    frontiers: defaultdict[int, Frontier] = defaultdict(Frontier)
    for offset, (partition, key) in enumerate(rows):
        scheduler.add(record(partition, offset, key), frontiers[partition])
    running = [work for _ in range(started) if (work := scheduler.next()) is not None]
    scheduler.drop({TopicPartition("t", 0), TopicPartition("t", 1)})
    rng.shuffle(running)
    for work in running:
        scheduler.finished(work)
    rest: list[Work] = []
    while (work := scheduler.next()) is not None:
        rest.append(work)
        scheduler.finished(work)
    assert {work.record.partition for work in rest} <= {2}
    assert scheduler.waiting == 0
    assert not scheduler._lanes
    assert all(frontier.running == 0 for frontier in frontiers.values())
    if 2 in frontiers:
        assert frontiers[2].unfinished == 0


@given(_records, st.sampled_from(list(Order)), st.integers(0, 10), st.randoms(use_true_random=False))
def test_trimmed_partitions_end_without_a_gap(
    rows: list[tuple[int, bytes | None]], order: Order, started: int, rng: random.Random
) -> None:
    scheduler = Scheduler(order)
    frontiers: defaultdict[int, Frontier] = defaultdict(Frontier)
    for offset, (partition, key) in enumerate(rows):
        scheduler.add(record(partition, offset, key), frontiers[partition])
    running = [work for _ in range(started) if (work := scheduler.next()) is not None]
    scheduler.trim({TopicPartition("t", number) for number in range(3)})
    done: list[tuple[int, int]] = []
    while running or (work := scheduler.next()) is not None:
        if not running:
            running.append(work)
        ended = running.pop(rng.randrange(len(running)))
        done.append((ended.record.partition, ended.record.offset))
        scheduler.finished(ended)
    assert scheduler.waiting == 0
    for partition, frontier in frontiers.items():
        assert frontier.waiting == frontier.running == 0
        assert all(offset < frontier.offset for number, offset in done if number == partition)
