"""The bookkeeping of a transactional producer: state, error, and what belongs to the open transaction.

Plain and without I/O. The state is changed by the event loop only; `check_can_append` and `partition_appended` are
called by the threads that send records, so what they touch is guarded by a lock or by being replaced as a whole.

A partition passes `joined -> adding -> added` under V1, where it must be announced before its first batch leaves.
Under V2 joining is enough.
"""

from __future__ import annotations

import threading

from penstock.base.types import TopicPartition
from penstock.client.errors import ClientError, InvalidState, TransactionError, error_for
from penstock.client.producer.transactions.states import DROPPING, OPEN, TRANSITIONS, TransactionState
from penstock.client.producer.transactions.verdicts import FENCED

_S = TransactionState


class TransactionMachine:
    def __init__(self, transactional_id: str) -> None:
        self.transactional_id = transactional_id
        self.state = _S.UNINITIALIZED
        self.error: ClientError | None = None
        """What led to an error state."""
        self.version = 1
        """1 or 2; changes only between transactions."""
        self.needs_epoch = False
        """Under V1: a batch was lost, so its sequence numbers are unusable until the epoch is raised."""
        self.known_to_coordinator = False
        """Whether the coordinator may know of this transaction, so that it must be told how it ends."""
        self._joined: set[TopicPartition] = set()
        self._adding: frozenset[TopicPartition] = frozenset()
        self._added: set[TopicPartition] = set()
        self._lock = threading.Lock()

    # Questions.

    @property
    def is_open(self) -> bool:
        return self.state in OPEN

    @property
    def is_dropping(self) -> bool:
        return self.state in DROPPING

    def check_can_append(self) -> None:
        """Raises unless a record may join the transaction now. Called for every record."""
        if self.state is not _S.IN_TRANSACTION:
            self.check_no_error()
            raise InvalidState(f"{self._name()}: records can be sent in a transaction only; {self._remedy()}")

    def check_no_error(self) -> None:
        """Raises the error that stands, if one does."""
        error = self.error
        if error is None or self.state not in {_S.ABORTABLE_ERROR, _S.FATAL_ERROR}:
            return
        if self.state is _S.ABORTABLE_ERROR:
            fenced = "; it tells whether another producer has taken over" if error.code in FENCED else ""
            remedy = f"call abort_transaction() and begin another one{fenced}"
            text = f"{self._name()} cannot go on: {error.message}; {remedy}"
            raise TransactionError(text, code=error.code) from error
        again = error_for(error.code, error.message)
        again.fatal = True
        raise again from error

    def check(self, operation: str, *allowed: TransactionState) -> None:
        """Raises unless `operation` fits the state."""
        if self.state in allowed:
            return
        self.check_no_error()
        raise InvalidState(f"{self._name()}: {operation} is not possible now; {self._remedy()}")

    # Partitions.

    def partition_appended(self, partition: TopicPartition) -> bool:
        """A record for this partition is in the accumulator. True if it is the first one."""
        if partition in self._joined:
            return False
        with self._lock:
            self._joined.add(partition)
            if self.version >= 2:
                self.known_to_coordinator = True
        return True

    def may_drain(self, partition: TopicPartition) -> bool:
        if self.state not in {_S.IN_TRANSACTION, _S.COMMITTING}:
            return False
        return partition in (self._joined if self.version >= 2 else self._added)

    def take_new_partitions(self) -> frozenset[TopicPartition]:
        """Partitions to announce now (V1): none while earlier ones are being announced."""
        if self.version >= 2 or self._adding or self.state not in {_S.IN_TRANSACTION, _S.COMMITTING}:
            return frozenset()
        with self._lock:
            self._adding = frozenset(self._joined - self._added)
        if self._adding:
            self.known_to_coordinator = True
        return self._adding

    def partitions_added(self, succeeded: bool) -> None:
        """How announcing ended."""
        if succeeded:
            self._added |= self._adding
        self._adding = frozenset()

    # Changes of state.

    def move(self, state: TransactionState) -> None:
        if state not in TRANSITIONS[self.state]:
            raise InvalidState(f"{self._name()} cannot go from {self.state.name} to {state.name}")
        self.state = state

    def begin(self) -> None:
        self.check("begin_transaction", _S.READY)
        with self._lock:
            self._joined, self._added, self._adding = set(), set(), frozenset()
        self.known_to_coordinator = False
        self.error = None
        self.move(_S.IN_TRANSACTION)

    def fail(self, error: ClientError, *, fatal: bool, new_epoch: bool = False) -> None:
        """Enter an error state. While aborting only a fatal error counts: the rest is dropped anyway."""
        if new_epoch and self.version < 2:
            self.needs_epoch = True
        if self.state is _S.FATAL_ERROR or (not fatal and self.state not in _CAN_FAIL):
            return
        if self.state is not _S.ABORTABLE_ERROR or fatal:
            self.error = error
        error.fatal, error.abortable = fatal, not fatal
        self.move(_S.FATAL_ERROR if fatal else _S.ABORTABLE_ERROR)

    def finish(self) -> None:
        """The transaction has ended, or the producer has its first epoch."""
        self.move(_S.READY)
        self.error = None
        self.needs_epoch = False
        self.known_to_coordinator = False

    def _name(self) -> str:
        return f"the transaction of {self.transactional_id!r}"

    def _remedy(self) -> str:
        return _REMEDIES[self.state]


_CAN_FAIL = frozenset({_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTABLE_ERROR})

_REMEDIES = {
    _S.UNINITIALIZED: "call init_transactions() once, first",
    _S.INITIALIZING: "init_transactions() has not ended: call it again to wait for its end",
    _S.READY: "call begin_transaction() first",
    _S.IN_TRANSACTION: "commit or abort the open transaction first",
    _S.COMMITTING: "commit_transaction() has not ended: call it again to wait for its end",
    _S.ABORTING: "abort_transaction() has not ended: call it again to wait for its end",
    _S.ABORTABLE_ERROR: "call abort_transaction()",
    _S.FATAL_ERROR: "close the producer and make a new one",
}
