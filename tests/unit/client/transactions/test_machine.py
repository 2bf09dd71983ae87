"""The bookkeeping of transactions, without a broker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.errors import InvalidState, ProducerFenced, TransactionError, error_for
from penstock.client.producer.transactions.machine import TransactionMachine
from penstock.client.producer.transactions.states import TRANSITIONS, TransactionState

S = TransactionState
P0, P1 = TopicPartition("t", 0), TopicPartition("t", 1)


def machine_in(state: S, version: int = 1) -> TransactionMachine:
    machine = TransactionMachine("t-1")
    machine.version = version
    machine.move(S.INITIALIZING)
    machine.finish()
    if state is S.IN_TRANSACTION:
        machine.begin()
    return machine


def test_every_state_has_a_row_and_fatal_is_the_end() -> None:
    assert set(TRANSITIONS) == set(S)
    assert TRANSITIONS[S.FATAL_ERROR] == frozenset()
    assert all(S.FATAL_ERROR in after for state, after in TRANSITIONS.items() if state is not S.FATAL_ERROR)


@given(st.lists(st.sampled_from(list(S)), max_size=12))
def test_only_ways_of_the_table_are_taken(path: list[S]) -> None:
    machine = TransactionMachine("t-1")
    for state in path:
        before = machine.state
        if state in TRANSITIONS[before]:
            machine.move(state)
        else:
            with pytest.raises(InvalidState, match=before.name):
                machine.move(state)
            assert machine.state is before


def test_records_outside_a_transaction_are_refused_with_the_remedy() -> None:
    with pytest.raises(InvalidState, match=r"init_transactions\(\)"):
        TransactionMachine("t-1").check_can_append()
    with pytest.raises(InvalidState, match=r"begin_transaction\(\)"):
        machine_in(S.READY).check_can_append()
    machine_in(S.IN_TRANSACTION).check_can_append()


def test_v1_partition_waits_until_announced() -> None:
    machine = machine_in(S.IN_TRANSACTION)
    machine.partition_appended(P0)
    assert not machine.may_drain(P0)
    assert machine.take_new_partitions() == {P0}
    machine.partition_appended(P1)
    assert machine.take_new_partitions() == frozenset(), "one announcement at a time"
    machine.partitions_added(True)
    assert machine.may_drain(P0)
    assert not machine.may_drain(P1)
    assert machine.take_new_partitions() == {P1}
    assert machine.known_to_coordinator


def test_v1_failed_announcement_is_made_again() -> None:
    machine = machine_in(S.IN_TRANSACTION)
    machine.partition_appended(P0)
    machine.take_new_partitions()
    machine.partitions_added(False)
    assert not machine.may_drain(P0)
    assert machine.take_new_partitions() == {P0}


def test_v2_partition_needs_no_announcement() -> None:
    machine = machine_in(S.IN_TRANSACTION, version=2)
    machine.partition_appended(P0)
    assert machine.take_new_partitions() == frozenset()
    assert machine.may_drain(P0)
    assert machine.known_to_coordinator


def test_each_transaction_starts_empty() -> None:
    machine = machine_in(S.IN_TRANSACTION, version=2)
    machine.partition_appended(P0)
    machine.move(S.COMMITTING)
    assert machine.may_drain(P0), "a commit flushes first"
    machine.finish()
    assert not machine.may_drain(P0)
    machine.begin()
    assert not machine.known_to_coordinator
    assert not machine.may_drain(P0)


def test_abortable_error_stands_until_the_abort() -> None:
    machine = machine_in(S.IN_TRANSACTION)
    machine.fail(error_for(ErrorCode.MESSAGE_TOO_LARGE, "too large"), fatal=False, new_epoch=True)
    for check in (machine.check_can_append, machine.check_no_error, lambda: machine.check("commit", S.IN_TRANSACTION)):
        with pytest.raises(TransactionError, match=r"too large.*abort_transaction\(\)") as caught:
            check()
        assert caught.value.abortable
        assert not caught.value.fatal
    assert machine.is_dropping
    assert machine.needs_epoch
    machine.move(S.ABORTING)
    machine.check_no_error()
    machine.finish()
    assert not machine.needs_epoch
    assert machine.error is None


def test_first_abortable_error_is_kept_but_a_fatal_one_wins() -> None:
    machine = machine_in(S.IN_TRANSACTION)
    machine.fail(error_for(ErrorCode.MESSAGE_TOO_LARGE, "first"), fatal=False)
    machine.fail(error_for(ErrorCode.MESSAGE_TOO_LARGE, "second"), fatal=False)
    assert machine.error is not None
    assert machine.error.message == "first"
    machine.fail(error_for(ErrorCode.PRODUCER_FENCED, "fenced"), fatal=True)
    machine.fail(error_for(ErrorCode.MESSAGE_TOO_LARGE, "third"), fatal=False)
    with pytest.raises(ProducerFenced, match="fenced") as caught:
        machine.check_no_error()
    assert caught.value.fatal
    assert machine.state is S.FATAL_ERROR


def test_losses_while_aborting_only_ask_for_an_epoch() -> None:
    machine = machine_in(S.IN_TRANSACTION)
    machine.move(S.ABORTING)
    machine.fail(error_for(ErrorCode.REQUEST_TIMED_OUT), fatal=False, new_epoch=True)
    assert machine.state is S.ABORTING
    assert machine.needs_epoch
    other = machine_in(S.IN_TRANSACTION, version=2)
    other.fail(error_for(ErrorCode.REQUEST_TIMED_OUT), fatal=False, new_epoch=True)
    assert not other.needs_epoch, "every end of a transaction brings one"
