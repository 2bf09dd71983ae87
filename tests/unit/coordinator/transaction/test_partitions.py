"""AddPartitionsToTxn: what is added, what is refused, and what a partition's leader is told."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.base.errors import ErrorCode
from penstock.coordinator.transaction.metadata import Producer
from penstock.coordinator.transaction.operations.owning import InitProducerId
from penstock.coordinator.transaction.operations.partitions import PartitionsOfTransaction
from penstock.coordinator.transaction.states import TransactionState
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, TransactionStage

E = ErrorCode
S = TransactionState


def test_the_first_partition_begins_the_transaction(stage: TransactionStage) -> None:
    owner = stage.owner()
    assert stage.add(owner, ORDERS_0) is E.NONE
    assert stage.add(owner, ORDERS_1) is E.NONE
    assert stage.state() == "Ongoing"
    assert stage.metadata().partitions == {ORDERS_0, ORDERS_1}


def test_what_is_there_already_is_not_written_again(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.add(owner, ORDERS_0, ORDERS_1)
    end = stage.log.end
    assert stage.add(owner, ORDERS_1) is E.NONE
    assert stage.log.end == end


def test_naming_no_partition_begins_nothing(stage: TransactionStage) -> None:
    request = PartitionsOfTransaction(transactional_id="a", producer=stage.owner(), partitions=frozenset())
    assert stage.ask(stage.coordinator.add_partitions(request)).code is E.NONE
    assert stage.state() == "Empty"


@pytest.mark.parametrize(
    ("state", "change", "code"),
    [
        (S.EMPTY, Producer(0, 0), E.NONE),
        (S.ONGOING, Producer(0, 0), E.NONE),
        (S.COMPLETE_COMMIT, Producer(0, 0), E.NONE),
        (S.COMPLETE_ABORT, Producer(0, 0), E.NONE),
        (S.PREPARE_COMMIT, Producer(0, 0), E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, Producer(0, 0), E.CONCURRENT_TRANSACTIONS),
        (S.PREPARE_ABORT, Producer(1, 0), E.CONCURRENT_TRANSACTIONS),
        (S.ONGOING, Producer(1, 0), E.INVALID_PRODUCER_ID_MAPPING),
        (S.ONGOING, Producer(0, 1), E.PRODUCER_FENCED),
        (S.EMPTY, Producer(0, -1), E.PRODUCER_FENCED),
    ],
)
def test_codes_by_state(stage: TransactionStage, state: TransactionState, change: Producer, code: ErrorCode) -> None:
    stage.owner()
    owner = stage.owner()
    stage.peers.is_holding = True
    partitions = frozenset({ORDERS_0}) if not state.is_idle else frozenset()
    stage.put(replace(stage.metadata(), state=state, partitions=partitions, start_ms=stage.world.time_ms()))
    assert stage.add(Producer(owner.id + change.id, owner.epoch + change.epoch), ORDERS_1) is code


def test_unknown_ids(stage: TransactionStage) -> None:
    assert stage.add(Producer(1, 0), transactional_id="nobody") is E.INVALID_PRODUCER_ID_MAPPING
    assert stage.add(Producer(1, 0), transactional_id="") is E.INVALID_REQUEST
    assert stage.verify(Producer(1, 0), transactional_id="nobody") == {ORDERS_0: E.INVALID_PRODUCER_ID_MAPPING}
    assert stage.verify(Producer(1, 0), transactional_id="") == {ORDERS_0: E.INVALID_REQUEST}


def test_a_leader_is_told_which_partitions_are_in_the_transaction(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.add(owner, ORDERS_0)
    assert stage.verify(owner, ORDERS_0, ORDERS_1) == {ORDERS_0: E.NONE, ORDERS_1: E.TRANSACTION_ABORTABLE}
    assert stage.verify(Producer(owner.id, 1), ORDERS_0) == {ORDERS_0: E.PRODUCER_FENCED}
    assert stage.verify(Producer(owner.id + 1, 0), ORDERS_0) == {ORDERS_0: E.INVALID_PRODUCER_ID_MAPPING}


def test_after_the_end_nothing_is_in_the_transaction(stage: TransactionStage) -> None:
    owner = stage.owner()
    stage.add(owner, ORDERS_0)
    stage.peers.is_holding = True
    stage.end(owner, version=0)
    assert stage.verify(owner, ORDERS_0) == {ORDERS_0: E.CONCURRENT_TRANSACTIONS}
    stage.peers.release()
    stage.world.settle()
    assert stage.verify(owner, ORDERS_0) == {ORDERS_0: E.TRANSACTION_ABORTABLE}


def test_a_partition_that_is_about_to_be_added_is_not_in_it(make_stage: Callable[..., TransactionStage]) -> None:
    stage = make_stage(commits_at_once=False)
    owning = stage.begin(stage.coordinator.init_producer_id(InitProducerId(transactional_id="a", timeout_ms=1000)))
    stage.log.commit()
    stage.world.settle()
    owner = owning.result().producer
    adding = stage.begin(stage.coordinator.add_partitions(_partitions(owner)))
    assert not adding.done()
    assert stage.verify(owner, ORDERS_0) == {ORDERS_0: E.TRANSACTION_ABORTABLE}
    stage.log.commit()
    stage.world.settle()
    assert adding.result().code is E.NONE
    assert stage.verify(owner, ORDERS_0) == {ORDERS_0: E.NONE}


def test_the_next_transaction_waits_a_moment_for_the_markers_of_the_last(
    make_stage: Callable[..., TransactionStage],
) -> None:
    stage = make_stage(completion_wait_ms=100)
    owner = stage.owner()
    stage.add(owner, ORDERS_0)
    stage.peers.is_holding = True
    stage.end(owner, version=0)
    adding = stage.begin(stage.coordinator.add_partitions(_partitions(owner)))
    assert not adding.done()
    stage.peers.release()
    stage.world.settle()
    assert adding.result().code is E.NONE


def test_but_not_for_long(make_stage: Callable[..., TransactionStage]) -> None:
    stage = make_stage(completion_wait_ms=100)
    owner = stage.owner()
    stage.add(owner, ORDERS_0)
    stage.peers.is_holding = True
    stage.end(owner, version=0)
    adding = stage.begin(stage.coordinator.add_partitions(_partitions(owner)))
    stage.world.advance(0.1)
    stage.world.settle()
    assert adding.result().code is E.CONCURRENT_TRANSACTIONS


def _partitions(owner: Producer) -> PartitionsOfTransaction:
    return PartitionsOfTransaction(transactional_id="a", producer=owner, partitions=frozenset({ORDERS_0}))
