"""Sticky assignments with racks: the outcomes that Kafka documents in its tests, and properties.

Three topics of 6, 7 and 2 partitions. Replicas go round the racks from one partition to the next, over all topics.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import MemberSubscription
from penstock.client.consumer.assignors.racks import Racks
from penstock.client.consumer.assignors.range import RangeAssignor
from penstock.client.consumer.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from penstock.client.core.types import ClusterSnapshot
from tests.unit.client.assignors.models import Given, check_valid, cluster, groups, told, tps
from tests.unit.client.assignors.test_sticky import can_improve, owning

COUNTS = {"t": 6, "u": 7, "v": 2}
EVEN = ("t0 t3 u0 u3 u6", "t1 t4 u1 u4 v0", "t2 t5 u2 u5 v1")
MISALIGNED = ("t0 t1 t2 t3 t4", "t5 u0 u1 u2 u3", "u4 u5 u6 v0 v1")
ALL, ONLY_SOME = ("tuv", "tuv", "tuv"), ("tuv", "tuv", "tv")
ASSIGNORS = [StickyAssignor, CooperativeStickyAssignor]
Assignors = type[StickyAssignor] | type[CooperativeStickyAssignor]


def replicated(racks: str, factor: int, counts: Mapping[str, int] = COUNTS) -> ClusterSnapshot:
    """A broker in each rack; `-` is one that tells none."""
    numbers = itertools.count()
    replicas = {
        TopicPartition(topic, partition): tuple((first + more) % len(racks) + 1 for more in range(factor))
        for topic, count in counts.items()
        for partition, first in zip(range(count), numbers, strict=False)
    }
    return cluster(counts, racks={n: "" if r == "-" else r for n, r in enumerate(racks, 1)}, replicas=replicas)


def members(topics: Sequence[str], racks: str, owned: Sequence[str] = ("", "", "")) -> dict[str, MemberSubscription]:
    return {
        f"m{index}": MemberSubscription(
            topics=tuple(read), rack=None if rack == "-" else rack, owned=tuple(tps(own)), generation_id=1
        )
        for index, (read, rack, own) in enumerate(zip(topics, racks, owned, strict=True))
    }


def far(snapshot: ClusterSnapshot, group: Mapping[str, MemberSubscription], given: Given) -> int:
    racks = Racks(snapshot, group, [topic for topic in COUNTS if topic in snapshot.topics])
    return sum(racks.is_far(member, one) for member, own in given.items() for one in own)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize(
    ("brokers", "factor", "consumers"),
    [
        # Racks are told by one side only, are everywhere, or are others.
        ("---", 3, "abc"), ("abc", 3, "---"), ("abc", 3, "abc"), ("abc", 3, "def"), ("abc", 3, "-ef"),
        # Each partition in one rack, in two; a member in a rack without brokers has its even share from elsewhere.
        ("abc", 1, "abc"), ("abc", 2, "abc"), ("ab", 2, "abc"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_second_round", [False, True])
def test_members_that_read_the_same(
    assignor: Assignors, brokers: str, factor: int, consumers: str, is_second_round: bool
) -> None:
    group = members(ALL, consumers, EVEN if is_second_round else ("", "", ""))
    given = assignor().assign(replicated(brokers, factor), group)
    assert tuple(told(given).values()) == EVEN


def test_owned_partitions_move_into_their_rack() -> None:
    snapshot, group = replicated("abc", 1), members(ALL, "abc", MISALIGNED)
    assert tuple(told(StickyAssignor().assign(snapshot, group)).values()) == EVEN
    # Those that go to another member are given up first.
    given = CooperativeStickyAssignor().assign(snapshot, group)
    assert tuple(told(given).values()) == ("t0 t3", "u1", "u5 v1")


@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize(("factor", "far_in_kafka"), [(1, 4), (2, 0)])
def test_members_that_read_different_topics(assignor: Assignors, factor: int, far_in_kafka: int) -> None:
    snapshot, group = replicated("abc", factor), members(ONLY_SOME, "abc")
    given = assignor().assign(snapshot, group)
    check_valid(COUNTS, group, given)
    assert [len(own) for own in given.values()] == [5, 5, 5]
    assert far(snapshot, group, given) <= far_in_kafka
    again = assignor().assign(snapshot, owning(group, given, 2))
    assert told(again) == told(given)


THREE_EQUAL = {"t": 5, "u": 5, "v": 5}
PAIRED = {"t": 6, "u": 6, "v": 2, "w": 2}
TOGETHER = ("t0 t1 u0 u1 v0 v1", "t2 t3 u2 u3 v2 v3", "t4 u4 v4")


@pytest.mark.parametrize(
    ("counts", "topics", "racks", "brokers", "factor", "expected"),
    [
        (COUNTS, ALL, "abc", "abc", 1, EVEN),
        (COUNTS, ALL, "abc", "abc", 2, ("t0 t2 u0 u2 u3 v1", "t1 t3 u1 u4 v0", "t4 t5 u5 u6")),
        (COUNTS, ALL, "abc", "ab", 2, ("t0 t1 u0 u1 u2 v0", "t2 t3 u3 u4 v1", "t4 t5 u5 u6")),
        (COUNTS, ONLY_SOME, "abc", "abc", 1, ("t0 t3 u0 u2 u3 u6", "t1 t4 u1 u4 u5 v0", "t2 t5 v1")),
        (COUNTS, ONLY_SOME, "abc", "abc", 2, ("t0 t2 u0 u2 u3 u5 v1", "t1 t3 u1 u4 u6 v0", "t4 t5")),
        # Topics of the same size stay together, even where all of it is far.
        (THREE_EQUAL, ALL, "abc", "abc", 1, TOGETHER),
        (THREE_EQUAL, ALL, "abc", "abc", 2, TOGETHER),
        (THREE_EQUAL, ONLY_SOME, "abc", "abc", 1, ("t0 t1 u0 u1 u4 v0 v1", "t2 t3 u2 u3 v2 v3", "t4 v4")),
        (THREE_EQUAL, ONLY_SOME, "abc", "abc", 2, ("t2 u0 u1 u3 v2", "t0 t3 u2 u4 v0 v3", "t1 t4 v1 v4")),
        (
            PAIRED, ("tu", "tu", "vw", "vw"), "abba", "ab", 1,
            ("t0 t2 t4 u0 u2 u4", "t1 t3 t5 u1 u3 u5", "v1 w1", "v0 w0"),
        ),
        (
            PAIRED, ("tuvw",) * 4, "abba", "ab", 1,
            ("t0 t2 u0 u2 v0 w0", "t1 t3 u1 u3 v1 w1", "t5 u5", "t4 u4"),
        ),
        (
            PAIRED, ("tuvw",) * 4, "abba", "abc", 1,
            ("t0 t3 u0 u3 v0 w0", "t1 t4 u1 u4 v1 w1", "t2 u2", "t5 u5"),
        ),
    ],
)  # fmt: skip
def test_range(
    counts: dict[str, int], topics: Sequence[str], racks: str, brokers: str, factor: int, expected: Sequence[str]
) -> None:
    group = members(topics, racks, ("",) * len(topics))
    given = RangeAssignor().assign(replicated(brokers, factor, counts), group)
    assert tuple(" ".join(sorted(each.split())) for each in told(given).values()) == tuple(expected)


@given(groups(equal=False), st.data())
def test_racks_cost_nothing_in_balance_and_settle(
    group: tuple[dict[str, int], dict[str, MemberSubscription]], data: st.DataObject
) -> None:
    known, plain = group
    rack = st.sampled_from(["a", "b", "c", None])
    told_racks = {member: replace(one, rack=data.draw(rack)) for member, one in plain.items()}
    snapshot = replicated("abc", data.draw(st.integers(1, 3)), known)
    near = StickyAssignor().assign(snapshot, told_racks)
    check_valid(known, told_racks, near)
    assert not can_improve(near, told_racks)
    without = StickyAssignor().assign(snapshot, plain)
    assert sorted(map(len, near.values())) == sorted(map(len, without.values()))
    racks = Racks(snapshot, told_racks, known)

    def distance(given: Given) -> int:
        return sum(racks.is_far(member, one) for member, own in given.items() for one in own)

    assert distance(near) <= distance(without)
    again = StickyAssignor().assign(snapshot, owning(told_racks, near, 9))
    assert told(again) == told(near)
