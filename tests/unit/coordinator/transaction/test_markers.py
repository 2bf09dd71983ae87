"""Markers: together per broker, again until they are written, gone with the shard."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.operations.owning import InitProducerId
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, PAYMENTS_0, TransactionStage

E = ErrorCode


def ended(stage: TransactionStage, *places: TopicPartition) -> None:
    owner = stage.owner()
    stage.add(owner, *places)
    stage.end(owner)
    stage.world.settle()


def test_markers_for_one_broker_travel_together(stage: TransactionStage) -> None:
    for name in ("a", "b", "c"):
        stage.add(stage.owner(name), ORDERS_0, ORDERS_1, PAYMENTS_0, transactional_id=name)
    owners = {name: stage.metadata(name).producer for name in "abc"}
    for name, owner in owners.items():
        stage.world.spawn(stage.ending(owner, transactional_id=name), name=name)
    stage.world.settle()
    assert sorted((node, len(message.markers)) for node, message in stage.peers.requests) == [(1, 3), (2, 3)]
    assert {stage.state(name) for name in "abc"} == {"CompleteCommit"}


def test_while_a_request_is_under_way_the_next_ones_collect(stage: TransactionStage) -> None:
    stage.peers.is_holding = True
    for name in ("a", "b", "c"):
        owner = stage.owner(name)
        stage.add(owner, ORDERS_0, transactional_id=name)
        stage.end(owner, transactional_id=name)
    assert len(stage.peers.requests) == 1
    stage.peers.release()
    stage.world.settle()
    assert [len(message.markers) for _, message in stage.peers.requests] == [1, 2]


@pytest.mark.parametrize(
    "code",
    [
        E.UNKNOWN_TOPIC_OR_PARTITION,
        E.NOT_LEADER_OR_FOLLOWER,
        E.NOT_ENOUGH_REPLICAS,
        E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        E.REQUEST_TIMED_OUT,
        E.KAFKA_STORAGE_ERROR,
        E.UNKNOWN_SERVER_ERROR,
        E.CORRUPT_MESSAGE,
    ],
)
def test_failures_are_tried_again(stage: TransactionStage, code: ErrorCode) -> None:
    stage.peers.codes[ORDERS_0] = [code] * 8
    ended(stage, ORDERS_0, ORDERS_1)
    assert stage.state() == "PrepareCommit"
    stage.world.advance(60)
    stage.world.settle()
    assert stage.state() == "CompleteCommit"
    assert [each.place for each in stage.peers.written].count(ORDERS_1) == 1


@pytest.mark.parametrize("code", [E.INVALID_PRODUCER_EPOCH, E.UNSUPPORTED_FOR_MESSAGE_FORMAT])
def test_a_partition_that_is_over_it_already_needs_no_marker(stage: TransactionStage, code: ErrorCode) -> None:
    stage.peers.codes[ORDERS_0] = [code]
    ended(stage, ORDERS_0, ORDERS_1)
    assert stage.state() == "CompleteCommit"


def test_a_newer_coordinator_goes_on_alone(stage: TransactionStage) -> None:
    stage.peers.codes[ORDERS_0] = [E.TRANSACTION_COORDINATOR_FENCED]
    ended(stage, ORDERS_0)
    stage.world.advance(100)
    stage.world.settle()
    assert stage.state() == "PrepareCommit"
    assert len(stage.peers.requests) == 1


def test_a_broker_that_is_down_gets_them_when_it_is_up(stage: TransactionStage) -> None:
    stage.peers.down.add(1)
    ended(stage, ORDERS_0, ORDERS_1)
    stage.world.advance(5)
    stage.world.settle()
    assert stage.state() == "PrepareCommit"
    stage.peers.down.clear()
    stage.world.advance(2)
    stage.world.settle()
    assert stage.state() == "CompleteCommit"


def test_a_leader_that_moved_is_found(stage: TransactionStage) -> None:
    stage.peers.is_holding = True
    owner = stage.owner()
    stage.add(owner, ORDERS_0)
    stage.end(owner)
    stage.peers.leaders[ORDERS_0] = 3
    stage.peers.release()
    stage.world.settle()
    stage.world.advance(1)
    stage.world.settle()
    assert [node for node, _ in stage.peers.requests] == [1, 3]
    assert stage.state() == "CompleteCommit"


def test_a_partition_without_a_leader_is_waited_for(stage: TransactionStage) -> None:
    stage.peers.leaders[ORDERS_0] = -1
    ended(stage, ORDERS_0)
    assert stage.peers.requests == []
    stage.peers.leaders[ORDERS_0] = 2
    stage.world.advance(1)
    stage.world.settle()
    assert stage.state() == "CompleteCommit"


def test_a_deleted_topic_needs_no_marker(stage: TransactionStage) -> None:
    del stage.peers.leaders[ORDERS_0]
    ended(stage, ORDERS_0, ORDERS_1)
    assert stage.state() == "CompleteCommit"
    assert [each.place for each in stage.peers.written] == [ORDERS_1]


def test_a_topic_that_is_deleted_while_its_broker_is_down(stage: TransactionStage) -> None:
    stage.peers.down.add(1)
    ended(stage, ORDERS_0)
    del stage.peers.leaders[ORDERS_0]
    stage.world.advance(2)
    stage.world.settle()
    assert stage.state() == "CompleteCommit"


def test_a_completion_that_the_log_refuses_is_tried_again(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.add(owner)
    stage.peers.is_holding = True
    stage.end(owner)
    stage.log.refusals = [KafkaError(E.NOT_ENOUGH_REPLICAS)] * 2
    stage.peers.release()
    stage.world.settle()
    assert stage.state() == "PrepareCommit"
    stage.world.advance(2)
    stage.world.settle()
    assert stage.state() == "CompleteCommit"
    assert len(stage.peers.written) == 1
    assert stage.coordinator.markers.pending_count == 0


def test_markers_end_with_the_leadership_and_begin_with_the_next(stage: TransactionStage) -> None:
    stage.peers.down.add(1)
    ended(stage, ORDERS_0)
    stage.log.lose()
    asked = len(stage.peers.requests)
    stage.peers.down.clear()
    stage.world.advance(10)
    stage.world.settle()
    assert len(stage.peers.requests) == asked
    assert stage.coordinator.markers.pending_count == 0
    stage.log.leader_epoch = 4
    stage.load()
    assert stage.state() == "CompleteCommit"
    assert [each.coordinator_epoch for each in stage.peers.written] == [4]


@pytest.mark.parametrize("commit", [True, False])
def test_a_crash_between_decision_and_markers(stage: TransactionStage, commit: bool) -> None:
    owner = stage.owner()
    stage.add(owner, ORDERS_0, ORDERS_1)
    stage.peers.is_holding = True
    stage.end(owner, commit=commit)
    stage.peers.is_holding = False
    stage.crash()
    assert stage.state() == ("CompleteCommit" if commit else "CompleteAbort")
    assert {(each.place, each.commit) for each in stage.peers.written} == {(ORDERS_0, commit), (ORDERS_1, commit)}


def test_a_decision_that_is_not_committed_has_no_markers() -> None:
    stage = TransactionStage(commits_at_once=False)
    owning = stage.begin(stage.coordinator.init_producer_id(InitProducerId(transactional_id="a", timeout_ms=1000)))
    stage.log.commit()
    stage.world.settle()
    owner = owning.result().producer
    adding = stage.begin(stage.coordinator.add_partitions(stage._partitions(owner, (ORDERS_0,), "a")))
    ending = stage.begin(stage.ending(owner))
    assert not adding.done()
    assert not ending.done()
    assert stage.peers.requests == []
    stage.log.commit()
    stage.world.settle()
    assert ending.result().code is E.NONE
    assert len(stage.peers.written) == 1
    stage.close()
