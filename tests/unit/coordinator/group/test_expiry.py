"""Which offsets and groups go when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group import expiry
from penstock.coordinator.group.states import GroupState
from tests.unit.coordinator.group.staging import SESSION_MS, GroupStage

DAY_MS = 86_400_000
RETENTION_MS = 7 * DAY_MS
CHECK_MS = 600_000


def wait(stage: GroupStage, milliseconds: int, *alive: tuple[str, int]) -> None:
    """Let time pass; these members send heartbeats meanwhile."""
    if not alive:
        stage.advance(milliseconds)
        return
    step = 1_700_000
    while milliseconds > 0:
        stage.advance(min(step, milliseconds))
        milliseconds -= step
        for member_id, generation in alive:
            assert stage.heartbeat(member_id, generation) is ErrorCode.NONE


def test_offsets_of_a_group_without_members_go_after_the_commit(stage: GroupStage) -> None:
    stage.commit(1)
    wait(stage, DAY_MS)
    stage.commit(2, partition=1)
    wait(stage, RETENTION_MS - DAY_MS + CHECK_MS)
    assert stage.committed_offset() == -1
    assert stage.committed_offset(1) == 2
    wait(stage, DAY_MS)
    assert "g" not in stage.shard.groups
    stage.restart()
    assert "g" not in stage.shard.groups


def test_offsets_of_an_emptied_group_go_after_it_became_empty(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group(session_ms=1_800_000)
    stage.commit(1, member_id=leader, generation=generation)
    wait(stage, DAY_MS, (leader, generation))
    stage.leave((leader, None))
    wait(stage, RETENTION_MS - CHECK_MS)
    assert stage.committed_offset() == 1
    wait(stage, 2 * CHECK_MS)
    assert stage.committed_offset() == -1
    assert "g" not in stage.shard.groups


def test_members_keep_the_offsets_of_their_topics_only(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(offsets_retention_ms=CHECK_MS)
    stage.commit(2, topic="payments")
    (leader,), generation = stage.stable_group(session_ms=1_800_000)
    stage.commit(1, member_id=leader, generation=generation)
    wait(stage, 3 * CHECK_MS, (leader, generation))
    assert [each.name for each in stage.fetch(None).topics] == ["orders"]
    assert stage.state() is GroupState.STABLE


@pytest.mark.parametrize("options", [{"protocol_type": "connect"}, {"protocols": [("range", b"\x00")]}])
def test_members_whose_topics_are_unknown_keep_all_offsets(
    make_stage: Callable[..., GroupStage], options: dict[str, Any]
) -> None:
    stage = make_stage(offsets_retention_ms=CHECK_MS)
    stage.commit(1)
    (leader,), generation = stage.stable_group(session_ms=1_800_000, **options)
    wait(stage, 3 * CHECK_MS, (leader, generation))
    assert stage.committed_offset() == 1


def test_group_that_rebalances_keeps_its_offsets(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(offsets_retention_ms=CHECK_MS)
    stage.commit(1, topic="payments")
    (leader, _), generation = stage.stable_group(2, session_ms=1_800_000, rebalance_ms=10 * CHECK_MS)
    stage.join(leader, session_ms=1_800_000, rebalance_ms=10 * CHECK_MS)
    wait(stage, 2 * CHECK_MS)
    assert stage.state() is GroupState.PREPARING_REBALANCE
    assert [each.name for each in stage.fetch(None).topics] == ["payments"]
    assert generation == 1


def test_retention_that_an_old_client_asked_for(stage: GroupStage) -> None:
    stage.commit(1, version=4, retention_ms=DAY_MS)
    stage.commit(2, version=4, partition=1)
    wait(stage, DAY_MS - CHECK_MS)
    assert stage.committed_offset() == 1
    wait(stage, 2 * CHECK_MS)
    assert (stage.committed_offset(), stage.committed_offset(1)) == (-1, 2)
    stage.restart()
    assert stage.committed_offset(1) == 2


def test_empty_group_without_offsets_goes_at_the_next_look(stage: GroupStage) -> None:
    (leader,), _ = stage.stable_group()
    stage.leave((leader, None))
    wait(stage, CHECK_MS + 1)
    assert "g" not in stage.shard.groups
    assert "g" not in stage.shard.stored


def test_id_that_was_handed_out_keeps_its_group(make_stage: Callable[..., GroupStage]) -> None:
    stage = make_stage(retention_check_interval_ms=SESSION_MS // 2)
    member_id = stage.join().result().member_id
    stage.advance(SESSION_MS // 2 + 1)
    join = stage.join(member_id)
    stage.advance(1)
    assert join.result().generation_id == 1


def test_offset_that_a_transaction_is_about_to_change_stays(stage: GroupStage) -> None:
    stage.commit(1)
    stage.commit_in_transaction(7, 2)
    wait(stage, RETENTION_MS + CHECK_MS)
    assert stage.committed_offset() == 1
    stage.end_transaction(7, committed=False)
    wait(stage, CHECK_MS)
    assert "g" not in stage.shard.groups


def test_group_of_an_open_transaction_stays(stage: GroupStage) -> None:
    stage.commit_in_transaction(7, 2)
    wait(stage, RETENTION_MS + CHECK_MS)
    assert "g" in stage.shard.groups
    stage.end_transaction(7, committed=False)
    wait(stage, CHECK_MS)
    assert "g" not in stage.shard.groups


def test_expiry_that_is_refused_comes_again(stage: GroupStage) -> None:
    stage.commit(1)
    stage.advance(RETENTION_MS)
    stage.commit(1)
    stage.advance(RETENTION_MS - CHECK_MS)
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    stage.advance(CHECK_MS)
    assert stage.committed_offset() == 1
    stage.advance(CHECK_MS)
    assert "g" not in stage.shard.groups


def test_many_groups_are_looked_at_in_turns(
    make_stage: Callable[..., GroupStage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expiry, "GROUPS_PER_TURN_MAX", 7)
    stage = make_stage(offsets_retention_ms=CHECK_MS)
    for number in range(30):
        stage.commit(1, group=f"g{number}")
    stage.advance(CHECK_MS)
    stage.advance(CHECK_MS + 10)
    assert len(stage.shard.groups) == 0
