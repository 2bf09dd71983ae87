"""JoinGroup: the member id handshake, rebalances, protocols, size."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.base.errors import ErrorCode
from penstock.coordinator.group.states import TRANSITIONS, GroupState
from tests.unit.coordinator.group.staging import REBALANCE_MS, SESSION_MS, GroupStage, error_of, subscription

RANGE = ("range", subscription("orders"))
ROUND_ROBIN = ("roundrobin", subscription("orders"))
STICKY = ("sticky", subscription("orders"))


def test_every_state_has_its_transitions() -> None:
    assert TRANSITIONS.keys() == set(GroupState)
    assert TRANSITIONS[GroupState.DEAD] == frozenset()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"group": ""}, ErrorCode.INVALID_GROUP_ID),
        ({"session_ms": 5999}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"session_ms": 1_800_001}, ErrorCode.INVALID_SESSION_TIMEOUT),
        ({"member_id": "stranger"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"protocols": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({}, ErrorCode.MEMBER_ID_REQUIRED),
        ({"version": 4}, ErrorCode.MEMBER_ID_REQUIRED),
    ],
)
def test_first_request_to_a_group(stage: GroupStage, options: dict[str, object], code: ErrorCode) -> None:
    assert error_of(stage.join(**options).result()) is code  # type: ignore[arg-type]
    exists = code is ErrorCode.MEMBER_ID_REQUIRED
    assert ("g" in stage.shard.groups) == exists


def test_id_that_was_handed_out_joins(stage: GroupStage) -> None:
    member_id, join = stage.new_member(client="me")
    assert member_id.startswith("me-")
    assert not join.done()
    stage.advance(1)
    answer = join.result()
    assert (error_of(answer), answer.generation_id, answer.leader) == (ErrorCode.NONE, 1, member_id)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert [(each.member_id, each.metadata) for each in answer.members] == [(member_id, subscription("orders"))]


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_before_version_4_a_member_is_added_at_once(stage: GroupStage, version: int) -> None:
    join = stage.join(version=version, rebalance_ms=-1 if version == 0 else REBALANCE_MS)
    assert stage.group().rebalance_timeout_ms == (SESSION_MS if version == 0 else REBALANCE_MS)
    stage.advance(1)
    assert error_of(join.result()) is ErrorCode.NONE


def test_id_that_nobody_joins_with_is_forgotten(stage: GroupStage) -> None:
    member_id = stage.join().result().member_id
    assert stage.group().pending_join == {member_id}
    stage.advance(SESSION_MS + 1)
    assert stage.group().pending_join == set()
    assert error_of(stage.join(member_id).result()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_id_that_was_handed_out_is_not_a_static_members(stage: GroupStage) -> None:
    member_id = stage.join().result().member_id
    assert error_of(stage.join(member_id, instance="i").result()) is ErrorCode.UNKNOWN_SERVER_ERROR


def test_only_the_leader_sees_the_members(stage: GroupStage) -> None:
    members = [stage.new_member() for _ in range(3)]
    stage.advance(1)
    answers = [join.result() for _, join in members]
    assert {answer.generation_id for answer in answers} == {1}
    assert {answer.leader for answer in answers} == {members[0][0]}
    assert [len(answer.members) for answer in answers] == [3, 0, 0]


def test_initial_delay_is_prolonged_while_members_come(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(initial_rebalance_delay_ms=3000)
    _, first = stage.new_member(rebalance_ms=7000)
    stage.advance(2000)
    _, second = stage.new_member(rebalance_ms=7000)
    stage.advance(2000)
    assert not first.done()
    assert not second.done()
    _, third = stage.new_member(rebalance_ms=7000)
    stage.advance(2000)
    # 3 s, then 3 s more, then the last second of the rebalance time-out.
    assert not first.done()
    stage.advance(1001)
    assert {join.result().generation_id for join in (first, second, third)} == {1}


def test_initial_delay_passes_when_nobody_else_comes(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(initial_rebalance_delay_ms=3000)
    _, join = stage.new_member()
    stage.advance(2999)
    assert not join.done()
    stage.advance(2)
    assert join.result().generation_id == 1


def test_new_member_starts_a_rebalance_that_waits_for_the_others(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group()
    newcomer, join = stage.new_member()
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert stage.heartbeat(leader, generation) is ErrorCode.REBALANCE_IN_PROGRESS
    assert not join.done()
    again = stage.join(leader)
    assert again.result().generation_id == join.result().generation_id == generation + 1
    assert again.result().leader == leader
    stage.finish_rebalance([leader, newcomer], [again, join])


def test_member_that_does_not_rejoin_in_time_is_removed(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group(session_ms=60_000)
    newcomer, join = stage.new_member()
    stage.advance(REBALANCE_MS + 1)
    assert (join.result().generation_id, join.result().leader) == (generation + 1, newcomer)
    assert error_of(stage.join(leader).result()) is ErrorCode.UNKNOWN_MEMBER_ID


def test_new_member_that_waits_too_long_is_dropped(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(new_member_join_timeout_ms=20_000)
    (leader,), generation = stage.stable_group(rebalance_ms=60_000)
    member_id, join = stage.new_member()
    for _ in range(5):
        stage.advance(5000)
        stage.heartbeat(leader, generation)
    assert error_of(join.result()) is ErrorCode.UNKNOWN_MEMBER_ID
    assert member_id not in stage.group().members


def test_leader_that_joins_again_starts_a_rebalance(stage: GroupStage) -> None:
    (leader, follower), generation = stage.stable_group(2)
    join = stage.join(leader)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    again = stage.join(follower)
    assert join.result().generation_id == again.result().generation_id == generation + 1


def test_follower_that_joins_again_unchanged_gets_the_current_generation(stage: GroupStage) -> None:
    (leader, follower), generation = stage.stable_group(2)
    answer = stage.join(follower).result()
    assert (answer.generation_id, answer.leader, answer.members) == (generation, leader, [])
    assert stage.state() is GroupState.STABLE


def test_follower_that_joins_again_changed_starts_a_rebalance(stage: GroupStage) -> None:
    (_, follower), _ = stage.stable_group(2)
    join = stage.join(follower, protocols=[("range", subscription("orders", "payments"))])
    assert not join.done()
    assert stage.state() is GroupState.PREPARING_REBALANCE


def test_member_that_missed_its_answer_gets_it_again(stage: GroupStage) -> None:
    members = [stage.new_member() for _ in range(2)]
    stage.advance(1)
    (leader, first), (follower, _) = members
    again = stage.join(leader).result()
    assert (again.generation_id, len(again.members)) == (first.result().generation_id, 2)
    assert stage.join(follower).result().members == []
    assert stage.state() is GroupState.COMPLETING_REBALANCE


def test_changed_member_during_the_sync_phase_starts_over(stage: GroupStage) -> None:
    members = [stage.new_member() for _ in range(2)]
    stage.advance(1)
    (leader, _), (follower, _) = members
    sync = stage.sync(follower, 1)
    stage.join(leader, protocols=[("range", subscription("payments"))])
    assert error_of(sync.result()) is ErrorCode.REBALANCE_IN_PROGRESS


def test_request_that_is_sent_twice_is_answered_twice(stage: GroupStage) -> None:
    stage.stable_group(session_ms=60_000)
    member_id, first = stage.new_member()
    second = stage.join(member_id)
    assert error_of(first.result()) is ErrorCode.REBALANCE_IN_PROGRESS
    stage.advance(REBALANCE_MS + 1)
    assert error_of(second.result()) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("votes", "chosen"),
    [
        ([(RANGE, ROUND_ROBIN), (ROUND_ROBIN, RANGE), (ROUND_ROBIN, RANGE)], "roundrobin"),
        ([(RANGE, ROUND_ROBIN), (RANGE, ROUND_ROBIN), (ROUND_ROBIN, RANGE)], "range"),
        ([(STICKY, RANGE), (STICKY, RANGE), (ROUND_ROBIN, RANGE)], "range"),
        ([(RANGE, RANGE), (RANGE,)], "range"),
    ],
)
def test_protocol_is_chosen_by_votes(
    stage: GroupStage, votes: list[tuple[tuple[str, bytes], ...]], chosen: str
) -> None:
    joins = [stage.new_member(protocols=vote)[1] for vote in votes]
    stage.advance(1)
    assert {join.result().protocol_name for join in joins} == {chosen}


@pytest.mark.parametrize("options", [{"protocols": [STICKY]}, {"protocol_type": "connect"}])
def test_member_without_a_common_protocol_is_refused(stage: GroupStage, options: dict[str, object]) -> None:
    (leader,), _ = stage.stable_group()
    assert error_of(stage.join(**options).result()) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL  # type: ignore[arg-type]
    assert error_of(stage.join(leader, **options).result()) is (  # type: ignore[arg-type]
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    )


def test_any_protocol_type_will_do(stage: GroupStage) -> None:
    (leader,), _ = stage.stable_group(protocol_type="connect", protocols=[("sessioned", b"worker")])
    assert stage.group().protocol_type == "connect"
    assert stage.leave((leader, None)).members[0].error_code == 0
    assert stage.state() is GroupState.EMPTY
    stage.stable_group(protocol_type="consumer")


def test_group_is_full(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(max_size=2)
    (leader, follower), generation = stage.stable_group(2)
    assert error_of(stage.join().result()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert stage.heartbeat(leader, generation) is ErrorCode.NONE
    # Members themselves may come again.
    assert error_of(stage.join(follower).result()) is ErrorCode.NONE


def test_last_one_to_join_is_the_one_too_many(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(max_size=2)
    ids = [stage.join().result().member_id for _ in range(3)]
    joins = [stage.join(member_id) for member_id in ids]
    assert error_of(joins[2].result()) is ErrorCode.GROUP_MAX_SIZE_REACHED
    stage.advance(1)
    assert [error_of(join.result()) for join in joins[:2]] == [ErrorCode.NONE] * 2


def test_group_that_is_too_large_when_loaded_is_rebalanced(make_stage: Callable[..., GroupStage]) -> None:
    large = make_stage()
    members, _ = large.stable_group(3)
    small = make_stage(max_size=2)
    small.runtime.unload(0)
    small.log.batches, small.log.hw = large.log.batches, large.log.hw
    small.load(1)
    assert small.state() is GroupState.PREPARING_REBALANCE
    joins = [small.join(member_id) for member_id in members]
    assert [error_of(join.result()) for join in joins] == [
        ErrorCode.NONE,
        ErrorCode.NONE,
        ErrorCode.GROUP_MAX_SIZE_REACHED,
    ]
