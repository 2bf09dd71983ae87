"""Decisions about topics, with Kafka's codes and words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import new_uuid
from penstock.controller.names import invalid_name_reason
from penstock.controller.placement import place_replicas
from penstock.controller.topics import (
    PARTITIONS_PER_REQUEST_MAX,
    NewTopic,
    NewTopicResult,
    TopicReference,
    TopicRules,
    check_topic_name,
    plan_create_topics,
    plan_delete_topics,
)
from penstock.metadata.deltas import BrokerRegistered, TopicCreated, TopicDeleted
from penstock.metadata.image import BrokerRegistration, ClusterImage


def validate(configs: Mapping[str, str]) -> None:
    if "bad" in configs:
        raise KafkaError(ErrorCode.INVALID_CONFIG, "Unknown topic config name: bad")


def rules(seed: int = 0) -> TopicRules:
    rng = Random(seed)
    return TopicRules(
        default_num_partitions=3,
        default_replication_factor=1,
        validate_configs=validate,
        new_topic_id=lambda: new_uuid(rng),
        random_below=rng.randrange,
    )


def cluster(brokers: int = 1, racks: int = 0) -> ClusterImage:
    registrations = [
        BrokerRegistration(id=each, epoch=each + 1, rack=f"r{each % racks}" if racks else None)
        for each in range(brokers)
    ]
    return ClusterImage().apply(1, [BrokerRegistered(broker=each) for each in registrations])


def with_topics(image: ClusterImage, *names: str) -> ClusterImage:
    deltas, _ = plan_create_topics(image, [NewTopic(name=name) for name in names], rules())
    return image.apply(image.version + 1, deltas)


def create(topic: NewTopic, image: ClusterImage | None = None) -> NewTopicResult:
    deltas, (result,) = plan_create_topics(image or cluster(), [topic], rules())
    assert bool(deltas) is (result.error is ErrorCode.NONE)
    return result


def test_defaults_apply_where_nothing_is_said() -> None:
    result = create(NewTopic(name="t"))
    assert (result.error, result.message) == (ErrorCode.NONE, None)
    assert (result.num_partitions, result.replication_factor) == (3, 1)
    assert result.topic_id.int


def test_a_created_topic_starts_at_epoch_zero_with_its_leader_in_front() -> None:
    image = cluster(3)
    deltas, _ = plan_create_topics(image, [NewTopic(name="t", num_partitions=6, replication_factor=3)], rules())
    (delta,) = deltas
    assert isinstance(delta, TopicCreated)
    for state in delta.topic.partitions:
        assert (state.leader_epoch, state.partition_epoch) == (0, 0)
        assert state.isr == state.replicas
        assert state.leader == state.replicas[0]
    assert Counter(state.leader for state in delta.topic.partitions) == {0: 2, 1: 2, 2: 2}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "Topic name is invalid: the empty string is not allowed"),
        (".", "Topic name is invalid: '.' is not allowed"),
        ("..", "Topic name is invalid: '..' is not allowed"),
        (
            "x" * 250,
            f"Topic name is invalid: the length of '{'x' * 250}' is longer than the max allowed length 249",
        ),
        (
            "a b",
            "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'",
        ),
        (
            "a\n",
            "Topic name is invalid: 'a\n' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'",
        ),
        (
            "ä",
            "Topic name is invalid: 'ä' contains one or more characters other than ASCII alphanumerics, '.', '_' "
            "and '-'",
        ),
    ],
)
def test_invalid_names(name: str, message: str) -> None:
    result = create(NewTopic(name=name))
    assert (result.error, result.message) == (ErrorCode.INVALID_TOPIC_EXCEPTION, message)
    with pytest.raises(KafkaError) as caught:
        check_topic_name(name)
    assert caught.value.message == message


@given(st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True))
def test_legal_names(name: str) -> None:
    assert (invalid_name_reason(name) is None) is (name not in (".", ".."))


def test_an_existing_topic() -> None:
    result = create(NewTopic(name="t"), with_topics(cluster(), "t"))
    assert (result.error, result.message) == (ErrorCode.TOPIC_ALREADY_EXISTS, "Topic 't' already exists.")


def test_an_existing_topic_is_named_as_such_although_it_collides_with_itself() -> None:
    result = create(NewTopic(name="a.b"), with_topics(cluster(), "a.b"))
    assert result.error is ErrorCode.TOPIC_ALREADY_EXISTS


def test_names_that_share_their_metrics_collide() -> None:
    result = create(NewTopic(name="a_b"), with_topics(cluster(), "a.b", "other_topic"))
    assert (result.error, result.message) == (
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        "Topic 'a_b' collides with existing topic: a.b",
    )


def test_names_of_one_request_collide_too() -> None:
    _, results = plan_create_topics(cluster(), [NewTopic(name="a.b"), NewTopic(name="a_b")], rules())
    assert [each.error for each in results] == [ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION]


def test_a_name_twice_in_one_request_creates_nothing() -> None:
    deltas, results = plan_create_topics(
        cluster(), [NewTopic(name="t"), NewTopic(name="u"), NewTopic(name="t")], rules()
    )
    assert [(each.name, each.error) for each in results] == [
        ("t", ErrorCode.INVALID_REQUEST),
        ("u", ErrorCode.NONE),
    ]
    assert results[0].message == "Duplicate topic name."
    assert len(deltas) == 1


def test_kafkas_own_metadata_topic_is_prohibited() -> None:
    result = create(NewTopic(name="__cluster_metadata"))
    assert (result.error, result.message) == (
        ErrorCode.INVALID_REQUEST,
        "Creation of internal topic __cluster_metadata is prohibited.",
    )


@pytest.mark.parametrize("count", [0, -2])
def test_partition_counts_are_positive_or_default(count: int) -> None:
    result = create(NewTopic(name="t", num_partitions=count))
    assert (result.error, result.message) == (
        ErrorCode.INVALID_PARTITIONS,
        "Number of partitions was set to an invalid non-positive value.",
    )


@pytest.mark.parametrize("factor", [0, -2])
def test_replication_factors_are_positive_or_default(factor: int) -> None:
    result = create(NewTopic(name="t", replication_factor=factor))
    assert (result.error, result.message) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    )


def test_more_replicas_than_brokers() -> None:
    result = create(NewTopic(name="t", replication_factor=2))
    assert (result.error, result.message) == (
        ErrorCode.INVALID_REPLICATION_FACTOR,
        "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached because "
        "only 1 broker(s) are registered.",
    )


def test_no_broker_at_all() -> None:
    assert create(NewTopic(name="t"), ClusterImage()).error is ErrorCode.INVALID_REPLICATION_FACTOR


def test_partitions_of_one_request_are_bounded() -> None:
    half = PARTITIONS_PER_REQUEST_MAX // 2 + 1
    _, results = plan_create_topics(
        cluster(), [NewTopic(name="t", num_partitions=half), NewTopic(name="u", num_partitions=half)], rules()
    )
    assert [each.error for each in results] == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]
    assert create(NewTopic(name="t", num_partitions=2**31 - 1)).error is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        ([(0, [0]), (0, [1])], "Found multiple manual partition assignments for partition 0"),
        ([(0, [])], "The manual partition assignment includes an empty replica list."),
        ([(0, [7])], "The manual partition assignment includes broker 7, but no such broker is registered."),
        ([(0, [1, 0, 1])], "The manual partition assignment includes the broker 1 more than once."),
        ([(0, [0]), (2, [0])], "partitions should be a consecutive 0-based integer sequence"),
        (
            [(0, [0, 1]), (1, [0])],
            "The manual partition assignment includes a partition with 1 replica(s), but this is not consistent with "
            "previous partitions, which have 2 replica(s).",
        ),
    ],
)
def test_bad_assignments(assignments: list[tuple[int, list[int]]], message: str) -> None:
    result = create(NewTopic(name="t", assignments=assignments), cluster(2))
    assert (result.error, result.message) == (ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)


@pytest.mark.parametrize(("partitions", "factor", "word"), [(1, -1, "numPartitions"), (-1, 1, "replication factor")])
def test_assignments_exclude_counts(partitions: int, factor: int, word: str) -> None:
    result = create(NewTopic(name="t", assignments=[(0, [0])], num_partitions=partitions, replication_factor=factor))
    assert (result.error, result.message) == (
        ErrorCode.INVALID_REQUEST,
        f"A manual partition assignment was specified, but {word} was not set to -1.",
    )


def test_assignments_are_taken_as_given() -> None:
    deltas, (result,) = plan_create_topics(
        cluster(3), [NewTopic(name="t", assignments=[(1, [2, 0]), (0, [1, 2])])], rules()
    )
    (delta,) = deltas
    assert isinstance(delta, TopicCreated)
    assert [state.replicas for state in delta.topic.partitions] == [(1, 2), (2, 0)]
    assert (result.num_partitions, result.replication_factor) == (2, 2)


def test_configs_are_validated_and_kept() -> None:
    assert create(NewTopic(name="t", configs=[("retention.ms", "5")])).configs == {"retention.ms": "5"}
    bad = create(NewTopic(name="t", configs=[("bad", "5")]))
    assert (bad.error, bad.message) == (ErrorCode.INVALID_CONFIG, "Unknown topic config name: bad")
    null = create(NewTopic(name="t", configs=[("x", None), ("y", None)]))
    assert (null.error, null.message) == (
        ErrorCode.INVALID_CONFIG,
        "Null value not supported for topic configs: x,y",
    )


def test_one_bad_topic_does_not_stop_the_others() -> None:
    deltas, results = plan_create_topics(
        cluster(), [NewTopic(name="a b"), NewTopic(name="t"), NewTopic(name="u", num_partitions=0)], rules()
    )
    assert [each.error for each in results] == [
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.NONE,
        ErrorCode.INVALID_PARTITIONS,
    ]
    assert len(deltas) == 1


# -- Placement -----------------------------------------------------------------------------------------------------


@given(
    brokers=st.integers(1, 8),
    racks=st.integers(0, 4),
    partitions=st.integers(1, 40),
    factor=st.integers(1, 8),
    seed=st.integers(0, 99),
)
def test_placement_spreads_over_brokers_and_racks(
    brokers: int, racks: int, partitions: int, factor: int, seed: int
) -> None:
    factor = min(factor, brokers)
    image = cluster(brokers, racks)
    placed = place_replicas(
        image.brokers.values(),
        partitions=partitions,
        replication_factor=factor,
        random_below=Random(seed).randrange,
    )
    assert len(placed) == partitions
    rack_of = {each.id: each.rack for each in image.brokers.values()}
    rack_count = len(set(rack_of.values()))
    for replicas in placed:
        assert len(set(replicas)) == factor
        assert len({rack_of[each] for each in replicas}) == min(factor, rack_count)
    if racks == 0 or brokers % racks == 0:
        leaders = Counter(replicas[0] for replicas in placed)
        most = max(leaders.values())
        assert most - min(leaders.get(each, 0) for each in range(brokers)) <= 1


# -- Deleting ------------------------------------------------------------------------------------------------------


def test_delete_by_name_and_by_id() -> None:
    image = with_topics(cluster(), "a", "b")
    deltas, results = plan_delete_topics(
        image, [TopicReference(name="a"), TopicReference(topic_id=image.topics["b"].id)]
    )
    assert [(each.name, each.topic_id, each.error) for each in results] == [
        ("a", image.topics["a"].id, ErrorCode.NONE),
        ("b", image.topics["b"].id, ErrorCode.NONE),
    ]
    assert all(isinstance(delta, TopicDeleted) for delta in deltas)
    assert image.apply(9, deltas).topics == {}


UNKNOWN = UUID(int=77)


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        (TopicReference(name="no"), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TopicReference(topic_id=UNKNOWN), ErrorCode.UNKNOWN_TOPIC_ID),
        (TopicReference(), ErrorCode.INVALID_REQUEST),
        (TopicReference(name="a", topic_id=UNKNOWN), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_deleted(reference: TopicReference, error: ErrorCode) -> None:
    deltas, (result,) = plan_delete_topics(with_topics(cluster(), "a"), [reference])
    assert deltas == []
    assert (result.name, result.topic_id, result.error) == (reference.name, reference.topic_id, error)


def test_a_topic_named_twice_is_not_deleted() -> None:
    image = with_topics(cluster(), "a", "b")
    deltas, results = plan_delete_topics(image, [TopicReference(name="a"), TopicReference(name="a")])
    assert (deltas, [each.error for each in results]) == ([], [ErrorCode.INVALID_REQUEST])
    both = [TopicReference(name="b"), TopicReference(topic_id=image.topics["b"].id)]
    deltas, results = plan_delete_topics(image, both)
    assert (deltas, [(each.name, each.error) for each in results]) == ([], [("b", ErrorCode.INVALID_REQUEST)])
