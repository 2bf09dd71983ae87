"""The states of a transaction, and which may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final


class TransactionState(IntEnum):
    """The numbers are those of the records, the labels those of DescribeTransactions."""

    EMPTY = 0
    """A producer owns the id; it has not begun anything."""
    ONGOING = 1
    """Partitions are being added; records may be appended to them."""
    PREPARE_COMMIT = 2
    """Decided, and durable: markers go out until every partition has its own."""
    PREPARE_ABORT = 3
    COMPLETE_COMMIT = 4
    """Every partition has its marker; the id is ready for the next transaction."""
    COMPLETE_ABORT = 5
    DEAD = 6
    """The id is being forgotten. Never in the log: a tombstone says it."""
    PREPARE_EPOCH_FENCE = 7
    """Between the decision to fence a producer and PREPARE_ABORT. Never in the log: both are one step here."""

    @property
    def label(self) -> str:
        return _LABELS[self]

    @property
    def is_prepared(self) -> bool:
        return self in (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)

    @property
    def is_idle(self) -> bool:
        """Nothing is open: a new owner may come, and the id may expire."""
        return self in (TransactionState.EMPTY, TransactionState.COMPLETE_COMMIT, TransactionState.COMPLETE_ABORT)


_LABELS: Final = {
    TransactionState.EMPTY: "Empty",
    TransactionState.ONGOING: "Ongoing",
    TransactionState.PREPARE_COMMIT: "PrepareCommit",
    TransactionState.PREPARE_ABORT: "PrepareAbort",
    TransactionState.COMPLETE_COMMIT: "CompleteCommit",
    TransactionState.COMPLETE_ABORT: "CompleteAbort",
    TransactionState.DEAD: "Dead",
    TransactionState.PREPARE_EPOCH_FENCE: "PrepareEpochFence",
}

STATES_BY_LABEL: Final[Mapping[str, TransactionState]] = MappingProxyType(
    {label: state for state, label in _LABELS.items()}
)

_S = TransactionState
_IDLE = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})

LEGAL_PREVIOUS: Final[Mapping[TransactionState, frozenset[TransactionState]]] = MappingProxyType(
    {
        _S.EMPTY: _IDLE,
        _S.ONGOING: _IDLE | {_S.ONGOING},
        _S.PREPARE_COMMIT: frozenset({_S.ONGOING}),
        # A producer of the second protocol may abort what it never began, to have its epoch raised (KIP-890).
        _S.PREPARE_ABORT: _IDLE | {_S.ONGOING, _S.PREPARE_EPOCH_FENCE},
        _S.COMPLETE_COMMIT: frozenset({_S.PREPARE_COMMIT}),
        _S.COMPLETE_ABORT: frozenset({_S.PREPARE_ABORT}),
        _S.DEAD: _IDLE,
        _S.PREPARE_EPOCH_FENCE: frozenset({_S.ONGOING}),
    }
)
"""From which states each state may be reached."""
