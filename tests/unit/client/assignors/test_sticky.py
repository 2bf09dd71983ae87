"""Both sticky assignors: valid, even, and nothing moves without need."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import Assignment, MemberSubscription
from penstock.client.consumer.assignors.sticky import (
    CooperativeStickyAssignor,
    StickyAssignor,
    decode_sticky,
    encode_sticky,
)
from penstock.client.core.types import ConsumerGroupMetadata
from tests.unit.client.assignors.models import Given, check_valid, cluster, groups, told, tps

Group = tuple[dict[str, int], dict[str, MemberSubscription]]


def reader(topics: str, owned: str = "", generation: int = 1) -> MemberSubscription:
    return MemberSubscription(topics=tuple(topics), owned=tuple(tps(owned)), generation_id=generation)


@pytest.mark.parametrize(
    ("counts", "group", "expected"),
    [
        ({"a": 3}, {"m0": reader("a"), "m1": reader("a")}, {"m0": "a0 a2", "m1": "a1"}),
        # A third member takes one of each, the rest stays.
        (
            {"a": 6},
            {"m0": reader("a", "a0 a2 a4"), "m1": reader("a", "a1 a3 a5"), "m2": reader("a")},
            {"m0": "a0 a2", "m1": "a1 a3", "m2": "a4 a5"},
        ),
        # The larger share stays with the one who had it.
        ({"a": 3}, {"m0": reader("a", "a0"), "m1": reader("a", "a1 a2")}, {"m0": "a0", "m1": "a1 a2"}),
        # Of two claims, that of the later generation counts.
        ({"a": 2}, {"m0": reader("a", "a0 a1", 1), "m1": reader("a", "a0", 2)}, {"m0": "a1", "m1": "a0"}),
        # A chain: m0 gives to m1, which gives to m2.
        (
            {"a": 2, "b": 1},
            {"m0": reader("a", "a0 a1"), "m1": reader("ab", "b0"), "m2": reader("b")},
            {"m0": "a0", "m1": "a1", "m2": "b0"},
        ),
    ],
)
def test_vectors(counts: dict[str, int], group: dict[str, MemberSubscription], expected: dict[str, str]) -> None:
    assert told(StickyAssignor().assign(cluster(counts), group)) == expected


@given(groups(equal=True))
def test_even_and_nothing_moves_without_need(group: Group) -> None:
    known, subscriptions = group
    given = StickyAssignor().assign(cluster(known), subscriptions)
    check_valid(known, subscriptions, given)
    sizes = [len(own) for own in given.values()]
    assert max(sizes) - min(sizes) <= 1
    owners = honest_owners(subscriptions)
    had = {member: [one for own in given.values() for one in own if owners.get(one) == member] for member in given}
    least, extras = divmod(sum(sizes), len(sizes))
    most = sum(min(len(own), least) for own in had.values())
    most += min(extras, sum(len(own) > least for own in had.values()))
    assert sum(len(set(given[member]) & set(had[member])) for member in given) == most


@given(groups(equal=False))
def test_as_even_as_can_be_where_members_read_different_topics(group: Group) -> None:
    known, subscriptions = group
    given = StickyAssignor().assign(cluster(known), subscriptions)
    check_valid(known, subscriptions, given)
    assert not can_improve(given, subscriptions)


@given(groups(equal=False, members_max=3).filter(lambda one: sum(one[0].values()) <= 6))
def test_no_assignment_is_more_even(group: Group) -> None:
    known, subscriptions = group
    given = StickyAssignor().assign(cluster(known), subscriptions)
    partitions = [one for own in given.values() for one in own]
    choices = [[m for m, one in subscriptions.items() if tp.topic in one.topics] for tp in partitions]
    best = min(
        sum(list(chosen).count(member) ** 2 for member in subscriptions) for chosen in itertools.product(*choices)
    )
    assert sum(len(own) ** 2 for own in given.values()) == best


@given(groups(equal=False), st.booleans())
def test_a_second_round_changes_nothing(group: Group, cooperative: bool) -> None:
    known, subscriptions = group
    assignor = CooperativeStickyAssignor() if cooperative else StickyAssignor()
    honest = {m: replace(one, owned=(), user_data=None) for m, one in subscriptions.items()}
    first = assignor.assign(cluster(known), honest)
    again = assignor.assign(cluster(known), owning(honest, first, 7))
    assert {m: sorted(own) for m, own in again.items()} == {m: sorted(own) for m, own in first.items()}


@given(groups(equal=False), st.data())
def test_cooperative_never_gives_what_another_holds_and_settles(group: Group, data: st.DataObject) -> None:
    known, everyone = group
    honest = {m: replace(one, owned=(), user_data=None) for m, one in everyone.items()}
    names = sorted(honest)
    before = data.draw(st.sets(st.sampled_from(names), min_size=1))
    after = data.draw(st.sets(st.sampled_from(names), min_size=1))
    assignor = CooperativeStickyAssignor()
    given: Mapping[str, Sequence[TopicPartition]]
    given = assignor.assign(cluster(known), {m: honest[m] for m in before})
    for generation in range(1, 4):
        present = {m: honest[m] for m in after}
        held = {m: given[m] for m in after if m in given}
        given = assignor.assign(cluster(known), owning(present, held, generation))
        for member, own in given.items():
            others = {one for other, theirs in held.items() if other != member for one in theirs}
            assert not others & (set(own) - set(held.get(member, ())))
    check_valid(known, {m: honest[m] for m in after}, given)
    assert not can_improve(given, honest)


@given(groups(equal=False))
def test_cooperative_with_claims_that_contradict_each_other(group: Group) -> None:
    known, subscriptions = group
    given = CooperativeStickyAssignor().assign(cluster(known), subscriptions)
    everything = [one for own in given.values() for one in own]
    assert len(everything) == len(set(everything))
    for member, own in given.items():
        for one in set(own) - set(subscriptions[member].owned):
            assert not any(one in other.owned for other in subscriptions.values())


@given(st.lists(st.tuples(st.text(max_size=20), st.integers(0, 2**31 - 1)), unique=True), st.integers(-1, 2**31 - 1))
def test_user_data_goes_there_and_back(partitions: list[tuple[str, int]], generation: int) -> None:
    listed = tuple(TopicPartition(*one) for one in partitions)
    back, told_generation = decode_sticky(encode_sticky(listed, generation))
    assert (sorted(back), told_generation) == (sorted(listed), generation)


def test_user_data_in_bytes() -> None:
    # Array of one topic, its name, array of two partitions, then the generation: Java's schema, version 1.
    expected = bytes.fromhex("0000000100016100000002000000000000000300000005")
    assert encode_sticky(tuple(tps("a3 a0")), 5) == expected
    assert decode_sticky(expected[:-4]) == (tps("a0 a3"), -1)


@given(st.binary())
def test_foreign_user_data_counts_as_none(data: bytes) -> None:
    group = {"m0": MemberSubscription(topics=("a",), user_data=data)}
    for assignor in (StickyAssignor(), CooperativeStickyAssignor()):
        assert told(assignor.assign(cluster({"a": 2}), group)) == {"m0": "a0 a1"}


def test_a_member_remembers_what_it_had() -> None:
    assignor = StickyAssignor()
    assert assignor.subscription_user_data(frozenset("a")) is None
    assignor.on_assignment(Assignment(partitions=tuple(tps("a1"))), ConsumerGroupMetadata("g", 4))
    data = assignor.subscription_user_data(frozenset("a"))
    assert data is not None
    assert decode_sticky(data) == (tps("a1"), 4)
    group = {"m0": MemberSubscription(topics=("a",)), "m1": MemberSubscription(topics=("a",), user_data=data)}
    assert told(assignor.assign(cluster({"a": 2}), group)) == {"m0": "a0", "m1": "a1"}


# Models.


def owning(members: Mapping[str, MemberSubscription], given: Given, generation: int) -> dict[str, MemberSubscription]:
    return {
        member: replace(one, owned=tuple(given.get(member, ())), generation_id=generation)
        for member, one in members.items()
    }


def honest_owners(subscriptions: Mapping[str, MemberSubscription]) -> dict[TopicPartition, str]:
    """By looking at all claims of each partition."""
    found = {}
    for partition in {one for each in subscriptions.values() for one in each.owned}:
        claims = [(each.generation_id, m) for m, each in subscriptions.items() if partition in each.owned]
        latest = [m for generation, m in claims if generation == max(claims)[0]]
        if len(latest) == 1:
            found[partition] = latest[0]
    return found


def can_improve(given: Given, subscriptions: Mapping[str, MemberSubscription]) -> bool:
    """Whether partitions could be passed on from one member to one with at least two less, by any chain."""
    edges = {
        member: {
            other for one in own for other in given if other != member and one.topic in subscriptions[other].topics
        }
        for member, own in given.items()
    }
    for start, own in given.items():
        seen, waiting = {start}, [start]
        while waiting:
            for other in edges[waiting.pop()] - seen:
                if len(given[other]) <= len(own) - 2:
                    return True
                seen.add(other)
                waiting.append(other)
    return False
