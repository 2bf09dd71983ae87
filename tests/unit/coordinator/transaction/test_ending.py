"""EndTxn in both protocols: the codes by state, repetitions, epochs that run out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.base.errors import ErrorCode
from penstock.coordinator.transaction.answers import Answer
from penstock.coordinator.transaction.metadata import EPOCH_MAX, Producer
from penstock.coordinator.transaction.states import TransactionState
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, TransactionStage

E = ErrorCode
S = TransactionState
LAST_EPOCH = EPOCH_MAX - 1


def in_state(stage: TransactionStage, state: TransactionState, epoch: int = 5) -> Producer:
    owner = stage.owner()
    stage.peers.is_holding = True
    stage.put(
        replace(
            stage.metadata(),
            state=state,
            producer_epoch=epoch,
            partitions=frozenset() if state.is_idle else frozenset({ORDERS_0}),
            start_ms=stage.world.time_ms(),
        )
    )
    return Producer(owner.id, epoch)


@pytest.mark.parametrize(
    ("state", "commit", "code"),
    [
        (S.EMPTY, True, E.INVALID_TXN_STATE),
        (S.EMPTY, False, E.INVALID_TXN_STATE),
        (S.ONGOING, True, E.NONE),
        (S.ONGOING, False, E.NONE),
        (S.PREPARE_COMMIT, True, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_COMMIT, False, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, True, E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, False, E.CONCURRENT_TRANSACTIONS),
        (S.COMPLETE_COMMIT, True, E.NONE),
        (S.COMPLETE_COMMIT, False, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, True, E.INVALID_TXN_STATE),
        (S.COMPLETE_ABORT, False, E.NONE),
    ],
)
def test_codes_of_the_first_protocol(
    stage: TransactionStage, state: TransactionState, commit: bool, code: ErrorCode
) -> None:
    owner = in_state(stage, state)
    assert stage.end(owner, commit=commit, version=0).code is code


@pytest.mark.parametrize(
    ("state", "commit", "behind", "code", "bumped"),
    [
        # (state, commit or abort, how far behind our epoch the client is, code, whether the epoch is raised by it)
        (S.EMPTY, False, 0, E.NONE, True),
        (S.EMPTY, True, 0, E.INVALID_TXN_STATE, False),
        (S.EMPTY, False, 1, E.PRODUCER_FENCED, False),
        (S.EMPTY, True, 1, E.PRODUCER_FENCED, False),
        (S.ONGOING, True, 0, E.NONE, True),
        (S.ONGOING, False, 0, E.NONE, True),
        (S.ONGOING, True, 1, E.PRODUCER_FENCED, False),
        (S.ONGOING, True, -1, E.PRODUCER_FENCED, False),
        (S.PREPARE_COMMIT, True, 1, E.CONCURRENT_TRANSACTIONS, False),
        (S.PREPARE_COMMIT, False, 1, E.CONCURRENT_TRANSACTIONS, False),
        (S.PREPARE_ABORT, False, 1, E.CONCURRENT_TRANSACTIONS, False),
        (S.COMPLETE_COMMIT, True, 1, E.NONE, False),
        (S.COMPLETE_COMMIT, True, 0, E.INVALID_TXN_STATE, False),
        (S.COMPLETE_COMMIT, False, 1, E.INVALID_TXN_STATE, False),
        (S.COMPLETE_COMMIT, False, 0, E.NONE, True),
        (S.COMPLETE_COMMIT, True, 2, E.PRODUCER_FENCED, False),
        (S.COMPLETE_ABORT, False, 1, E.NONE, False),
        (S.COMPLETE_ABORT, False, 0, E.NONE, True),
        (S.COMPLETE_ABORT, True, 1, E.INVALID_TXN_STATE, False),
        (S.COMPLETE_ABORT, True, 0, E.INVALID_TXN_STATE, False),
        (S.COMPLETE_ABORT, False, -1, E.PRODUCER_FENCED, False),
    ],
)
def test_codes_of_the_second_protocol(
    stage: TransactionStage, state: TransactionState, commit: bool, behind: int, code: ErrorCode, bumped: bool
) -> None:
    owner = in_state(stage, state)
    answer = stage.end(Producer(owner.id, owner.epoch - behind), commit=commit)
    assert answer.code is code
    if code is E.NONE:
        assert answer.producer == Producer(owner.id, owner.epoch + bumped)
    assert stage.metadata().producer_epoch == owner.epoch + bumped


@pytest.mark.parametrize("version", [0, 2])
def test_others_may_not_end_it(stage: TransactionStage, version: int) -> None:
    owner = in_state(stage, S.ONGOING)
    assert stage.end(Producer(owner.id + 1, owner.epoch), version=version).code is E.INVALID_PRODUCER_ID_MAPPING
    assert stage.end(Producer(owner.id, owner.epoch + 1), version=version).code is E.PRODUCER_FENCED
    assert stage.end(owner, transactional_id="b", version=version).code is E.INVALID_PRODUCER_ID_MAPPING
    assert stage.end(owner, transactional_id="", version=version).code is E.INVALID_REQUEST
    assert stage.state() == "Ongoing"


@pytest.mark.parametrize("commit", [True, False])
@pytest.mark.parametrize(("version", "epoch"), [(0, 0), (2, 1)])
def test_an_end_goes_to_every_partition(stage: TransactionStage, commit: bool, version: int, epoch: int) -> None:
    owner = stage.owner()
    stage.add(owner, ORDERS_0, ORDERS_1)
    assert stage.end(owner, commit=commit, version=version) == Answer(E.NONE, Producer(owner.id, epoch))
    stage.world.settle()
    assert stage.state() == ("CompleteCommit" if commit else "CompleteAbort")
    markers = {(each.place, each.commit, each.producer, each.version) for each in stage.peers.written}
    assert markers == {(place, commit, Producer(owner.id, epoch), version) for place in (ORDERS_0, ORDERS_1)}


def test_an_abort_of_nothing_raises_the_epoch_and_writes_no_marker(stage: TransactionStage) -> None:
    owner = stage.owner()
    assert stage.end(owner, commit=False) == Answer(E.NONE, Producer(owner.id, 1))
    stage.world.settle()
    assert stage.state() == "CompleteAbort"
    assert stage.peers.requests == []


def test_transactions_follow_each_other_with_one_epoch_each(stage: TransactionStage) -> None:
    owner = stage.owner()
    for expected in range(1, 6):
        assert stage.add(owner) is E.NONE
        owner = stage.end(owner).producer
        stage.world.settle()
        assert owner.epoch == expected


def test_the_end_under_the_last_epoch_brings_a_new_id(stage: TransactionStage) -> None:
    owner = in_state(stage, S.ONGOING, LAST_EPOCH)
    fresh = Producer(owner.id + 1, 0)
    assert stage.end(owner) == Answer(E.NONE, fresh)
    # The producer may be quicker than the markers, and come with its new id.
    assert stage.add(fresh) is E.CONCURRENT_TRANSACTIONS
    assert stage.end(fresh, commit=False).code is E.CONCURRENT_TRANSACTIONS
    stage.peers.release()
    stage.world.settle()
    assert [each.producer for each in stage.peers.written] == [Producer(owner.id, EPOCH_MAX)]
    assert stage.end(owner) == Answer(E.NONE, fresh), "a repetition"
    assert stage.end(owner, commit=False).code is E.INVALID_TXN_STATE
    assert stage.add(fresh) is E.NONE
    assert stage.end(owner).code is E.INVALID_PRODUCER_ID_MAPPING, "no repetition of this one"


def test_a_repetition_across_a_crash(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.add(owner)
    answer = stage.end(owner)
    stage.crash()
    assert stage.end(owner) == answer


def test_clients_of_both_protocols_share_a_coordinator(stage: TransactionStage) -> None:
    old, new = stage.owner("old"), stage.owner("new")
    for _ in range(3):
        stage.add(old, ORDERS_0, transactional_id="old")
        stage.add(new, ORDERS_0, transactional_id="new")
        assert stage.end(old, version=0, transactional_id="old").producer == old
        new = stage.end(new, transactional_id="new").producer
        stage.world.settle()
    assert new.epoch == 3
