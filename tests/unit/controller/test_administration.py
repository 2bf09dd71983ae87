"""Decisions about partitions, settings, features, leaders and replicas, with Kafka's codes."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.configs import (
    AlterOperation,
    ConfigChange,
    ConfigChangeResult,
    ConfigResourceType,
    ConfigRules,
    ConfigStep,
    plan_alter_configs,
)
from penstock.controller.elections import Election, ElectionType, plan_elect_leaders
from penstock.controller.features import FeatureUpdate, UpgradeType, plan_update_features
from penstock.controller.new_partitions import MorePartitions, plan_create_partitions
from penstock.controller.reassignment import Reassignment, plan_reassign_partitions
from penstock.controller.topics import PARTITIONS_PER_REQUEST_MAX
from penstock.metadata.deltas import (
    BrokerConfigChanged,
    BrokerRegistered,
    Delta,
    FeatureChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicConfigChanged,
    TopicCreated,
)
from penstock.metadata.image import BrokerRegistration, ClusterImage, PartitionState, TopicState

TOPIC_ID = UUID(int=7)
SET, DELETE, APPEND, SUBTRACT = AlterOperation


def image(
    *partitions: PartitionState, brokers: tuple[int, ...] = (1,), configs: Mapping[str, str] | None = None
) -> ClusterImage:
    """A topic `t` with these partitions; one on broker 1 when none are given."""
    states = partitions or (PartitionState(replicas=(1,), isr=(1,), leader=1),)
    topic = TopicState(name="t", id=TOPIC_ID, partitions=states, configs=dict(configs or {}))
    deltas: list[Delta] = [BrokerRegistered(broker=BrokerRegistration(id=each, epoch=1)) for each in brokers]
    return ClusterImage().apply(1, [*deltas, TopicCreated(topic=topic)])


# -- Partitions ----------------------------------------------------------------------------------------------------


def add(count: int, *assignments: list[int], given: bool = False) -> MorePartitions:
    return MorePartitions(name="t", count=count, assignments=assignments if assignments or given else None)


def test_new_partitions_follow_the_present_ones() -> None:
    deltas, (result,) = plan_create_partitions(image(), [add(4)], lambda below: 0)
    assert result.error is ErrorCode.NONE
    (added,) = deltas
    assert isinstance(added, PartitionsAdded)
    assert (added.topic_id, added.first_index, len(added.partitions)) == (TOPIC_ID, 1, 3)
    assert set(added.partitions) == {PartitionState(replicas=(1,), isr=(1,), leader=1)}
    assert len(image().apply(2, deltas).topics["t"].partitions) == 4


def test_new_partitions_have_the_replicas_of_the_first() -> None:
    two = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)
    deltas, _ = plan_create_partitions(image(two, brokers=(1, 2, 3)), [add(3)], lambda below: 0)
    assert all(len(state.replicas) == 2 for state in deltas[0].partitions)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (add(1), ErrorCode.INVALID_PARTITIONS),
        (add(0), ErrorCode.INVALID_PARTITIONS),
        (add(-5), ErrorCode.INVALID_PARTITIONS),
        (add(2, [9]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (add(3, [1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (add(2, given=True), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (add(2, []), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (add(2, [1, 1]), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (add(2**31 - 1), ErrorCode.POLICY_VIOLATION),
        (MorePartitions(name="other", count=2), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_partitions_that_cannot_be_added(request_: MorePartitions, code: ErrorCode) -> None:
    deltas, (result,) = plan_create_partitions(image(), [request_], lambda below: 0)
    assert (deltas, result.error) == ([], code)


def test_a_topic_named_twice_gets_one_refusal() -> None:
    deltas, (result,) = plan_create_partitions(image(), [add(2), add(3)], lambda below: 0)
    assert (deltas, result.error) == ([], ErrorCode.INVALID_REQUEST)


def test_all_topics_of_a_request_share_its_budget() -> None:
    other = TopicState(name="u", id=UUID(int=8), partitions=(PartitionState(replicas=(1,), isr=(1,), leader=1),))
    both = image().apply(2, [TopicCreated(topic=other)])
    request = [add(1 + PARTITIONS_PER_REQUEST_MAX), MorePartitions(name="u", count=2)]
    _, results = plan_create_partitions(both, request, lambda below: 0)
    assert [result.error for result in results] == [ErrorCode.NONE, ErrorCode.POLICY_VIOLATION]


# -- Settings ------------------------------------------------------------------------------------------------------


def refuse_five(settings: Mapping[str, str]) -> None:
    if "5" in settings.values():
        raise KafkaError(ErrorCode.INVALID_CONFIG, "no 5")


RULES = ConfigRules(node_id=1, validate_topic=refuse_five, validate_broker=lambda name, settings: refuse_five(settings))


def alter(
    *steps: tuple[str, int, str | None],
    name: str = "t",
    kind: int = ConfigResourceType.TOPIC,
    replaces: bool = False,
    configs: Mapping[str, str] | None = None,
) -> tuple[list[Delta], ConfigChangeResult]:
    change = ConfigChange(
        resource_type=kind, resource_name=name, steps=[ConfigStep(*step) for step in steps], replaces=replaces
    )
    deltas, (result,) = plan_alter_configs(image(configs=configs), [change], RULES)
    return deltas, result


def changes_of(deltas: list[Delta]) -> dict[str, str | None]:
    (delta,) = deltas
    assert isinstance(delta, (TopicConfigChanged, BrokerConfigChanged))
    return delta.changes


@pytest.mark.parametrize(
    ("present", "step", "expected"),
    [
        ({}, ("retention.ms", SET, "7"), {"retention.ms": "7"}),
        ({"retention.ms": "7"}, ("retention.ms", DELETE, None), {"retention.ms": None}),
        ({"cleanup.policy": "compact"}, ("cleanup.policy", APPEND, "delete"), {"cleanup.policy": "compact,delete"}),
        ({}, ("cleanup.policy", APPEND, "compact,compact"), {"cleanup.policy": "delete,compact"}),
        ({"cleanup.policy": "compact,delete"}, ("cleanup.policy", SUBTRACT, "compact"), {"cleanup.policy": "delete"}),
        ({}, ("cleanup.policy", SUBTRACT, "delete"), {"cleanup.policy": ""}),
    ],
)
def test_steps(present: dict[str, str], step: tuple[str, int, str | None], expected: dict[str, str | None]) -> None:
    deltas, result = alter(step, configs=present)
    assert (changes_of(deltas), result.error) == (expected, ErrorCode.NONE)


def test_what_changes_nothing_makes_no_new_version() -> None:
    assert alter(("retention.ms", SET, "7"), configs={"retention.ms": "7"})[0] == []
    assert alter(("retention.ms", DELETE, None))[0] == []


def test_replacing_takes_away_what_is_not_named() -> None:
    deltas, _ = alter(("segment.ms", SET, "7"), configs={"retention.ms": "7"}, replaces=True)
    assert changes_of(deltas) == {"retention.ms": None, "segment.ms": "7"}


@pytest.mark.parametrize(
    ("steps", "code"),
    [
        ([("retention.ms", SET, "7"), ("segment.ms", SET, "5")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", APPEND, "7")], ErrorCode.INVALID_CONFIG),
        ([("unknown", SUBTRACT, "7")], ErrorCode.INVALID_CONFIG),
        ([("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", SET, "7"), ("retention.ms", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([("retention.ms", 9, "7")], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_resource_changes_as_a_whole_or_not_at_all(steps: list[tuple[str, int, str | None]], code: ErrorCode) -> None:
    deltas, result = alter(*steps)
    assert (deltas, result.error) == ([], code)


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (ConfigResourceType.TOPIC, "missing", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ConfigResourceType.TOPIC, "a b", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (ConfigResourceType.TOPIC, "", ErrorCode.INVALID_REQUEST),
        (ConfigResourceType.BROKER, "2", ErrorCode.INVALID_REQUEST),
        (ConfigResourceType.BROKER, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_resources_that_are_not_there(kind: int, name: str, code: ErrorCode) -> None:
    deltas, result = alter(("retention.ms", SET, "7"), kind=kind, name=name)
    assert (deltas, result.error) == ([], code)


@pytest.mark.parametrize("name", ["", "1"])
def test_brokers_have_settings_of_their_own_and_together(name: str) -> None:
    deltas, result = alter(("log.retention.ms", SET, "7"), kind=ConfigResourceType.BROKER, name=name)
    assert result.error is ErrorCode.NONE
    changed = image().apply(2, deltas)
    assert changed.broker_configs == {name: {"log.retention.ms": "7"}}


def test_one_refused_resource_does_not_stop_another() -> None:
    changes = [
        ConfigChange(resource_type=2, resource_name=name, steps=[ConfigStep("retention.ms", SET, "7")])
        for name in ("missing", "t")
    ]
    deltas, results = plan_alter_configs(image(), changes, RULES)
    assert [result.error for result in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.NONE]
    assert changes_of(deltas) == {"retention.ms": "7"}


# -- Features ------------------------------------------------------------------------------------------------------

SUPPORTED = {"f": range(3)}
LEVEL_ONE = ClusterImage().apply(1, [FeatureChanged(name="f", level=1)])


@pytest.mark.parametrize(
    ("level", "kind"), [(2, UpgradeType.UPGRADE), (0, UpgradeType.SAFE_DOWNGRADE), (0, UpgradeType.UNSAFE_DOWNGRADE)]
)
def test_features_change(level: int, kind: UpgradeType) -> None:
    deltas = plan_update_features(LEVEL_ONE, [FeatureUpdate(feature="f", level=level, upgrade_type=kind)], SUPPORTED)
    assert deltas == [FeatureChanged(name="f", level=level)]


def test_a_feature_that_is_off_is_remembered_as_such() -> None:
    changed = LEVEL_ONE.apply(2, [FeatureChanged(name="f", level=0)])
    assert changed.features == {"f": 0}


@pytest.mark.parametrize(
    ("feature", "level", "kind"), [("f", 3, 1), ("f", -1, 1), ("f", 0, 1), ("f", 2, 2), ("f", 1, 9), ("g", 1, 1)]
)
def test_features_that_cannot_change(feature: str, level: int, kind: int) -> None:
    updates = [FeatureUpdate(feature="f", level=2), FeatureUpdate(feature=feature, level=level, upgrade_type=kind)]
    with pytest.raises(KafkaError) as refused:
        plan_update_features(LEVEL_ONE, updates, SUPPORTED)
    assert refused.value.code is ErrorCode.INVALID_UPDATE_VERSION


# -- Leaders -------------------------------------------------------------------------------------------------------


def elected(state: PartitionState, kind: ElectionType, brokers: tuple[int, ...]) -> PartitionState | ErrorCode:
    deltas, (result,) = plan_elect_leaders(image(state, brokers=brokers), kind, {"t": [0]})
    if result.error is not ErrorCode.NONE:
        assert deltas == []
        return result.error
    (delta,) = deltas
    assert isinstance(delta, PartitionChanged)
    return delta.state


def test_the_preferred_leader() -> None:
    state = PartitionState(replicas=(1, 2), isr=(2, 1), leader=2, leader_epoch=3, partition_epoch=5)
    expected = PartitionState(replicas=(1, 2), isr=(2, 1), leader=1, leader_epoch=4, partition_epoch=6)
    assert elected(state, ElectionType.PREFERRED, (1, 2)) == expected
    assert elected(state, ElectionType.PREFERRED, (2,)) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    behind = PartitionState(replicas=(1, 2), isr=(2,), leader=2)
    assert elected(behind, ElectionType.PREFERRED, (1, 2)) is ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert elected(expected, ElectionType.PREFERRED, (1, 2)) is ErrorCode.ELECTION_NOT_NEEDED


def test_any_leader() -> None:
    state = PartitionState(replicas=(1, 2), isr=(2,), leader=-1)
    lossy = elected(state, ElectionType.UNCLEAN, (1,))
    assert isinstance(lossy, PartitionState)
    assert (lossy.leader, lossy.isr, lossy.leader_epoch) == (1, (1,), 1)
    lossless = elected(state, ElectionType.UNCLEAN, (1, 2))
    assert isinstance(lossless, PartitionState)
    assert (lossless.leader, lossless.isr) == (2, (2,))
    assert elected(state, ElectionType.UNCLEAN, (3,)) is ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert elected(lossy, ElectionType.UNCLEAN, (1,)) is ErrorCode.ELECTION_NOT_NEEDED


def test_all_partitions_answer_only_where_an_election_was_needed() -> None:
    led = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)
    moved = PartitionState(replicas=(2, 1), isr=(1, 2), leader=1)
    deltas, results = plan_elect_leaders(image(led, moved, brokers=(1, 2)), ElectionType.PREFERRED, None)
    assert [result.election for result in results] == [Election("t", 1)]
    assert len(deltas) == 1


def test_elections_of_what_is_not_there() -> None:
    _, results = plan_elect_leaders(image(), ElectionType.PREFERRED, {"t": [1, -1], "u": [0]})
    assert [result.error for result in results] == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 3


# -- Replicas ------------------------------------------------------------------------------------------------------


def reassigned(
    state: PartitionState, replicas: list[int] | None, *, may_change_factor: bool = True
) -> PartitionState | ErrorCode | None:
    wanted = Reassignment(topic="t", partition=0, replicas=replicas)
    deltas, (result,) = plan_reassign_partitions(
        image(state, brokers=(1, 2, 3)), [wanted], may_change_factor=may_change_factor
    )
    if result.error is not ErrorCode.NONE:
        return result.error
    return deltas[0].state if deltas else None  # type: ignore[union-attr]


TWO = PartitionState(replicas=(1, 2), isr=(1, 2), leader=1)


def test_reassignments_that_need_no_copying_are_done_at_once() -> None:
    assert reassigned(TWO, [1, 2]) is None
    assert reassigned(TWO, [2, 1]) == PartitionState(replicas=(2, 1), isr=(1, 2), leader=1, partition_epoch=1)
    alone = PartitionState(replicas=(2,), isr=(2,), leader=2, leader_epoch=1, partition_epoch=2)
    assert reassigned(TWO, [2]) == alone


@pytest.mark.parametrize(
    ("replicas", "code"),
    [
        (None, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
        ([], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 1], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([9], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ([1, 3], ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_reassignments_that_are_refused(replicas: list[int] | None, code: ErrorCode) -> None:
    assert reassigned(TWO, replicas) is code


def test_the_number_of_replicas_can_be_kept() -> None:
    assert reassigned(TWO, [1], may_change_factor=False) is ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_replica_in_sync_must_stay() -> None:
    assert reassigned(PartitionState(replicas=(1, 2), isr=(1,), leader=1), [2]) is ErrorCode.INVALID_REPLICA_ASSIGNMENT
