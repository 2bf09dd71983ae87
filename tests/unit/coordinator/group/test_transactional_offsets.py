"""Offsets that count when a transaction commits."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.states import GroupState
from tests.unit.coordinator.group.staging import GroupStage, error_of
from tests.unit.coordinator.runtime.fakes import code_of

PRODUCER = 4000


@pytest.mark.parametrize("committed", [True, False])
def test_marker_decides(stage: GroupStage, committed: bool) -> None:
    stage.commit(1)
    assert stage.commit_in_transaction(PRODUCER, 2).result()[0].code is ErrorCode.NONE
    assert stage.committed_offset() == 1
    stage.end_transaction(PRODUCER, committed=committed)
    assert stage.committed_offset() == (2 if committed else 1)
    stage.restart()
    assert stage.committed_offset() == (2 if committed else 1)


@pytest.mark.parametrize("restarts", [False, True])
def test_stable_reader_waits_for_the_marker(stage: GroupStage, restarts: bool) -> None:
    stage.commit(1)
    stage.commit(1, partition=1)
    stage.commit_in_transaction(PRODUCER, 2)
    if restarts:
        stage.restart()
    for partitions in ((0, 1), None):
        unstable, settled = stage.fetch(partitions, stable=True).topics[0].partitions
        assert (error_of(unstable), unstable.committed_offset) == (ErrorCode.UNSTABLE_OFFSET_COMMIT, -1)
        assert settled.committed_offset == 1
    # Who does not ask for stable offsets sees the old one.
    assert stage.committed_offset() == 1
    stage.end_transaction(PRODUCER, committed=True)
    assert stage.fetch(stable=True).topics[0].partitions[0].committed_offset == 2


def test_later_plain_commit_wins(stage: GroupStage) -> None:
    stage.commit_in_transaction(PRODUCER, 2)
    stage.commit(5)
    stage.end_transaction(PRODUCER, committed=True)
    assert stage.committed_offset() == 5


def test_transactions_of_several_producers(stage: GroupStage) -> None:
    stage.commit_in_transaction(1, 10)
    stage.commit_in_transaction(2, 20)
    stage.commit_in_transaction(2, 21, group="other")
    stage.end_transaction(2, committed=True)
    assert (stage.committed_offset(), stage.committed_offset(group="other")) == (20, 21)
    assert error_of(stage.fetch(stable=True).topics[0].partitions[0]) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    # The first stands before it in the log, so it changes nothing any more.
    stage.end_transaction(1, committed=True)
    assert stage.committed_offset() == 20


def test_marker_without_offsets_changes_nothing(stage: GroupStage) -> None:
    stage.commit(1)
    stage.end_transaction(PRODUCER, committed=True)
    assert stage.committed_offset() == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"member_id": "stranger", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_generation_fences(stage: GroupStage, options: dict[str, object], code: ErrorCode) -> None:
    stage.stable_group()
    future = stage.commit_in_transaction(PRODUCER, 2, **options)
    assert (future.result()[0].code if code is ErrorCode.NONE else code_of(future)) is code


def test_stale_generation_is_fenced_but_a_rebalance_does_not_matter(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group()
    assert code_of(stage.commit_in_transaction(1, 2, member_id=leader, generation=0)) is ErrorCode.ILLEGAL_GENERATION
    stage.join(leader)
    assert stage.state() is GroupState.COMPLETING_REBALANCE
    future = stage.commit_in_transaction(1, 2, member_id=leader, generation=generation + 1)
    assert future.result()[0].code is ErrorCode.NONE


def test_generation_of_a_group_that_does_not_exist(stage: GroupStage) -> None:
    future = stage.commit_in_transaction(1, 2, member_id="m", generation=3)
    assert code_of(future) is ErrorCode.ILLEGAL_GENERATION


def test_deleted_offset_is_not_brought_back_by_a_marker(stage: GroupStage) -> None:
    stage.commit_in_transaction(PRODUCER, 2)
    stage.ask(stage.groups.delete_groups(["g"]))
    assert "g" not in stage.shard.groups
    stage.end_transaction(PRODUCER, committed=True)
    assert stage.fetch(None).topics == []


def test_commit_that_is_refused_is_not_pending(stage: GroupStage) -> None:
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert code_of(stage.commit_in_transaction(PRODUCER, 2)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(stage.fetch(stable=True).topics[0].partitions[0]) is ErrorCode.NONE
    assert "g" not in stage.shard.groups


def test_marker_that_is_refused_leaves_the_transaction_open(stage: GroupStage) -> None:
    stage.commit_in_transaction(PRODUCER, 2)
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert code_of(stage.end_transaction(PRODUCER, committed=True)) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.committed_offset() == -1
    assert error_of(stage.fetch(stable=True).topics[0].partitions[0]) is ErrorCode.UNSTABLE_OFFSET_COMMIT
    stage.end_transaction(PRODUCER, committed=True)
    assert stage.committed_offset() == 2


def test_marker_that_is_not_committed_yet_shows_nothing(stage: GroupStage) -> None:
    stage.commit_in_transaction(PRODUCER, 2)
    stage.log.commits_at_once = False
    stage.end_transaction(PRODUCER, committed=True)
    assert stage.committed_offset() == -1
    stage.log.commit()
    assert stage.committed_offset() == 2
