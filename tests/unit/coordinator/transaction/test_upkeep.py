"""What the coordinator does by itself: aborting what is open for too long, forgetting ids nobody uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.transaction.metadata import EPOCH_MAX, Producer
from penstock.coordinator.transaction.operations import upkeep
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, TransactionStage

E = ErrorCode


def test_a_transaction_that_is_open_for_too_long_is_aborted(stage: TransactionStage) -> None:
    owner = stage.init(timeout_ms=5_000).producer
    stage.add(owner, ORDERS_0, ORDERS_1)
    stage.world.advance(4.9)
    assert stage.state() == "Ongoing"
    stage.world.advance(10)
    stage.world.settle()
    assert stage.state() == "CompleteAbort"
    assert {(each.place, each.commit, each.producer.epoch) for each in stage.peers.written} == {
        (ORDERS_0, False, 1),
        (ORDERS_1, False, 1),
    }


def test_its_producer_is_fenced(stage: TransactionStage) -> None:
    owner = stage.init(timeout_ms=5_000).producer
    stage.add(owner)
    stage.world.advance(20)
    stage.world.settle()
    assert stage.add(owner) is E.PRODUCER_FENCED
    assert stage.end(owner, version=0).code is E.PRODUCER_FENCED
    assert stage.end(owner).code is E.INVALID_TXN_STATE
    # It wanted to abort, and that is what happened.
    assert stage.end(owner, commit=False).producer == Producer(owner.id, 1)


def test_a_transaction_in_time_stays(stage: TransactionStage) -> None:
    owner = stage.init(timeout_ms=50_000).producer
    stage.add(owner)
    stage.world.advance(45)
    assert stage.state() == "Ongoing"
    assert stage.end(owner).code is E.NONE


def test_an_abort_that_the_log_refuses_is_tried_again(stage: TransactionStage) -> None:
    owner = stage.init(timeout_ms=1_000).producer
    stage.add(owner)
    stage.log.refusals = [KafkaError(E.NOT_ENOUGH_REPLICAS)] * 3
    stage.world.advance(10)
    stage.world.settle()
    assert stage.state() == "Ongoing"
    stage.world.advance(10)
    stage.world.settle()
    assert stage.state() == "CompleteAbort"
    assert stage.metadata().producer_epoch == 1


def test_the_last_epoch_is_aborted_too_when_a_producer_id_is_there(stage: TransactionStage) -> None:
    owner = stage.init(timeout_ms=1_000).producer
    stage.put(replace(stage.metadata(), producer_epoch=EPOCH_MAX - 1))
    owner = Producer(owner.id, EPOCH_MAX - 1)
    stage.add(owner)
    stage.world.advance(10)
    stage.world.settle()
    assert stage.state() == "Ongoing", "no id yet"
    stage.world.advance(10)
    stage.world.settle()
    assert stage.state() == "CompleteAbort"
    assert stage.end(owner, commit=False).producer == Producer(owner.id + 1, 0)


def test_many_are_aborted_in_turns(stage: TransactionStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upkeep, "RECORDS_AT_ONCE_MAX", 3)
    for number in range(10):
        name = f"tran-{number}"
        stage.add(stage.init(name, timeout_ms=1_000).producer, transactional_id=name)
    stage.world.advance(11)
    stage.world.settle()
    assert {stage.state(f"tran-{number}") for number in range(10)} == {"CompleteAbort"}


def test_ids_expire(make_stage: Callable[..., TransactionStage]) -> None:
    stage = make_stage(id_expiration_ms=10_000, expiration_interval_ms=1_000, abort_interval_ms=1_000_000)
    stage.owner("idle")
    busy = stage.init("busy", timeout_ms=900_000).producer
    stage.add(busy, transactional_id="busy")
    stage.world.advance(9)
    assert stage.state("idle") == "Empty"
    stage.world.advance(3)
    assert stage.coordinator.describe_transaction("idle").code is E.TRANSACTIONAL_ID_NOT_FOUND
    assert stage.state("busy") == "Ongoing"
    assert stage.owner("idle").epoch == 0


def test_duties_end_with_the_shard(stage: TransactionStage) -> None:
    owner = stage.init(timeout_ms=1_000).producer
    stage.add(owner)
    stage.log.lose()
    stage.world.advance(100)
    stage.world.settle()
    assert stage.peers.requests == []
