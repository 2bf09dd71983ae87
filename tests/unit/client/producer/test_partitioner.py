"""Which partition a record goes to: Java's hash, and three ways without a key."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from penstock.client.producer.accumulator import TopicQueues
from penstock.client.producer.partitioner import (
    RandomChoice,
    RoundRobin,
    Sticky,
    draw,
    murmur2,
    partition_for_key,
)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_murmur2_is_javas(key: bytes, expected: int) -> None:
    """The vectors of Kafka's own UtilsTest."""
    assert murmur2(key) == expected
    assert partition_for_key(key, 7) == (expected & 0x7FFFFFFF) % 7


def test_a_sticky_partition_changes_after_about_a_batch() -> None:
    sticky = Sticky(random.Random(1), switch_bytes=1000)
    chosen = sticky.next(range(100), [0] * 100)
    assert sticky.current == chosen
    assert not sticky.batch_closed(chosen, 600)
    assert sticky.current == chosen
    assert not sticky.batch_closed((chosen + 1) % 100, 5000), "keyed batches of other partitions do not count"
    assert sticky.batch_closed(chosen, 400)
    assert sticky.current == -1


def test_sticky_is_uniform_over_the_bytes() -> None:
    sticky = Sticky(random.Random(3), switch_bytes=100)
    written: Counter[int] = Counter()
    for _ in range(20_000):
        chosen = sticky.current if sticky.current >= 0 else sticky.next(range(5), [0] * 5)
        written[chosen] += 100
        sticky.batch_closed(chosen, 100)
    assert max(written.values()) < 1.1 * min(written.values())


def test_slow_partitions_are_drawn_less_often() -> None:
    rng = random.Random(5)
    counts = Counter(draw(rng, [7, 8, 9], [0, 3, 0]) for _ in range(9_000))
    assert counts[8] == pytest.approx(1_000, rel=0.2)
    assert counts[7] == pytest.approx(4_000, rel=0.1)


def test_equal_loads_are_drawn_alike_and_zero_total_is_no_trap() -> None:
    rng = random.Random(5)
    assert set(Counter(draw(rng, [1, 2], [4, 4]) for _ in range(100))) == {1, 2}


def test_round_robin_takes_turns() -> None:
    robin = RoundRobin()
    assert [robin.next([4, 5, 6], []) for _ in range(6)] == [5, 6, 4, 5, 6, 4]
    assert robin.current == -1


def test_random_reaches_every_partition() -> None:
    choice = RandomChoice(random.Random(2))
    assert {choice.next(range(4), []) for _ in range(200)} == set(range(4))


def test_partitions_without_a_leader_are_skipped() -> None:
    queues = TopicQueues("t", RoundRobin())
    queues.update(4, [1, 3])
    assert {queues.choose() for _ in range(10)} == {1, 3}
    queues.update(4, [])
    assert {queues.choose() for _ in range(8)} == {0, 1, 2, 3}, "all are down: any will do, and waits"


def test_a_sticky_partition_that_lost_its_leader_is_left() -> None:
    queues = TopicQueues("t", Sticky(random.Random(1), switch_bytes=100))
    queues.update(2, [0])
    assert queues.choose() == 0
    queues.update(2, [1])
    assert queues.choose() == 1
