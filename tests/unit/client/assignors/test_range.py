"""Range by vectors worked out from the documented algorithm, and by properties."""

from __future__ import annotations

import pytest
from hypothesis import given

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import MemberSubscription
from penstock.client.consumer.assignors.range import RangeAssignor
from tests.unit.client.assignors.models import check_valid, cluster, groups, told


def members(*topics: str, racks: tuple[str | None, ...] = ()) -> dict[str, MemberSubscription]:
    racks = racks or (None,) * len(topics)
    return {
        f"m{index}": MemberSubscription(topics=tuple(text), rack=rack)
        for index, (text, rack) in enumerate(zip(topics, racks, strict=True))
    }


@pytest.mark.parametrize(
    ("counts", "group", "expected"),
    [
        ({"a": 3}, members("a"), {"m0": "a0 a1 a2"}),
        ({"a": 3}, members("a", "a"), {"m0": "a0 a1", "m1": "a2"}),
        ({"a": 7}, members("a", "a", "a"), {"m0": "a0 a1 a2", "m1": "a3 a4", "m2": "a5 a6"}),
        ({"a": 2}, members("a", "a", "a"), {"m0": "a0", "m1": "a1", "m2": ""}),
        # Each topic by itself: the first members get the larger part of both.
        ({"a": 3, "b": 3}, members("ab", "ab"), {"m0": "a0 a1 b0 b1", "m1": "a2 b2"}),
        ({"a": 3, "b": 2}, members("a", "ab", "b"), {"m0": "a0 a1", "m1": "a2 b0", "m2": "b1"}),
        ({"a": 2}, members("ax", "x"), {"m0": "a0 a1", "m1": ""}),
    ],
)
def test_vectors(counts: dict[str, int], group: dict[str, MemberSubscription], expected: dict[str, str]) -> None:
    assert told(RangeAssignor().assign(cluster(counts), group)) == expected


def test_static_members_come_first_by_their_instance() -> None:
    group = {
        "z": MemberSubscription(topics=("a",), instance_id="1"),
        "b": MemberSubscription(topics=("a",)),
        "y": MemberSubscription(topics=("a",), instance_id="0"),
    }
    assert told(RangeAssignor().assign(cluster({"a": 3}), group)) == {"z": "a1", "b": "a2", "y": "a0"}


RACKS = {1: "r1", 2: "r2", 3: "r3"}


def test_members_get_partitions_of_their_rack() -> None:
    one_replica = {TopicPartition("a", number): (number % 3 + 1,) for number in range(6)}
    group = members("a", "a", "a", racks=("r3", "r2", "r1"))
    given = RangeAssignor().assign(cluster({"a": 6}, racks=RACKS, replicas=one_replica), group)
    assert told(given) == {"m0": "a2 a5", "m1": "a1 a4", "m2": "a0 a3"}


def test_racks_do_not_break_co_partitioning() -> None:
    replicas = {TopicPartition(topic, number): (number % 3 + 1,) for topic in "ab" for number in range(3)}
    group = members("ab", "ab", "ab", racks=("r3", "r1", "r2"))
    given = RangeAssignor().assign(cluster({"a": 3, "b": 3}, racks=RACKS, replicas=replicas), group)
    assert told(given) == {"m0": "a2 b2", "m1": "a0 b0", "m2": "a1 b1"}


def test_racks_of_co_partitioned_topics_that_disagree_are_left_aside() -> None:
    replicas = {TopicPartition("a", n): (n + 1,) for n in range(2)} | {
        TopicPartition("b", n): (2 - n,) for n in range(2)
    }
    group = members("ab", "ab", racks=("r1", "r2"))
    given = RangeAssignor().assign(cluster({"a": 2, "b": 2}, racks=RACKS, replicas=replicas), group)
    assert told(given) == {"m0": "a0 b0", "m1": "a1 b1"}


def test_racks_make_no_difference_where_every_partition_is_everywhere() -> None:
    replicas = {TopicPartition("a", number): (1, 2, 3) for number in range(3)}
    group = members("a", "a", "a", racks=("r3", "r2", "r1"))
    given = RangeAssignor().assign(cluster({"a": 3}, racks=RACKS, replicas=replicas), group)
    assert told(given) == {"m0": "a0", "m1": "a1", "m2": "a2"}


@given(groups(equal=False))
def test_valid_and_in_runs(group: tuple[dict[str, int], dict[str, MemberSubscription]]) -> None:
    known, subscriptions = group
    given = RangeAssignor().assign(cluster(known), subscriptions)
    check_valid(known, subscriptions, given)
    for topic in known:
        readers = [member for member, one in subscriptions.items() if topic in one.topics]
        numbers = {member: [one.partition for one in given[member] if one.topic == topic] for member in readers}
        sizes = [len(own) for own in numbers.values()]
        assert not sizes or max(sizes) - min(sizes) <= 1
        assert all(own == list(range(own[0], own[0] + len(own))) for own in numbers.values() if own)
