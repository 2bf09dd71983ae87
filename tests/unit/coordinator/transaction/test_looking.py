"""DescribeTransactions and ListTransactions: the committed state, filtered."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.transaction.answers import DescribedTransaction
from penstock.coordinator.transaction.operations.looking import TransactionFilter
from penstock.coordinator.transaction.states import TransactionState
from tests.unit.coordinator.transaction.stage import ORDERS_0, ORDERS_1, PAYMENTS_0, TIMEOUT_MS, TransactionStage

E = ErrorCode
S = TransactionState


@pytest.fixture
def busy(stage: TransactionStage) -> TransactionStage:
    """An empty id, an open transaction that began five seconds ago, and one that is complete."""
    stage.owner("empty")
    stage.add(stage.owner("open"), ORDERS_1, ORDERS_0, PAYMENTS_0, transactional_id="open")
    stage.world.advance(5)
    done = stage.owner("done")
    stage.add(done, transactional_id="done")
    stage.end(done, transactional_id="done")
    stage.world.settle()
    return stage


def listed(stage: TransactionStage, **wanted: object) -> set[str]:
    found = stage.coordinator.list_transactions(TransactionFilter(**wanted))  # type: ignore[arg-type]
    return {each.transactional_id for each in found}


def test_a_transaction_is_described(busy: TransactionStage) -> None:
    metadata = busy.metadata("open")
    assert busy.coordinator.describe_transaction("open") == DescribedTransaction(
        "open",
        E.NONE,
        "Ongoing",
        TIMEOUT_MS,
        metadata.start_ms,
        metadata.producer,
        {"orders": [0, 1], "payments": [0]},
    )


@pytest.mark.parametrize(("name", "code"), [("nobody", E.TRANSACTIONAL_ID_NOT_FOUND), ("", E.INVALID_REQUEST)])
def test_what_cannot_be_described(busy: TransactionStage, name: str, code: ErrorCode) -> None:
    assert busy.coordinator.describe_transaction(name).code is code


def test_filters(busy: TransactionStage) -> None:
    assert listed(busy) == {"empty", "open", "done"}
    assert listed(busy, any_state=False, states=frozenset({S.ONGOING, S.EMPTY})) == {"empty", "open"}
    assert listed(busy, any_state=False) == set()
    assert listed(busy, producer_ids=frozenset({busy.metadata("done").producer_id})) == {"done"}
    assert listed(busy, id_matches=lambda name: name.endswith("n")) == {"open"}
    assert listed(busy, duration_ms=4_999, any_state=False, states=frozenset({S.ONGOING})) == {"open"}
    assert listed(busy, duration_ms=5_000, any_state=False, states=frozenset({S.ONGOING})) == set()


def test_elsewhere(busy: TransactionStage) -> None:
    busy.log.lose()
    assert busy.coordinator.describe_transaction("open").code is E.NOT_COORDINATOR
    assert busy.coordinator.list_transactions(TransactionFilter()) == []


def test_while_loading_there_is_no_list(busy: TransactionStage) -> None:
    busy.log.lose()
    busy.log.leader_epoch = 3
    busy.runtime.load(0, 3)
    assert busy.coordinator.describe_transaction("open").code is E.COORDINATOR_LOAD_IN_PROGRESS
    with pytest.raises(KafkaError) as caught:
        busy.coordinator.list_transactions(TransactionFilter())
    assert caught.value.code is E.COORDINATOR_LOAD_IN_PROGRESS
    busy.world.settle()
    assert listed(busy) == {"empty", "open", "done"}
