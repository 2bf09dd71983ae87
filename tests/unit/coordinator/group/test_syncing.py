"""SyncGroup: the leader's assignment, and who gets it when."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.states import GroupState
from penstock.protocol.messages.leave_group import MemberIdentity
from tests.unit.coordinator.group.staging import REBALANCE_MS, GroupStage, Pending, error_of


def joined_group(stage: GroupStage, size: int = 2) -> list[str]:
    """A group that waits for its assignment; the leader comes first."""
    members: list[tuple[str, Pending]] = [stage.new_member() for _ in range(size)]
    stage.advance(1)
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    return [member_id for member_id, _ in members]


def test_followers_wait_for_the_leader(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    waiting = stage.sync(follower, 1)
    assert not waiting.done()
    own = stage.sync(leader, 1, {leader: b"one", follower: b"two"})
    assert (own.result().assignment, waiting.result().assignment) == (b"one", b"two")
    assert (own.result().protocol_type, own.result().protocol_name) == ("consumer", "range")
    assert stage.state() is GroupState.STABLE


def test_member_that_syncs_late_gets_the_assignment(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    stage.sync(leader, 1, {follower: b"two"})
    assert stage.sync(follower, 1).result().assignment == b"two"


def test_member_that_was_forgotten_gets_nothing(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    stage.sync(leader, 1, {leader: b"one", "stranger": b"three"})
    assert stage.sync(follower, 1).result().assignment == b""


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"version": 5}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (
            {"version": 5, "protocol_type": "connect", "protocol_name": "range"},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ),
        (
            {"version": 5, "protocol_type": "consumer", "protocol_name": "sticky"},
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
        ),
        ({"version": 5, "protocol_type": "consumer", "protocol_name": "range"}, ErrorCode.NONE),
    ],
)
def test_checks(stage: GroupStage, options: dict[str, object], code: ErrorCode) -> None:
    (leader,) = joined_group(stage, 1)
    arguments: dict[str, object] = {"member_id": leader, "generation": 1, "assignments": {leader: b""}, **options}
    assert error_of(stage.sync(**arguments).result()) is code  # type: ignore[arg-type]


def test_empty_group_knows_nobody(stage: GroupStage) -> None:
    (member_id,), generation = stage.stable_group()
    stage.leave((member_id, None))
    assert error_of(stage.sync(member_id, generation).result()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_rebalance_sends_members_back(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    waiting = stage.sync(follower, 1)
    stage.new_member()
    assert error_of(waiting.result()) is ErrorCode.REBALANCE_IN_PROGRESS
    assert error_of(stage.sync(leader, 1, {}).result()) is ErrorCode.REBALANCE_IN_PROGRESS


def test_members_that_never_sync_are_removed(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    generation = stage.group().generation
    stage.sync(leader, generation, {})
    for _ in range(4):
        stage.advance(REBALANCE_MS // 4 + 1)
        stage.heartbeat(leader, generation)
        stage.heartbeat(follower, generation)
    assert list(stage.group().members) == [leader]
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_leader_that_never_syncs_is_replaced(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    waiting = stage.sync(follower, 1)
    for _ in range(4):
        stage.advance(REBALANCE_MS // 4 + 1)
        stage.heartbeat(leader, 1)
    assert error_of(waiting.result()) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.group().leader == follower


def test_leader_that_syncs_twice_is_answered_twice(stage: GroupStage) -> None:
    (leader,) = joined_group(stage, 1)
    stage.log.commits_at_once = False
    first = stage.sync(leader, 1, {leader: b"one"})
    written = stage.log.end
    second = stage.sync(leader, 1, {leader: b"two"})
    assert error_of(first.result()) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.log.end == written
    stage.log.commit()
    stage.settle()
    assert second.result().assignment == b"one"


def test_assignment_is_shown_when_it_is_committed(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    stage.log.commits_at_once = False
    syncs = [stage.sync(leader, 1, {leader: b"one", follower: b"two"}), stage.sync(follower, 1)]
    assert not any(sync.done() for sync in syncs)
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    stage.log.commit()
    stage.settle()
    assert [sync.result().assignment for sync in syncs] == [b"one", b"two"]
    assert stage.state() is GroupState.STABLE


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_assignment_that_is_refused(stage: GroupStage, refusal: ErrorCode, code: ErrorCode) -> None:
    leader, follower = joined_group(stage)
    waiting = stage.sync(follower, 1)
    stage.log.refusals.append(KafkaError(refusal))
    own = stage.sync(leader, 1, {leader: b"one"})
    assert error_of(own.result()) is error_of(waiting.result()) is code
    assert stage.state() is GroupState.PREPARING_REBALANCE
    joins = [stage.join(leader), stage.join(follower)]
    stage.finish_rebalance([leader, follower], joins)


def test_assignment_that_is_late(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    stage.log.commits_at_once = False
    syncs = [stage.sync(leader, 1, {leader: b"one"}), stage.sync(follower, 1)]
    stage.advance(5001)
    assert {error_of(sync.result()) for sync in syncs} == {ErrorCode.COORDINATOR_NOT_AVAILABLE}
    assert stage.state() is GroupState.PREPARING_REBALANCE
    # Committed after all: the generation that was given up stays so.
    stage.log.commit()
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_member_that_leaves_while_the_assignment_is_written(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    stage.log.commits_at_once = False
    sync = stage.sync(leader, 1, {leader: b"one"})
    leaving = stage.groups.write(0, "leave", lambda shard: shard.leave_group("g", [MemberIdentity(member_id=follower)]))
    stage.settle()
    assert error_of(sync.result()) is ErrorCode.REBALANCE_IN_PROGRESS
    stage.log.commit()
    assert leaving.result().members[0].error_code == ErrorCode.NONE
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_partition_that_moves_away_sends_everybody_to_look_for_it(stage: GroupStage) -> None:
    leader, follower = joined_group(stage)
    waiting = stage.sync(follower, 1)
    stage.log.commits_at_once = False
    own = stage.sync(leader, 1, {leader: b"one"})
    stage.log.lose(truncate_to=stage.log.hw)
    stage.settle()
    assert error_of(own.result()) is error_of(waiting.result()) is ErrorCode.NOT_COORDINATOR
    assert error_of(stage.join(leader).result()) is ErrorCode.NOT_COORDINATOR
