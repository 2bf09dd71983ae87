from __future__ import annotations

import pytest
from hypothesis import given

from penstock.client.consumer.assignors.base import MemberSubscription
from penstock.client.consumer.assignors.round_robin import RoundRobinAssignor
from tests.unit.client.assignors.models import check_valid, cluster, groups, told


@pytest.mark.parametrize(
    ("counts", "topics", "expected"),
    [
        ({"a": 3, "b": 3}, ["ab", "ab"], {"m0": "a0 a2 b1", "m1": "a1 b0 b2"}),
        ({"a": 1, "b": 2, "c": 3}, ["a", "ab", "abc"], {"m0": "a0", "m1": "b0", "m2": "b1 c0 c1 c2"}),
        ({"a": 2}, ["a", "x"], {"m0": "a0 a1", "m1": ""}),
    ],
)
def test_vectors(counts: dict[str, int], topics: list[str], expected: dict[str, str]) -> None:
    group = {f"m{index}": MemberSubscription(topics=tuple(text)) for index, text in enumerate(topics)}
    assert told(RoundRobinAssignor().assign(cluster(counts), group)) == expected


@given(groups(equal=True))
def test_even_where_all_read_the_same(group: tuple[dict[str, int], dict[str, MemberSubscription]]) -> None:
    known, subscriptions = group
    given = RoundRobinAssignor().assign(cluster(known), subscriptions)
    check_valid(known, subscriptions, given)
    sizes = [len(own) for own in given.values()]
    assert max(sizes) - min(sizes) <= 1


@given(groups(equal=False))
def test_valid(group: tuple[dict[str, int], dict[str, MemberSubscription]]) -> None:
    known, subscriptions = group
    check_valid(known, subscriptions, RoundRobinAssignor().assign(cluster(known), subscriptions))
