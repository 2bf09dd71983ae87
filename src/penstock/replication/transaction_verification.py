"""Before the first record of a transaction is appended, its coordinator is asked whether the partition belongs to it.

Without that a record that comes late, after the end of its transaction, would open another one that nobody ever ends,
and readers of committed records would stop in front of it for ever (KIP-890). Producers of the first protocol have
told the coordinator before, so the question is only whether they did; for those of the second the same request adds
the partition.

A *guard* stands for one such question about a producer in a partition. Batches that arrive while it is open wait behind
it, and are appended in their order when it is answered. A marker that is written meanwhile takes the guard away: the
answer speaks of a transaction that is over. Once one batch is in the log the producer has a transaction there, and
batches of the same epoch need no further question.

A guard that was not answered for a passing reason remembers the lowest sequence it has seen: a later batch that
overtakes the one that failed would otherwise be taken for the beginning.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.base.types import TopicPartition
from penstock.replication.partition import Partition
from penstock.replication.transaction_questions import AskCoordinators, ClientSupport, Question

WAITING_PER_GUARD_MAX: Final = 100
GUARDS_MAX: Final = 100_000
_EPOCH_BUMP_VERSION: Final = 2

Append = Callable[[], Any]
"""Appends one batch; what it returns is the answer to whoever waits."""

_PASSING = frozenset(
    {
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.BROKER_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionalBatch:
    """What must be known of a batch to verify it. `base_sequence` is -1 for a coordinator's own records."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    base_sequence: int
    support: ClientSupport


class VerificationFailedError(KafkaError):
    """The batch was not appended, since its transaction could not be verified."""


class _Waiter:
    __slots__ = ("append", "batch", "future")

    def __init__(self, batch: TransactionalBatch, append: Append, future: asyncio.Future[Any]) -> None:
        self.batch = batch
        self.append = append
        self.future = future

    def fail(self, code: ErrorCode, message: str) -> None:
        if not self.future.done():
            self.future.set_exception(VerificationFailedError(code, message))


class _Guard:
    __slots__ = ("is_open", "leader_epoch", "lowest_sequence", "producer_epoch", "waiting")

    def __init__(self, producer_epoch: int, lowest_sequence: int, leader_epoch: int) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = lowest_sequence
        self.leader_epoch = leader_epoch
        self.is_open = False
        self.waiting: list[_Waiter] = []


