"""The picture of the cluster: merging answers, epochs that must not go back, hints of new leaders."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.core.snapshot import NO_CLUSTER, is_incomplete, merge, with_leader, without
from penstock.client.core.types import ClusterSnapshot, Node
from penstock.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

ID, OTHER_ID = UUID(int=7), UUID(int=8)


def answer(*topics: MetadataResponseTopic, cluster_id: str = "c", nodes: tuple[int, ...] = (1, 2)) -> MetadataResponse:
    brokers = [MetadataResponseBroker(node_id=node, host=f"h{node}", port=9092, rack=None) for node in nodes]
    return MetadataResponse(brokers=brokers, cluster_id=cluster_id, controller_id=1, topics=list(topics))


def topic(name: str, *leaders: tuple[int, int], topic_id: UUID = ID, first: int = 0) -> MetadataResponseTopic:
    """`leaders` are (leader, epoch) by partition."""
    partitions = [
        MetadataResponsePartition(partition_index=first + index, leader_id=leader, leader_epoch=epoch)
        for index, (leader, epoch) in enumerate(leaders)
    ]
    return MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)


def leader_of(snapshot: ClusterSnapshot, name: str, partition: int = 0) -> int | None:
    return snapshot.leader(TopicPartition(name, partition))


def test_an_answer_becomes_a_snapshot() -> None:
    snapshot = merge(NO_CLUSTER, answer(topic("t", (1, 0), (-1, 0), (9, 0))))
    assert snapshot.version == 1
    assert snapshot.nodes[2] == Node(2, "h2", 9092, None)
    assert leader_of(snapshot, "t") == 1
    assert leader_of(snapshot, "t", 1) is None
    assert leader_of(snapshot, "t", 2) is None, "a leader without an address is none"
    assert leader_of(snapshot, "t", 3) is None
    assert leader_of(snapshot, "u") is None
    assert snapshot.available_partitions("t") == (0,)
    assert snapshot.partition_count("t") == 3
    assert snapshot.names_by_id == {ID: "t"}


def test_partitions_that_were_left_out_have_no_leader() -> None:
    snapshot = merge(NO_CLUSTER, answer(topic("t", (1, 0), first=2)))
    assert [each.leader for each in snapshot.topics["t"].partitions] == [None, None, 1]


def test_topics_that_were_not_asked_for_stay_if_they_are_to_be_kept() -> None:
    old = merge(NO_CLUSTER, answer(topic("a", (1, 0)), topic("b", (1, 0), topic_id=OTHER_ID)))
    partial = merge(old, answer(topic("c", (2, 0), topic_id=UUID(int=9))), keep={"a", "nowhere"})
    assert set(partial.topics) == {"a", "c"}
    assert set(partial.names_by_id.values()) == {"a", "c"}


def test_an_older_epoch_is_not_believed() -> None:
    old = merge(NO_CLUSTER, answer(topic("t", (2, 5))))
    assert leader_of(merge(old, answer(topic("t", (1, 4)))), "t") == 2
    assert leader_of(merge(old, answer(topic("t", (1, 5)))), "t") == 1
    assert leader_of(merge(old, answer(topic("t", (1, -1)))), "t") == 1, "an old broker knows no epochs"


def test_a_topic_made_anew_and_another_cluster_start_from_nothing() -> None:
    old = merge(NO_CLUSTER, answer(topic("t", (2, 5))))
    assert leader_of(merge(old, answer(topic("t", (1, 0), topic_id=OTHER_ID))), "t") == 1
    moved = merge(old, answer(topic("t", (1, 0)), cluster_id="d"), keep={"t"})
    assert leader_of(moved, "t") == 1
    assert moved.version == old.version + 1


def test_errors_are_told_with_the_topic() -> None:
    snapshot = merge(NO_CLUSTER, answer(MetadataResponseTopic(name="t", error_code=3)))
    assert snapshot.topics["t"].error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert snapshot.topics["t"].partitions == ()


def test_a_hint_moves_one_leader() -> None:
    old = merge(NO_CLUSTER, answer(topic("t", (1, 5), (1, 5))))
    tp = TopicPartition("t", 1)
    assert with_leader(old, tp, 2, 5) is old, "not newer"
    assert with_leader(old, tp, 9, 6) is old, "nowhere to go"
    assert with_leader(old, TopicPartition("u", 0), 2, 6) is old
    new = with_leader(old, tp, 9, 6, [Node(9, "h9", 1)])
    assert (leader_of(new, "t", 0), leader_of(new, "t", 1)) == (1, 9)
    assert new.version == old.version + 1
    assert leader_of(old, "t", 1) == 1, "the old one is untouched"


def test_topics_can_be_left_out() -> None:
    old = merge(NO_CLUSTER, answer(topic("a", (1, 0)), topic("b", (1, 0), topic_id=OTHER_ID)))
    assert without(old, ["x"]) is old
    assert set(without(old, ["a"]).topics) == {"b"}
    assert set(without(old, ["a"]).names_by_id) == {OTHER_ID}


def test_what_asks_for_another_look() -> None:
    assert is_incomplete(answer(MetadataResponseTopic(name="t", error_code=ErrorCode.LEADER_NOT_AVAILABLE)))
    missing = MetadataResponsePartition(partition_index=0, error_code=ErrorCode.LEADER_NOT_AVAILABLE, leader_id=-1)
    assert is_incomplete(answer(MetadataResponseTopic(name="t", partitions=[missing])))
    assert not is_incomplete(answer(topic("t", (1, 0))))
    assert not is_incomplete(answer(MetadataResponseTopic(name="t", error_code=ErrorCode.INVALID_TOPIC_EXCEPTION)))


@given(st.lists(st.tuples(st.sampled_from([1, 2]), st.integers(0, 9)), min_size=1, max_size=20))
def test_the_epoch_never_goes_back(told: list[tuple[int, int]]) -> None:
    snapshot, highest = NO_CLUSTER, -1
    for leader, epoch in told:
        snapshot = merge(snapshot, answer(topic("t", (leader, epoch))))
        info = snapshot.partition(TopicPartition("t", 0))
        assert info is not None
        assert info.leader_epoch == max(highest, epoch)
        highest = info.leader_epoch
