"""The states of a classic group, and which may follow which."""

from __future__ import annotations

from enum import Enum
from typing import Final


class GroupState(Enum):
    """A group's state by the name that clients are shown."""

    EMPTY = "Empty"
    """No members. The group stays while it has offsets; groups that only commit are always here."""

    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are gathered: JoinGroup is parked, everybody else hears REBALANCE_IN_PROGRESS. Commits of the
    generation that ends are still taken. Left when all have joined, or at the rebalance time-out."""

    COMPLETING_REBALANCE = "CompletingRebalance"
    """A generation is formed and waits for its leader's assignment: SyncGroup is parked. Left when the assignment is
    committed to the log, or when a member comes, goes or changes."""

    STABLE = "Stable"
    """Everybody has an assignment, and it is in the log."""

    DEAD = "Dead"
    """The group is gone: deleted, expired, or its partition has moved to another broker. Final."""


TRANSITIONS: Final[dict[GroupState, frozenset[GroupState]]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}
"""From each state, those that may come next."""
