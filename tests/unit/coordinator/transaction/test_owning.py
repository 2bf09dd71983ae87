"""InitProducerId: owners come, fence each other, ask for epochs, and run out of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.base.errors import ErrorCode
from penstock.coordinator.transaction.answers import Answer
from penstock.coordinator.transaction.metadata import EPOCH_MAX, Producer
from penstock.coordinator.transaction.states import TransactionState
from tests.unit.coordinator.transaction.stage import ORDERS_0, TransactionStage

E = ErrorCode
S = TransactionState
LAST_EPOCH = EPOCH_MAX - 1


def test_a_new_id_gets_a_new_producer(stage: TransactionStage) -> None:
    assert stage.init("a") == Answer(E.NONE, Producer(1001, 0))
    assert stage.init("b") == Answer(E.NONE, Producer(1002, 0))
    assert stage.state("a") == "Empty"


def test_each_new_owner_gets_the_next_epoch(stage: TransactionStage) -> None:
    assert [stage.owner().epoch for _ in range(3)] == [0, 1, 2]


@pytest.mark.parametrize(
    ("timeout_ms", "code"),
    [
        (0, E.INVALID_TRANSACTION_TIMEOUT),
        (-1, E.INVALID_TRANSACTION_TIMEOUT),
        (900_000, E.NONE),
        (900_001, E.INVALID_TRANSACTION_TIMEOUT),
    ],
)
def test_the_timeout_is_bounded(stage: TransactionStage, timeout_ms: int, code: ErrorCode) -> None:
    assert stage.init("a", timeout_ms=timeout_ms).code is code


def test_an_empty_id_is_no_id(stage: TransactionStage) -> None:
    assert stage.init("").code is E.INVALID_REQUEST


def test_an_open_transaction_is_aborted_first(stage: TransactionStage) -> None:
    first = stage.owner()
    stage.add(first)
    stage.peers.is_holding = True
    assert stage.init() == Answer(E.CONCURRENT_TRANSACTIONS)
    assert stage.state() == "PrepareAbort"
    assert stage.init() == Answer(E.CONCURRENT_TRANSACTIONS)
    stage.peers.release()
    stage.world.settle()
    assert stage.state() == "CompleteAbort"
    assert [(each.place, each.commit, each.producer) for each in stage.peers.written] == [
        (ORDERS_0, False, Producer(first.id, 1))
    ]
    assert stage.init() == Answer(E.NONE, Producer(first.id, 2))
    assert stage.add(first) is E.PRODUCER_FENCED


def test_without_producer_ids_the_caller_comes_back(stage: TransactionStage) -> None:
    stage.no_ids = True
    assert stage.init().code is E.COORDINATOR_NOT_AVAILABLE
    stage.no_ids = False
    assert stage.init().code is E.NONE


# -- A producer that names itself (KIP-360) ----------------------------------------------------------------------------


def test_the_owner_gets_the_next_epoch(stage: TransactionStage) -> None:
    owner = stage.owner()
    assert stage.init(expected=owner) == Answer(E.NONE, Producer(owner.id, 1))


def test_the_same_question_gets_the_same_answer(stage: TransactionStage) -> None:
    owner = stage.owner()
    first = stage.init(expected=owner)
    assert stage.init(expected=owner) == first
    assert stage.init(expected=owner) == first


def test_after_another_owner_it_is_no_repetition(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.init(expected=owner)
    stage.owner()
    assert stage.init(expected=owner).code is E.PRODUCER_FENCED


def test_after_a_new_transaction_it_is_no_repetition(stage: TransactionStage) -> None:
    owner = stage.owner()
    bumped = stage.init(expected=owner).producer
    stage.add(bumped)
    stage.end(bumped, version=0)
    assert stage.init(expected=owner).code is E.PRODUCER_FENCED


def test_a_repetition_is_not_known_to_the_next_coordinator(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.init(expected=owner)
    stage.crash()
    assert stage.init(expected=owner).code is E.PRODUCER_FENCED


@pytest.mark.parametrize("change", [Producer(1, 0), Producer(0, -1), Producer(0, 1)])
def test_others_are_fenced(stage: TransactionStage, change: Producer) -> None:
    stage.owner()
    owner = stage.owner()
    stranger = Producer(owner.id + change.id, owner.epoch + change.epoch)
    assert stage.init(expected=stranger).code is E.PRODUCER_FENCED


def test_an_expired_id_is_given_anew(stage: TransactionStage) -> None:
    assert stage.init(expected=Producer(55, 3)) == Answer(E.NONE, Producer(1001, 0))


def test_the_owner_of_an_open_transaction_aborts_it(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.add(owner)
    assert stage.init(expected=owner).code is E.CONCURRENT_TRANSACTIONS
    assert stage.state() == "CompleteAbort"


# -- The last epoch ----------------------------------------------------------------------------------------------------


def put_epoch(stage: TransactionStage, epoch: int, state: TransactionState = S.EMPTY) -> Producer:
    owner = stage.owner()
    stage.put(replace(stage.metadata(), producer_epoch=epoch, state=state))
    return Producer(owner.id, epoch)


def test_the_epoch_before_the_last_is_the_last_to_be_given(stage: TransactionStage) -> None:
    owner = put_epoch(stage, LAST_EPOCH - 1)
    assert stage.owner() == Producer(owner.id, LAST_EPOCH)
    assert stage.owner() == Producer(owner.id + 1, 0)


def test_the_owner_of_the_last_epoch_gets_a_new_id_and_may_ask_again(stage: TransactionStage) -> None:
    owner = put_epoch(stage, LAST_EPOCH)
    rotated = stage.init(expected=owner)
    assert rotated == Answer(E.NONE, Producer(owner.id + 1, 0))
    assert stage.init(expected=owner) == rotated


def test_another_owner_of_an_exhausted_id_is_fenced(stage: TransactionStage) -> None:
    owner = put_epoch(stage, EPOCH_MAX, S.COMPLETE_ABORT)
    assert stage.init(expected=Producer(owner.id, 5)).code is E.PRODUCER_FENCED


@pytest.mark.parametrize(("version", "expected"), [(0, EPOCH_MAX), (2, 0)])
def test_fencing_takes_the_last_epoch(make_stage: Callable[..., TransactionStage], version: int, expected: int) -> None:
    stage = make_stage(transaction_version=version)
    owner = put_epoch(stage, LAST_EPOCH)
    stage.add(owner)
    assert stage.init().code is E.CONCURRENT_TRANSACTIONS
    assert [each.producer for each in stage.peers.written] == [Producer(owner.id, EPOCH_MAX)]
    assert stage.metadata().producer_epoch == expected
    fresh = stage.owner()
    assert fresh.id > owner.id
