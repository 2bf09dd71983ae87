"""The leader's question before the first batch of a transaction: who waits for it, in which order, and what makes the
answer worthless."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.metadata.image import PartitionState
from penstock.records.builder import ControlType, end_transaction_marker
from penstock.records.validation import ProduceRules, trust_batch, validate_produced
from penstock.replication import transaction_verification
from penstock.replication.partition import ALL_ACKS, Partition
from penstock.replication.transaction_questions import Answered, ClientSupport, Question
from penstock.replication.transaction_verification import (
    TransactionalBatch,
    TransactionVerification,
    VerificationFailedError,
    produce_error,
)
from tests.unit.replication.fakes import START_MS, VirtualWorld, batch, make_partition

E = ErrorCode
FIRST, SECOND = ClientSupport.OLD_ERRORS, ClientSupport.ADDS_PARTITIONS
PRODUCER = 7


class Asked:
    """The questions that wait for an answer."""

    def __init__(self) -> None:
        self.open: list[tuple[Question, TopicPartition, Answered]] = []

    def ask(self, question: Question, place: TopicPartition, answered: Answered) -> None:
        self.open.append((question, place, answered))

    def answer(self, code: ErrorCode = E.NONE) -> None:
        self.open.pop(0)[2](code)


class Leader:
    """A partition whose transactional batches are verified."""

    def __init__(self, directory: Path) -> None:
        self.world = VirtualWorld()
        self.partition: Partition = make_partition(directory, self.world)
        self.asked = Asked()
        self.is_enabled = True
        self.verification = TransactionVerification(self.asked, tasks=self.world, is_enabled=lambda: self.is_enabled)

    def needs(self, epoch: int = 0) -> bool:
        return self.verification.is_needed(self.partition, PRODUCER, epoch)

    def append(self, sequence: int, *, epoch: int = 0, support: ClientSupport = FIRST) -> asyncio.Future[int]:
        def now() -> int:
            records = batch(
                b"x", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, transactional=True
            )
            validated = validate_produced(records, ProduceRules(), START_MS)
            return self.partition.append(validated, ALL_ACKS, START_MS).first_offset

        if not self.needs(epoch):
            done: asyncio.Future[int] = asyncio.get_running_loop().create_future()
            done.set_result(now())
            return done
        described = TransactionalBatch(
            transactional_id="a", producer_id=PRODUCER, producer_epoch=epoch, base_sequence=sequence, support=support
        )
        return self.verification.append(self.partition, described, now)

    def mark(self, epoch: int = 0, version: int = 0) -> None:
        marker = end_transaction_marker(
            ControlType.ABORT, producer_id=PRODUCER, producer_epoch=epoch, coordinator_epoch=0, timestamp=START_MS
        )
        self.partition.append(trust_batch(bytearray(marker)), ALL_ACKS, START_MS)
        self.verification.marker_written(self.partition.topic_partition, PRODUCER, epoch, version)

    @property
    def end(self) -> int:
        return self.partition.log.log_end_offset


@pytest.fixture
def leader(tmp_path: Path) -> Leader:
    return Leader(tmp_path)


def code_of(future: asyncio.Future[Any]) -> ErrorCode:
    assert future.done()
    error = future.exception()
    assert isinstance(error, KafkaError), error
    return error.code


async def test_the_first_batch_waits_and_the_next_ones_behind_it_in_order(leader: Leader) -> None:
    waiting = [leader.append(sequence) for sequence in range(3)]
    assert leader.end == 0
    assert len(leader.asked.open) == 1, "one question for all of them"
    leader.asked.answer()
    assert [each.result() for each in waiting] == [0, 1, 2]


async def test_an_open_transaction_is_not_asked_about_again(leader: Leader) -> None:
    leader.append(0)
    leader.asked.answer()
    assert not leader.needs()
    assert leader.append(1).result() == 1


async def test_after_its_end_it_is_asked_about_again(leader: Leader) -> None:
    leader.append(0)
    leader.asked.answer()
    leader.mark()
    assert leader.needs()


async def test_another_epoch_is_asked_about(leader: Leader) -> None:
    leader.append(0)
    leader.asked.answer()
    assert leader.needs(epoch=1)


async def test_without_verification_nothing_is_asked(leader: Leader) -> None:
    leader.is_enabled = False
    assert leader.append(0).result() == 0
    assert leader.asked.open == []


@pytest.mark.parametrize(
    "code", [E.INVALID_TXN_STATE, E.TRANSACTION_ABORTABLE, E.INVALID_PRODUCER_EPOCH, E.INVALID_PRODUCER_ID_MAPPING]
)
async def test_a_refusal_is_everybodys_who_waits(leader: Leader, code: ErrorCode) -> None:
    waiting = [leader.append(sequence) for sequence in range(2)]
    leader.asked.answer(code)
    assert [code_of(each) for each in waiting] == [code, code]
    assert leader.end == 0


async def test_a_marker_takes_the_answer_its_worth(leader: Leader) -> None:
    late = leader.append(0)
    leader.mark()
    leader.asked.answer()
    assert code_of(late) is E.INVALID_TXN_STATE
    assert leader.end == 1, "the marker alone"


async def test_a_stale_answer_does_not_speak_for_the_next_question(leader: Leader) -> None:
    late = leader.append(0)
    leader.mark()
    fresh = leader.append(0)
    leader.asked.answer()
    assert code_of(late) is E.INVALID_TXN_STATE
    assert not fresh.done()
    leader.asked.answer()
    assert fresh.result() == 1


@pytest.mark.parametrize(
    ("batch_epoch", "marker_epoch", "version", "is_meant"),
    [
        (5, 5, 0, True),
        (5, 6, 0, True),
        (5, 4, 0, False),
        # In the second protocol the marker carries the epoch that the next transaction begins with.
        (5, 6, 2, True),
        (5, 5, 2, False),
    ],
)
async def test_which_transaction_a_marker_ends(
    leader: Leader, batch_epoch: int, marker_epoch: int, version: int, is_meant: bool
) -> None:
    waiting = leader.append(0, epoch=batch_epoch, support=SECOND)
    leader.verification.marker_written(leader.partition.topic_partition, PRODUCER, marker_epoch, version)
    leader.asked.answer()
    assert (waiting.exception() is not None) == is_meant


async def test_a_new_leader_epoch_takes_the_answer_its_worth(leader: Leader) -> None:
    late = leader.append(0)
    state = PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=1, partition_epoch=1)
    leader.partition.apply_state(state, START_MS)
    leader.asked.answer()
    assert code_of(late) is E.INVALID_TXN_STATE


async def test_a_newer_epoch_overtakes(leader: Leader) -> None:
    old = leader.append(0, epoch=0)
    new = leader.append(0, epoch=1)
    older = leader.append(0, epoch=0)
    assert code_of(older) is E.INVALID_PRODUCER_EPOCH
    leader.asked.answer()
    assert code_of(old) is E.INVALID_TXN_STATE
    leader.asked.answer()
    assert new.result() == 0


async def test_nothing_overtakes_a_batch_whose_question_failed_for_now(leader: Leader) -> None:
    failed = leader.append(0)
    leader.asked.answer(E.NETWORK_EXCEPTION)
    assert code_of(failed) is E.NETWORK_EXCEPTION
    assert code_of(leader.append(1)) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    again = [leader.append(0), leader.append(1)]
    leader.asked.answer()
    assert [each.result() for each in again] == [0, 1]


async def test_a_lower_sequence_may_still_come(leader: Leader) -> None:
    leader.append(5).add_done_callback(lambda done: done.exception())
    leader.asked.answer(E.COORDINATOR_LOAD_IN_PROGRESS)
    lower = leader.append(3)
    leader.asked.answer()
    assert lower.result() == 0


async def test_a_bad_batch_fails_alone(leader: Leader) -> None:
    waiting = [leader.append(0), leader.append(5), leader.append(1)]
    leader.asked.answer()
    assert waiting[0].result() == 0
    assert code_of(waiting[1]) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert waiting[2].result() == 1


async def test_a_new_epoch_of_the_second_protocol_begins_at_zero(leader: Leader) -> None:
    wrong = leader.append(4, support=SECOND)
    leader.asked.answer()
    assert code_of(wrong) is E.OUT_OF_ORDER_SEQUENCE_NUMBER
    right = leader.append(0, support=SECOND)
    leader.asked.answer()
    assert right.result() == 0


async def test_the_first_protocol_may_begin_anywhere(leader: Leader) -> None:
    waiting = leader.append(4)
    leader.asked.answer()
    assert waiting.result() == 0


async def test_a_client_that_has_gone_leaves_its_batch(leader: Leader) -> None:
    gone, other = leader.append(0), leader.append(1)
    gone.cancel()
    leader.asked.answer()
    assert other.result() == 1


async def test_waiting_is_bounded(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_verification, "WAITING_PER_GUARD_MAX", 2)
    leader.append(0)
    leader.append(1)
    assert code_of(leader.append(2)) is E.NOT_ENOUGH_REPLICAS
    leader.asked.answer()


async def test_guards_are_bounded(leader: Leader, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transaction_verification, "GUARDS_MAX", 3)
    for producer_id in range(10):
        described = TransactionalBatch(
            transactional_id="a", producer_id=producer_id, producer_epoch=0, base_sequence=0, support=FIRST
        )
        failed = leader.verification.append(leader.partition, described, lambda: None)
        leader.asked.answer(E.NETWORK_EXCEPTION)
        failed.exception()
    assert len(leader.verification._guards) <= 3


@pytest.mark.parametrize(
    ("code", "support", "told"),
    [
        (E.NETWORK_EXCEPTION, FIRST, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_LOAD_IN_PROGRESS, SECOND, E.NOT_ENOUGH_REPLICAS),
        (E.COORDINATOR_NOT_AVAILABLE, FIRST, E.NOT_ENOUGH_REPLICAS),
        (E.NOT_COORDINATOR, FIRST, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, FIRST, E.NOT_ENOUGH_REPLICAS),
        (E.CONCURRENT_TRANSACTIONS, SECOND, E.CONCURRENT_TRANSACTIONS),
        (E.INVALID_TXN_STATE, FIRST, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, ClientSupport.ABORTABLE_ERROR, E.TRANSACTION_ABORTABLE),
    ],
)
def test_what_a_producer_is_told(code: ErrorCode, support: ClientSupport, told: ErrorCode) -> None:
    assert produce_error(VerificationFailedError(code, ""), support).code is told


def test_other_errors_pass() -> None:
    error = KafkaError(E.REQUEST_TIMED_OUT)
    assert produce_error(error, FIRST) is error
