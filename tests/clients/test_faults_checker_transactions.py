"""Brokers killed under transactions: a reader of committed records sees each one whole, once, or not at all."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.clients.support import TopicMaker
from tests.clients.test_transactions import QUICK_RESTART, read
from tests.clients.transaction_checker import CommittedReader, End, TransactionLedger, TransactionWriters
from tests.support.brokers import Broker

PARTITIONS = 3
COMMITTED_PER_LIFE, ABORTED_PER_LIFE = 15, 3


def test_transactions_under_kills(start_cluster: Callable[..., Broker]) -> None:
    broker = start_cluster(**QUICK_RESTART)
    topic = TopicMaker(broker.bootstrap, "transactions")(partitions=PARTITIONS)
    reader = CommittedReader(broker.bootstrap, topic, PARTITIONS)
    writers = TransactionWriters(broker.bootstrap, topic, PARTITIONS)
    writers.start()
    for down_s in (0.0, 1.0) if broker.name == "penstock" else (0.5,):
        writers.wait_for_more(COMMITTED_PER_LIFE, ABORTED_PER_LIFE)
        broker.kill()
        time.sleep(down_s)
        broker.start()
    writers.wait_for_more(COMMITTED_PER_LIFE, ABORTED_PER_LIFE)
    writers.stop()
    assert not writers.errors, writers.errors[:3]
    ledger, seen = writers.ledger, reader.finish()
    assert not reader.errors, reader.errors
    assert ledger.faults(seen, PARTITIONS)[:5] == []
    # What was aborted is in the log, and only the reader's isolation hides it.
    assert len(read(broker.bootstrap, topic, 0, partitions=PARTITIONS, isolation="read_uncommitted")) > len(seen)


@pytest.mark.parametrize(
    ("end", "times", "is_fault"),
    [
        (End.COMMITTED, 3, False), (End.COMMITTED, 2, True), (End.COMMITTED, 6, True), (End.COMMITTED, 0, True),
        (End.ABORTED, 0, False), (End.ABORTED, 1, True), (End.UNKNOWN, 3, False), (End.UNKNOWN, 1, True),
    ],
)  # fmt: skip
def test_the_ledger_sees(end: End, times: int, is_fault: bool) -> None:
    assert bool(TransactionLedger({"w-0": end}).faults(["w-0"] * times, 3)) is is_fault


def test_the_ledger_sees_what_nobody_wrote() -> None:
    assert TransactionLedger().faults(["x"], 1) == ["x: of no writer"]