class TransactionVerification:
    """`is_enabled`: `transaction.partition.verification.enable`."""

    def __init__(self, ask: AskCoordinators, *, tasks: Tasks, is_enabled: Callable[[], bool] = lambda: True) -> None:
        self._ask = ask
        self._tasks = tasks
        self._is_enabled = is_enabled
        self._guards: dict[tuple[TopicPartition, int], _Guard] = {}

    def is_needed(self, partition: Partition, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transactional batch may not be appended at once."""
        guard = self._guards.get((partition.topic_partition, producer_id)) if self._guards else None
        if guard is not None and guard.is_open:
            return True
        entry = partition.log.producers.producers.get(producer_id)
        is_ongoing = entry is not None and entry.current_txn_first_offset >= 0
        if is_ongoing and entry is not None and entry.producer_epoch == producer_epoch:
            return False
        return self._is_enabled()

    def append(self, partition: Partition, batch: TransactionalBatch, append: Append) -> asyncio.Future[Any]:
        """Call `append` when the coordinator has agreed; its result, or KafkaError when it was not called."""
        waiter = _Waiter(batch, append, self._tasks.future())
        key = (partition.topic_partition, batch.producer_id)
        guard = self._guard_for(partition, key, batch)
        if guard is None:
            waiter.fail(ErrorCode.INVALID_PRODUCER_EPOCH, f"A newer epoch of producer {batch.producer_id} is known.")
        elif batch.base_sequence > guard.lowest_sequence and not guard.is_open:
            waiter.fail(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Out of order sequence number for producer {batch.producer_id} in partition {key[0]}:"
                f" {batch.base_sequence} (incoming seq. number), {guard.lowest_sequence} (earliest seen sequence)",
            )
        elif len(guard.waiting) >= WAITING_PER_GUARD_MAX:
            waiter.fail(ErrorCode.NOT_ENOUGH_REPLICAS, f"Too many batches wait for the transaction on {key[0]}.")
        else:
            guard.lowest_sequence = min(guard.lowest_sequence, batch.base_sequence)
            guard.waiting.append(waiter)
            if not guard.is_open:
                self._open(partition, key, guard, batch)
        return waiter.future

    def marker_written(self, place: TopicPartition, producer_id: int, marker_epoch: int, version: int) -> None:
        """A transaction of the producer has ended here: what is being asked about it does not count any more.

        In the second protocol a transaction ends under the next epoch, which is the one that the next transaction
        begins with: its first batch may be here before the marker of the last, and is not meant by it.
        """
        guard = self._guards.get((place, producer_id)) if self._guards else None
        if guard is None:
            return
        ended_epoch = marker_epoch - 1 if version >= _EPOCH_BUMP_VERSION else marker_epoch
        if guard.producer_epoch <= ended_epoch:
            del self._guards[place, producer_id]

    # -- Guards --------------------------------------------------------------------------------------------------------

    def _guard_for(
        self, partition: Partition, key: tuple[TopicPartition, int], batch: TransactionalBatch
    ) -> _Guard | None:
        """The guard that a batch waits behind; None when the batch is of an older epoch than that."""
        guard = self._guards.get(key)
        if guard is not None and guard.leader_epoch == partition.leader_epoch:
            if guard.producer_epoch == batch.producer_epoch:
                return guard
            if guard.producer_epoch > batch.producer_epoch:
                return None
        # Whoever waits behind a guard that is replaced is told so when its question is answered.
        self._make_room()
        guard = self._guards[key] = _Guard(batch.producer_epoch, batch.base_sequence, partition.leader_epoch)
        return guard

    def _make_room(self) -> None:
        if len(self._guards) >= GUARDS_MAX:
            for key in [key for key, guard in self._guards.items() if not guard.is_open]:
                del self._guards[key]

    def _open(
        self, partition: Partition, key: tuple[TopicPartition, int], guard: _Guard, batch: TransactionalBatch
    ) -> None:
        guard.is_open = True
        question = Question(
            transactional_id=batch.transactional_id,
            producer_id=batch.producer_id,
            producer_epoch=batch.producer_epoch,
            support=batch.support,
        )
        self._ask.ask(question, key[0], lambda code: self._answered(partition, key, guard, code))

    def _answered(self, partition: Partition, key: tuple[TopicPartition, int], guard: _Guard, code: ErrorCode) -> None:
        guard.is_open = False
        waiting, guard.waiting = guard.waiting, []
        if code is not ErrorCode.NONE:
            if code not in _PASSING and self._guards.get(key) is guard:
                del self._guards[key]
            for waiter in waiting:
                waiter.fail(code, f"The transaction on {key[0]} could not be verified: {code.name}.")
            return
        for waiter in waiting:
            self._append(partition, key, guard, waiter)
        if self._guards.get(key) is guard:
            del self._guards[key]

    def _append(self, partition: Partition, key: tuple[TopicPartition, int], guard: _Guard, waiter: _Waiter) -> None:
        batch = waiter.batch
        is_current = self._guards.get(key) is guard and guard.leader_epoch == partition.leader_epoch
        if not is_current and self.is_needed(partition, batch.producer_id, batch.producer_epoch):
            waiter.fail(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
            return
        # Also for a client that has gone: the batches behind this one count on it.
        try:
            self._check_first_sequence(partition, batch)
            result = waiter.append()
        except KafkaError as error:
            if not waiter.future.done():
                waiter.future.set_exception(error)
        else:
            if not waiter.future.done():
                waiter.future.set_result(result)

    def _check_first_sequence(self, partition: Partition, batch: TransactionalBatch) -> None:
        """A producer of the second protocol has a new epoch in every transaction, and begins it at sequence 0."""
        if (
            batch.support is ClientSupport.ADDS_PARTITIONS
            and batch.base_sequence > 0
            and batch.producer_id not in partition.log.producers.producers
        ):
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"Invalid sequence number for new epoch of producer {batch.producer_id} in partition"
                f" {partition.topic_partition}: {batch.producer_epoch} (request epoch), {batch.base_sequence}"
                " (seq. number)",
            )


PRODUCE_CODES: Final[Mapping[ErrorCode, ErrorCode]] = {
    # Old producers do not try these again correctly; this code they do, and it makes them look for no new leader.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.REQUEST_TIMED_OUT: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.BROKER_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_COORDINATOR: ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.CONCURRENT_TRANSACTIONS: ErrorCode.NOT_ENOUGH_REPLICAS,
}


def produce_error(error: KafkaError, support: ClientSupport) -> KafkaError:
    """A failed verification as a producer should see it; other errors pass."""
    if not isinstance(error, VerificationFailedError):
        return error
    if error.code is ErrorCode.CONCURRENT_TRANSACTIONS and support is ClientSupport.ADDS_PARTITIONS:
        return error
    code = PRODUCE_CODES.get(error.code)
    if code is None:
        return error
    return KafkaError(
        code,
        f"Unable to verify the partition has been added to the transaction. Underlying error: {error.code.name}",
    )
