from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import Assignment, AssignorBase, MemberSubscription
from penstock.client.consumer.group.leading import make_assignments, read_members, shape_of, topics_of
from penstock.client.consumer.group.wire import (
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from penstock.client.errors import InvalidState
from penstock.protocol.messages.join_group import JoinGroupResponseMember
from tests.unit.client.assignors.models import cluster, tps

names = st.text("abc", min_size=1, max_size=3)
partitions = st.lists(st.builds(TopicPartition, names, st.integers(0, 100)), unique=True)


@given(st.lists(names, unique=True), partitions, st.none() | st.binary(), st.integers(-1, 2**31 - 1), st.none() | names)
def test_subscriptions_go_there_and_back(
    topics: list[str], owned: list[TopicPartition], data: bytes | None, generation: int, rack: str | None
) -> None:
    told = MemberSubscription(
        topics=tuple(sorted(topics)),
        owned=tuple(sorted(owned)),
        user_data=data,
        generation_id=generation,
        rack=rack,
        instance_id="i",
    )
    assert decode_subscription(encode_subscription(told), "i") == told


@given(partitions, st.none() | st.binary())
def test_assignments_go_there_and_back(given_partitions: list[TopicPartition], data: bytes | None) -> None:
    told = Assignment(partitions=tuple(sorted(given_partitions)), user_data=data)
    assert decode_assignment(encode_assignment(told)) == told


def test_a_subscription_in_bytes() -> None:
    told = MemberSubscription(topics=("t",), owned=tuple(tps("t0")), generation_id=7, rack="r")
    parts = [
        "0003",  # version
        "00000001000174",  # topics
        "ffffffff",  # no user data
        "000000010001740000000100000000",  # owned
        "00000007",  # generation
        "000172",  # rack
    ]
    assert encode_subscription(told) == bytes.fromhex("".join(parts))


def test_older_and_newer_versions() -> None:
    oldest = bytes.fromhex("000000000001000174ffffffff")
    assert decode_subscription(oldest) == MemberSubscription(topics=("t",))
    newer = bytes.fromhex("0009") + encode_subscription(MemberSubscription(topics=("t",)))[2:] + b"more"
    assert decode_subscription(newer) == MemberSubscription(topics=("t",))
    assert decode_assignment(b"") == Assignment()


def test_the_leader_reads_members() -> None:
    data = encode_subscription(MemberSubscription(topics=("a", "b")))
    members = read_members([JoinGroupResponseMember(member_id="m", group_instance_id="i", metadata=data)])
    assert members == {"m": MemberSubscription(topics=("a", "b"), instance_id="i")}
    assert topics_of(members) == {"a", "b"}
    nowhere: frozenset[str] = frozenset()
    assert shape_of(cluster({"a": 2}), ["a", "b"], with_racks=False) == {"a": (nowhere, nowhere), "b": ()}


def test_to_a_leader_with_a_rack_moved_replicas_are_another_shape() -> None:
    racks, here = {1: "r1", 2: "r2"}, TopicPartition("a", 0)
    before = cluster({"a": 1}, racks=racks, replicas={here: (1,)})
    after = cluster({"a": 1}, racks=racks, replicas={here: (2,)})
    assert shape_of(before, ["a", "b"], with_racks=True) == {"a": (frozenset({"r1"}),), "b": ()}
    assert shape_of(after, ["a"], with_racks=True) != shape_of(before, ["a"], with_racks=True)
    assert shape_of(after, ["a"], with_racks=False) == shape_of(before, ["a"], with_racks=False)


class Fixed(AssignorBase):
    name = "fixed"

    def __init__(self, given_partitions: dict[str, str]) -> None:
        self._given = {member: tps(text) for member, text in given_partitions.items()}

    def assign(self, cluster: object, subscriptions: object) -> dict[str, list[TopicPartition]]:
        return self._given


def test_members_that_an_assignor_forgot_get_nothing() -> None:
    group = {"m": MemberSubscription(topics=("a",)), "n": MemberSubscription(topics=("a",))}
    made = make_assignments(Fixed({"m": "a0"}), cluster({"a": 1}), group)
    assert made == {"m": Assignment(partitions=tuple(tps("a0"))), "n": Assignment()}


@pytest.mark.parametrize(
    ("given_partitions", "text"),
    [
        ({"x": "a0"}, "not in the group"),
        ({"m": "b0"}, "does not read that topic"),
        ({"m": "a0", "n": "a0"}, "to m and to n"),
    ],
)
def test_an_assignor_that_does_wrong(given_partitions: dict[str, str], text: str) -> None:
    group = {"m": MemberSubscription(topics=("a",)), "n": MemberSubscription(topics=("a",))}
    with pytest.raises(InvalidState, match=text):
        make_assignments(Fixed(given_partitions), cluster({"a": 1, "b": 1}), group)
