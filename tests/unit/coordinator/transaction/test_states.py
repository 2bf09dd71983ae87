"""Which state may follow which: the table, against Kafka's list and against every step there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.coordinator.transaction.metadata import (
    EPOCH_MAX,
    NO_PRODUCER_ID,
    IllegalTransitionError,
    Producer,
    TransactionMetadata,
)
from penstock.coordinator.transaction.states import LEGAL_PREVIOUS, STATES_BY_LABEL, TransactionState
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1

S = TransactionState
KAFKAS_TABLE = {
    "Empty": {"Empty", "CompleteCommit", "CompleteAbort"},
    "Ongoing": {"Ongoing", "Empty", "CompleteCommit", "CompleteAbort"},
    "PrepareCommit": {"Ongoing"},
    "PrepareAbort": {"Ongoing", "PrepareEpochFence", "Empty", "CompleteCommit", "CompleteAbort"},
    "CompleteCommit": {"PrepareCommit"},
    "CompleteAbort": {"PrepareAbort"},
    "Dead": {"Empty", "CompleteAbort", "CompleteCommit"},
    "PrepareEpochFence": {"Ongoing"},
}

BASE = TransactionMetadata(
    transactional_id="a", producer_id=7, producer_epoch=3, timeout_ms=1000, start_ms=10, last_update_ms=20
)
STEPS: dict[TransactionState, Callable[[TransactionMetadata], TransactionMetadata]] = {
    S.EMPTY: lambda each: each.initialized(Producer(7, 4), 500, 30),
    S.ONGOING: lambda each: each.with_partitions(frozenset({ORDERS_1}), 30),
    S.PREPARE_COMMIT: lambda each: each.prepared(
        commit=True, client_version=2, next_producer_id=NO_PRODUCER_ID, now_ms=30
    ),
    S.PREPARE_ABORT: lambda each: each.prepared(
        commit=False, client_version=2, next_producer_id=NO_PRODUCER_ID, now_ms=30
    ),
}


def test_the_table_is_kafkas() -> None:
    ours = {state.label: {each.label for each in previous} for state, previous in LEGAL_PREVIOUS.items()}
    assert ours == KAFKAS_TABLE


def test_numbers_are_those_of_the_records() -> None:
    assert [state.label for state in sorted(TransactionState)] == [
        "Empty",
        "Ongoing",
        "PrepareCommit",
        "PrepareAbort",
        "CompleteCommit",
        "CompleteAbort",
        "Dead",
        "PrepareEpochFence",
    ]
    assert STATES_BY_LABEL["PrepareAbort"] is S.PREPARE_ABORT


@pytest.mark.parametrize("previous", TransactionState)
@pytest.mark.parametrize("target", STEPS)
def test_a_step_is_taken_from_legal_states_only(previous: TransactionState, target: TransactionState) -> None:
    metadata = replace(BASE, state=previous)
    if previous in LEGAL_PREVIOUS[target]:
        assert STEPS[target](metadata).state is target
    else:
        with pytest.raises(IllegalTransitionError, match=f"'a' cannot go from {previous.label} to {target.label}"):
            STEPS[target](metadata)


def test_a_transaction_begins_when_its_first_partition_is_added() -> None:
    begun = BASE.with_partitions(frozenset({ORDERS_0}), 30)
    grown = begun.with_partitions(frozenset({ORDERS_1}), 40)
    assert (begun.start_ms, grown.start_ms, grown.last_update_ms) == (30, 30, 40)
    assert grown.partitions == {ORDERS_0, ORDERS_1}


@pytest.mark.parametrize(("version", "epoch"), [(0, 3), (1, 3), (2, 4)])
def test_the_epoch_is_raised_by_the_end_in_the_second_protocol_only(version: int, epoch: int) -> None:
    ongoing = replace(BASE, state=S.ONGOING, partitions=frozenset({ORDERS_0}))
    prepared = ongoing.prepared(commit=True, client_version=version, next_producer_id=NO_PRODUCER_ID, now_ms=30)
    assert prepared.producer == Producer(7, epoch)
    completed = prepared.completed(40)
    assert completed.producer == Producer(7, epoch)
    assert completed.partitions == frozenset()


def test_a_new_producer_id_counts_once_the_markers_are_written_under_the_old_one() -> None:
    ongoing = replace(BASE, state=S.ONGOING, producer_epoch=EPOCH_MAX - 1, partitions=frozenset({ORDERS_0}))
    prepared = ongoing.prepared(commit=True, client_version=2, next_producer_id=99, now_ms=30)
    assert prepared.producer == Producer(7, EPOCH_MAX)
    assert prepared.producer_after_completion == Producer(99, 0)
    completed = prepared.completed(40)
    assert completed.producer == Producer(99, 0)
    assert (completed.previous_producer_id, completed.next_producer_id) == (7, NO_PRODUCER_ID)


def test_fencing_never_runs_over_the_last_epoch() -> None:
    ongoing = replace(BASE, state=S.ONGOING, producer_epoch=EPOCH_MAX, partitions=frozenset({ORDERS_0}))
    assert ongoing.fenced(version=0, next_producer_id=NO_PRODUCER_ID, now_ms=30).producer_epoch == EPOCH_MAX
