"""The life of a shard on a broker, and which step may follow which."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError


class ShardState(Enum):
    INITIAL = "initial"
    """Known, nothing done yet."""
    LOADING = "loading"
    """Its records are being replayed. Clients are told to come back (COORDINATOR_LOAD_IN_PROGRESS)."""
    ACTIVE = "active"
    """Operations and queries run."""
    CLOSED = "closed"
    """Not led here any more, or the runtime stopped. The end."""
    FAILED = "failed"
    """Its records could not be replayed, or it no longer agrees with its log. It can be loaded again."""


LEGAL_TRANSITIONS: Final[Mapping[ShardState, frozenset[ShardState]]] = {
    ShardState.INITIAL: frozenset({ShardState.LOADING, ShardState.CLOSED}),
    ShardState.LOADING: frozenset({ShardState.ACTIVE, ShardState.FAILED, ShardState.CLOSED}),
    ShardState.ACTIVE: frozenset({ShardState.FAILED, ShardState.CLOSED}),
    ShardState.FAILED: frozenset({ShardState.LOADING, ShardState.CLOSED}),
    ShardState.CLOSED: frozenset(),
}


def check_transition(old: ShardState, new: ShardState) -> None:
    if new not in LEGAL_TRANSITIONS[old]:
        raise RuntimeError(f"a shard does not go from {old.value} to {new.value}")


def not_active_error(state: ShardState, name: str) -> KafkaError:
    """What a client is told while `state` is not ACTIVE."""
    if state in (ShardState.INITIAL, ShardState.LOADING):
        return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, f"The coordinator of {name} is loading.")
    return not_coordinator(name)


def not_coordinator(name: str) -> KafkaError:
    return KafkaError(ErrorCode.NOT_COORDINATOR, f"This broker is not the coordinator of {name}.")
