"""Heartbeat, LeaveGroup and sessions."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.states import GroupState
from penstock.protocol.messages.leave_group import LeaveGroupRequest
from penstock.protocol.messages.list_groups import ListGroupsRequest
from tests.unit.coordinator.group.staging import SESSION_MS, GroupStage, error_of


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"group": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_heartbeat(stage: GroupStage, options: dict[str, object], code: ErrorCode) -> None:
    (leader,), generation = stage.stable_group()
    arguments: dict[str, object] = {"member_id": leader, "generation": generation, **options}
    assert stage.heartbeat(**arguments) is code  # type: ignore[arg-type]


def test_heartbeat_while_the_assignment_is_awaited_keeps_the_session(stage: GroupStage) -> None:
    member_id, join = stage.new_member()
    stage.advance(1)
    assert join.done()
    for _ in range(3):
        stage.advance(SESSION_MS - 2)
        assert stage.heartbeat(member_id, 1) is ErrorCode.NONE


def test_heartbeat_while_the_partition_loads_says_nothing(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage()
    (leader,), generation = stage.stable_group()
    stage.log.lose()
    assert stage.heartbeat(leader, generation) is ErrorCode.NOT_COORDINATOR
    stage.log.leader_epoch = 1
    stage.runtime.load(0, 1)
    assert stage.heartbeat("anybody", 99) is ErrorCode.NONE
    assert error_of(stage.groups.list_groups(ListGroupsRequest())) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.settle()
    assert stage.heartbeat("anybody", 99) is ErrorCode.UNKNOWN_MEMBER_ID
    assert stage.heartbeat(leader, generation) is ErrorCode.NONE


def test_session_ends_without_heartbeats(stage: GroupStage) -> None:
    (leader, follower), generation = stage.stable_group(2)
    stage.advance(SESSION_MS - 1)
    stage.heartbeat(leader, generation)
    stage.advance(2)
    assert list(stage.group().members) == [leader]
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert stage.heartbeat(follower, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    join = stage.join(leader)
    assert join.result().generation_id == generation + 1


def test_group_whose_last_session_ends_is_empty(stage: GroupStage) -> None:
    stage.stable_group()
    stage.advance(SESSION_MS + 1)
    assert stage.state() is GroupState.EMPTY
    assert stage.group().generation == 2
    assert stage.shard.stored["g"].members == ()


def test_commits_keep_the_session(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group()
    for _ in range(3):
        stage.advance(SESSION_MS - 1)
        assert stage.commit(member_id=leader, generation=generation) is ErrorCode.NONE
    assert stage.state() is GroupState.STABLE


def test_member_that_waits_needs_no_heartbeats(stage: GroupStage) -> None:
    (leader, follower), _ = stage.stable_group(2, rebalance_ms=100_000)
    waiting = stage.join(leader, rebalance_ms=100_000)
    for _ in range(5):
        stage.advance(SESSION_MS - 1)
        stage.heartbeat(follower, 1)
    assert not waiting.done()
    stage.join(follower, rebalance_ms=100_000)
    assert error_of(waiting.result()) is ErrorCode.NONE


# -- Leaving -----------------------------------------------------------------------------------------------------------


def test_last_member_leaves(stage: GroupStage) -> None:
    (leader,), _ = stage.stable_group()
    assert stage.leave((leader, None)).members[0].error_code == ErrorCode.NONE
    assert stage.state() is GroupState.EMPTY


def test_leaving_starts_a_rebalance(stage: GroupStage) -> None:
    (leader, follower), generation = stage.stable_group(2)
    stage.leave((leader, None))
    assert stage.heartbeat(follower, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert stage.group().leader == follower


def test_several_members_leave_with_one_request(stage: GroupStage) -> None:
    (leader, follower), _ = stage.stable_group(2)
    static = stage.join(instance="i")
    joins = [stage.join(leader), stage.join(follower)]
    stage.finish_rebalance([leader, follower, static.result().member_id], [*joins, static])
    response = stage.leave((leader, None), ("", "i"), ("", "j"), ("stranger", None), ("", None), (follower, "i"))
    assert [ErrorCode(each.error_code) for each in response.members] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
    ]
    assert list(stage.group().members) == [follower]


def test_id_that_was_handed_out_can_leave(stage: GroupStage) -> None:
    stage.stable_group()
    pending = stage.join().result().member_id
    assert stage.leave((pending, None)).members[0].error_code == ErrorCode.NONE
    assert stage.group().pending_join == set()
    assert stage.state() is GroupState.STABLE


def test_id_that_leaves_no_longer_holds_the_rebalance_up(stage: GroupStage) -> None:
    (leader,), _ = stage.stable_group()
    pending = stage.join().result().member_id
    join = stage.join(leader)
    assert not join.done()
    stage.leave((pending, None))
    assert error_of(join.result()) is ErrorCode.NONE


def test_member_that_waits_and_leaves_is_answered(stage: GroupStage) -> None:
    (leader, follower), _ = stage.stable_group(2)
    waiting = stage.join(leader)
    stage.leave((leader, None))
    assert error_of(waiting.result()) is ErrorCode.UNKNOWN_MEMBER_ID
    assert list(stage.group().members) == [follower]


def test_group_that_does_not_exist(stage: GroupStage) -> None:
    assert stage.leave(("m", None), group="nobody").members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert error_of(stage.leave(("m", None), group="")) is ErrorCode.INVALID_GROUP_ID


@pytest.mark.parametrize("version", [0, 1, 2])
def test_older_versions_have_one_member(stage: GroupStage, version: int) -> None:
    (leader,), _ = stage.stable_group()
    for code in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
        response = stage.ask(stage.groups.leave_group(LeaveGroupRequest(group_id="g", member_id=leader), version))
        assert error_of(response) is code
        assert response.members == []


def test_leaving_that_cannot_be_written_is_no_return(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group()
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert error_of(stage.leave((leader, None))) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    # The member is gone, whatever the log says; a coordinator that loads it will wait for its session to end.
    assert stage.state() is GroupState.EMPTY
    assert stage.heartbeat(leader, generation) is ErrorCode.UNKNOWN_MEMBER_ID
    members, newer = stage.stable_group()
    assert newer > generation
    stage.restart()
    assert list(stage.group().members) == members


def test_a_forced_rebalance_lets_the_members_join_again(stage: GroupStage) -> None:
    (leader, follower), generation = stage.stable_group(2)
    stage.ask(stage.groups.force_rebalance("g", "asked for"))
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert stage.heartbeat(leader, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    # Once more changes nothing: it is under way.
    stage.ask(stage.groups.force_rebalance("g", "asked for"))
    joins = [stage.join(leader), stage.join(follower)]
    assert {join.result().generation_id for join in joins} == {generation + 1}


def test_a_group_without_members_cannot_be_forced_to_rebalance(stage: GroupStage) -> None:
    with pytest.raises(KafkaError, match="the group nobody has no members"):
        stage.shard.force_rebalance("nobody", "asked for")
