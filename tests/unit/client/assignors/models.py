"""Clusters and groups for the assignors' tests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from hypothesis import strategies as st

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import MemberSubscription
from penstock.client.core.types import ClusterSnapshot, Node, PartitionInfo, TopicInfo

Given = Mapping[str, Sequence[TopicPartition]]
TOPICS = ("a", "b", "c", "d")


def cluster(
    counts: Mapping[str, int],
    *,
    racks: Mapping[int, str] | None = None,
    replicas: Mapping[TopicPartition, tuple[int, ...]] | None = None,
) -> ClusterSnapshot:
    nodes = {number: Node(number, "host", 9092, (racks or {}).get(number)) for number in (racks or {1: ""})}

    def info(topic: str, number: int) -> PartitionInfo:
        where = (replicas or {}).get(TopicPartition(topic, number), (1,))
        return PartitionInfo(topic=topic, partition=number, leader=where[0], leader_epoch=0, replicas=where, isr=where)

    topics = {
        topic: TopicInfo(name=topic, partitions=tuple(info(topic, number) for number in range(count)))
        for topic, count in counts.items()
    }
    return ClusterSnapshot(nodes=MappingProxyType(nodes), topics=MappingProxyType(topics), version=1)


def tps(text: str) -> list[TopicPartition]:
    """`a0 a1 b0`."""
    return [TopicPartition(one[0], int(one[1:])) for one in text.split()]


def told(given: Given) -> dict[str, str]:
    return {member: " ".join(f"{one.topic}{one.partition}" for one in own) for member, own in given.items()}


counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(1, 9), min_size=1)


@st.composite
def groups(
    draw: st.DrawFn, *, equal: bool, members_max: int = 8
) -> tuple[dict[str, int], dict[str, MemberSubscription]]:
    """Partition counts, and members with what they claim, honestly or not."""
    known = draw(counts)
    number = draw(st.integers(1, members_max))
    common = tuple(draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)))
    members = {}
    for index in range(number):
        topics = common if equal else tuple(draw(st.lists(st.sampled_from(TOPICS), min_size=1, unique=True)))
        members[f"m{index}"] = MemberSubscription(
            topics=topics,
            owned=tuple(draw(_claims(known))),
            generation_id=draw(st.integers(-1, 3)),
            instance_id=draw(st.none() | st.just(f"i{index}")),
        )
    return known, members


def _claims(known: Mapping[str, int]) -> st.SearchStrategy[list[TopicPartition]]:
    every = [TopicPartition(topic, number) for topic, count in known.items() for number in range(count + 2)]
    return st.lists(st.sampled_from(every), unique=True, max_size=12)


def check_valid(known: Mapping[str, int], members: Mapping[str, MemberSubscription], given: Given) -> None:
    """Every partition that somebody reads has one owner, who reads it; nothing else is given."""
    assert given.keys() == members.keys()
    everything = [one for own in given.values() for one in own]
    assert len(everything) == len(set(everything))
    read = {topic for one in members.values() for topic in one.topics if topic in known}
    assert set(everything) == {TopicPartition(topic, number) for topic in read for number in range(known[topic])}
    for member, own in given.items():
        assert {one.topic for one in own} <= set(members[member].topics)
