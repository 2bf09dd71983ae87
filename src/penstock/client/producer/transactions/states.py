"""The states of a transactional producer and the ways between them, as data."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final


class TransactionState(Enum):
    UNINITIALIZED = auto()
    """No producer id yet: `init_transactions` comes first."""
    INITIALIZING = auto()
    """The coordinator was asked for a producer id, or for a higher epoch of it."""
    READY = auto()
    """No transaction is open."""
    IN_TRANSACTION = auto()
    """Records and offsets may be added."""
    COMMITTING = auto()
    """What was added is flushed, then the coordinator is told; nothing more may be added."""
    ABORTING = auto()
    """What was not sent is dropped, then the coordinator is told."""
    ABORTABLE_ERROR = auto()
    """Something in this transaction failed: only `abort_transaction` helps."""
    FATAL_ERROR = auto()
    """This producer is finished: fenced, not allowed, or its state is unknown to the cluster."""


_S = TransactionState

TRANSITIONS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    _S.INITIALIZING: frozenset({_S.READY, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset({_S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.COMMITTING: frozenset({_S.READY, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.ABORTING: frozenset({_S.READY, _S.INITIALIZING, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}
"""From a state to those that may follow it."""

OPEN: Final = frozenset({_S.IN_TRANSACTION, _S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR})
"""States in which a transaction is open here, whether or not the coordinator knows it already."""

DROPPING: Final = frozenset({_S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR})
"""States in which batches that are not under way will never be sent."""
