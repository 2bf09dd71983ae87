"""What the coordinators tell of themselves when somebody looks: groups and transactions by state, loading, markers.

Nothing is counted in between. One look costs a walk over the groups and ids that are here, shared by all gauges that
are read within a moment of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

from penstock.base import metric_names as names
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.states import ShardState
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.coordinator.transaction.states import TransactionState

CENSUS_LIFE_S: Final = 1.0

_GROUP_GAUGES: Final = {
    GroupState.EMPTY: names.GROUPS_EMPTY,
    GroupState.PREPARING_REBALANCE: names.GROUPS_PREPARING_REBALANCE,
    GroupState.COMPLETING_REBALANCE: names.GROUPS_COMPLETING_REBALANCE,
    GroupState.STABLE: names.GROUPS_STABLE,
    GroupState.DEAD: names.GROUPS_DEAD,
}
_PARTITION_STATES: Final = {
    ShardState.LOADING: "loading",
    ShardState.ACTIVE: "active",
    ShardState.FAILED: "failed",
}
_LOGGED_STATES: Final = [
    state for state in TransactionState if state not in (TransactionState.DEAD, TransactionState.PREPARE_EPOCH_FENCE)
]


class Census:
    """How many there are of each kind; taken again when the last count is older than `CENSUS_LIFE_S`."""

    def __init__(self, clock: Clock, kinds: Callable[[], Iterable[object]]) -> None:
        self._clock = clock
        self._kinds = kinds
        self._counts: Counter[object] = Counter()
        self._stale_at = float("-inf")

    def count(self, kind: object) -> int:
        self._refresh()
        return self._counts[kind]

    def total(self) -> int:
        self._refresh()
        return self._counts.total()

    def _refresh(self) -> None:
        now = self._clock.monotonic()
        if now >= self._stale_at:
            self._counts = Counter(self._kinds())
            self._stale_at = now + CENSUS_LIFE_S


def add_group_gauges(metrics: Metrics, clock: Clock, runtime: CoordinatorRuntime[GroupShard]) -> None:
    groups = Census(
        clock, lambda: (group.state for shard in runtime.active_shards() for group in shard.groups.values())
    )
    metrics.gauge(names.GROUPS, groups.total)
    metrics.gauge(names.GROUP_OFFSETS, lambda: sum(shard.offsets.count() for shard in runtime.active_shards()))
    for state, name in _GROUP_GAUGES.items():
        metrics.gauge(name, lambda state=state: groups.count(state))  # type: ignore[misc]
    _add_runtime_gauges(metrics, runtime, names.GROUP_PARTITIONS, names.GROUP_LOAD_TIME_MAX_MS)


def add_transaction_gauges(
    metrics: Metrics, clock: Clock, runtime: CoordinatorRuntime[TransactionShard], coordinator: TransactionCoordinator
) -> None:
    ids = Census(
        clock, lambda: (each.state for shard in runtime.active_shards() for each in shard.transactions.values())
    )
    for state in _LOGGED_STATES:
        metrics.gauge(names.TRANSACTIONS, lambda state=state: ids.count(state), state=state.label)  # type: ignore[misc]
    metrics.gauge(names.MARKERS_PENDING, lambda: coordinator.markers.pending_count)
    _add_runtime_gauges(metrics, runtime, names.TRANSACTION_PARTITIONS, names.TRANSACTION_LOAD_TIME_MAX_MS)


def _add_runtime_gauges(metrics: Metrics, runtime: CoordinatorRuntime[Any], partitions: str, load_time: str) -> None:
    for state, label in _PARTITION_STATES.items():
        metrics.gauge(partitions, lambda state=state: runtime.count_in(state), state=label)  # type: ignore[misc]
    metrics.gauge(load_time, lambda: runtime.load_time_max_s * 1000)
