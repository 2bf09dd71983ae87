"""Static members: they come back without a rebalance, and whoever held their place before is fenced."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.states import GroupState
from tests.unit.coordinator.group.staging import REBALANCE_MS, SESSION_MS, GroupStage, Pending, error_of, subscription


def static_group(stage: GroupStage, *instances: str, **options: object) -> tuple[dict[str, str], int]:
    """Member ids by instance id, the first one leading."""
    joins: dict[str, Pending] = {each: stage.join(instance=each, **options) for each in instances}  # type: ignore[arg-type]
    stage.advance(1)
    ids = {instance: join.result().member_id for instance, join in joins.items()}
    _, generation = stage.finish_rebalance(list(ids.values()), list(joins.values()))
    return ids, generation


def test_static_member_needs_no_handshake(stage: GroupStage) -> None:
    ids, _ = static_group(stage, "i")
    assert ids["i"].startswith("i-")


@pytest.mark.parametrize("version", [5, 8, 9])
def test_follower_comes_back_without_a_rebalance(stage: GroupStage, version: int) -> None:
    ids, generation = static_group(stage, "a", "b")
    answer = stage.join(instance="b", version=version).result()
    assert error_of(answer) is ErrorCode.NONE
    assert (answer.generation_id, answer.leader, answer.members) == (generation, ids["a"], [])
    assert answer.member_id != ids["b"]
    assert not answer.skip_assignment
    assert stage.state() is GroupState.STABLE
    assert stage.sync(answer.member_id, generation).result().assignment == f"part of {ids['b']}".encode()
    assert stage.heartbeat(ids["a"], generation) is ErrorCode.NONE


def test_leader_that_comes_back_is_told_to_skip_the_assignment(stage: GroupStage) -> None:
    _, generation = static_group(stage, "a", "b")
    answer = stage.join(instance="a", version=9).result()
    assert answer.skip_assignment
    assert answer.leader == answer.member_id
    assert len(answer.members) == 2
    assert stage.state() is GroupState.STABLE
    assert answer.generation_id == generation


def test_older_leader_that_comes_back_is_shown_another_leader(stage: GroupStage) -> None:
    ids, _ = static_group(stage, "a", "b")
    answer = stage.join(instance="a", version=8).result()
    assert (answer.leader, answer.members, answer.skip_assignment) == (ids["a"], [], False)
    assert stage.group().leader == answer.member_id


def test_old_holder_is_fenced_everywhere(stage: GroupStage) -> None:
    ids, generation = static_group(stage, "a", "b")
    old = ids["b"]
    stage.join(instance="b")
    assert stage.heartbeat(old, generation, instance="b") is ErrorCode.FENCED_INSTANCE_ID
    assert error_of(stage.join(old, instance="b").result()) is ErrorCode.FENCED_INSTANCE_ID
    assert error_of(stage.sync(old, generation, group_instance_id="b").result()) is ErrorCode.FENCED_INSTANCE_ID
    code = stage.commit(member_id=old, instance="b", generation=generation)
    assert code is ErrorCode.FENCED_INSTANCE_ID
    assert stage.leave((old, "b")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
    # Without its instance id it is simply unknown.
    assert stage.heartbeat(old, generation) is ErrorCode.UNKNOWN_MEMBER_ID


def test_instance_that_never_joined_is_unknown(stage: GroupStage) -> None:
    ids, generation = static_group(stage, "a")
    assert stage.heartbeat(ids["a"], generation, instance="z") is ErrorCode.UNKNOWN_MEMBER_ID


def test_changed_metadata_without_a_change_of_protocol_is_no_rebalance(stage: GroupStage) -> None:
    static_group(stage, "a", "b")
    stage.join(instance="b", protocols=[("range", subscription("payments"))])
    assert stage.state() is GroupState.STABLE


def test_change_of_the_chosen_protocol_is_a_rebalance(stage: GroupStage) -> None:
    both = [("range", b""), ("sticky", b"")]
    static_group(stage, "a", protocols=both)
    join = stage.join(instance="a", protocols=[("sticky", b"")])
    assert join.result().protocol_name == "sticky"
    assert join.result().generation_id == 2


def test_old_holder_that_waits_is_answered(stage: GroupStage) -> None:
    ids, _ = static_group(stage, "a", "b")
    waiting = stage.join(ids["a"], instance="a")
    assert not waiting.done()
    newer = stage.join(instance="a")
    assert error_of(waiting.result()) is ErrorCode.FENCED_INSTANCE_ID
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert not newer.done()
    stage.join(ids["b"], instance="b")
    assert error_of(newer.result()) is ErrorCode.NONE


def test_old_holder_that_waits_for_its_assignment_is_answered(stage: GroupStage) -> None:
    joins = [stage.join(instance=each) for each in "ab"]
    stage.advance(1)
    leader, follower = (join.result().member_id for join in joins)
    sync = stage.sync(follower, 1, group_instance_id="b")
    newer = stage.join(instance="b")
    # The leader may be assigning to the old id, so everybody joins again.
    assert error_of(sync.result()) is ErrorCode.FENCED_INSTANCE_ID
    assert stage.state() is GroupState.PREPARING_REBALANCE
    stage.join(leader, instance="a")
    assert newer.result().generation_id == 2


def test_static_members_survive_the_rebalance_time_out_but_not_the_sync(stage: GroupStage) -> None:
    ids, _ = static_group(stage, "a", "b", session_ms=120_000)
    stage.join(ids["a"], instance="a", session_ms=120_000)
    stage.advance(REBALANCE_MS + 1)
    assert set(stage.group().members) == set(ids.values())
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    stage.sync(ids["a"], 2, {}, group_instance_id="a")
    stage.advance(REBALANCE_MS + 1)
    assert ids["b"] not in stage.group().members


def test_static_members_that_all_stay_away_are_waited_for(stage: GroupStage) -> None:
    ids, _ = static_group(stage, "a", "b", session_ms=90_000)
    stage.leave(("", "a"))
    stage.advance(REBALANCE_MS + 1)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert list(stage.group().members) == [ids["b"]]
    stage.advance(90_000)
    assert stage.state() is GroupState.EMPTY


def test_session_of_a_static_member_ends_like_any_other(stage: GroupStage) -> None:
    static_group(stage, "a")
    stage.advance(SESSION_MS + 1)
    assert stage.state() is GroupState.EMPTY


def test_replacement_is_in_the_log(stage: GroupStage) -> None:
    _, generation = static_group(stage, "a", "b")
    answer = stage.join(instance="b").result()
    stage.restart()
    assert stage.state() is GroupState.STABLE
    assert stage.heartbeat(answer.member_id, generation, instance="b") is ErrorCode.NONE


def test_replacement_that_is_refused_is_taken_back(stage: GroupStage) -> None:
    ids, generation = static_group(stage, "a", "b")
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert error_of(stage.join(instance="a").result()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.state() is GroupState.STABLE
    assert stage.heartbeat(ids["a"], generation, instance="a") is ErrorCode.NONE
    assert stage.group().leader == ids["a"]
    assert set(stage.group().members) == set(ids.values())


def test_replacement_that_is_late_stays(stage: GroupStage) -> None:
    ids, generation = static_group(stage, "a", "b")
    stage.log.commits_at_once = False
    join = stage.join(instance="b")
    assert not join.done()
    stage.advance(5001)
    assert error_of(join.result()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    # It is in the log and may be committed any time, so the old holder stays fenced; the client comes again.
    assert stage.heartbeat(ids["b"], generation, instance="b") is ErrorCode.FENCED_INSTANCE_ID
    stage.log.commit()
    again = stage.join(instance="b")
    stage.log.commit()
    stage.settle()
    assert error_of(again.result()) is ErrorCode.NONE


def test_replacement_that_a_rebalance_overtakes_joins_it(stage: GroupStage) -> None:
    ids, generation = static_group(stage, "a", "b")
    stage.log.commits_at_once = False
    join = stage.join(instance="b")
    leader = stage.join(ids["a"], instance="a")
    assert leader.result().generation_id == generation + 1
    stage.log.commit()
    stage.settle()
    assert join.result().generation_id == generation + 1


def test_two_replacements_at_once(stage: GroupStage) -> None:
    _, generation = static_group(stage, "a", "b")
    stage.log.commits_at_once = False
    first, other, second = (stage.join(instance=each) for each in "bab")
    stage.log.commit()
    stage.settle()
    assert error_of(first.result()) is ErrorCode.FENCED_INSTANCE_ID
    assert error_of(other.result()) is error_of(second.result()) is ErrorCode.NONE
    stage.restart()
    for join, instance in ((other, "a"), (second, "b")):
        assert stage.heartbeat(join.result().member_id, generation, instance=instance) is ErrorCode.NONE
