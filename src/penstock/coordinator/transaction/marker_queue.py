"""Which markers have still to be written where: plain values, no waiting.

A transaction whose end is decided is *pending* until every partition that took part has its marker. Each of its
partitions is in one of three places: in the queue of the broker that leads it, in the request that is under way to that
broker, or set aside until a pause is over. Markers for one broker travel together, one request at a time.

What a partition's leader answers decides what happens to that partition's marker: see `FATES`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.metadata import Producer, TransactionMetadata

LeaderOf = Callable[[TopicPartition], int | None]
"""The node that leads a partition, -1 when none does at present, None when the partition does not exist."""

NO_LEADER: Final = -1


class Fate(Enum):
    """What becomes of a marker after an answer."""

    WRITTEN = "written"
    AGAIN = "again"
    """Perhaps at another broker, after a pause."""
    NOT_NEEDED = "not needed"
    """The partition has seen a newer epoch of the producer: what the marker would end is over already."""
    NOT_OURS = "not ours"
    """A newer coordinator has written: the transaction is its business."""


FATES: Final[Mapping[ErrorCode, Fate]] = {
    ErrorCode.NONE: Fate.WRITTEN,
    ErrorCode.INVALID_PRODUCER_EPOCH: Fate.NOT_NEEDED,
    ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT: Fate.NOT_NEEDED,
    ErrorCode.TRANSACTION_COORDINATOR_FENCED: Fate.NOT_OURS,
}
"""Every other answer means to try again: a transaction may not hang for ever because of a broker's bad moment."""


class PendingTransaction:
    """One whose end is decided. `remaining` are the partitions without a marker."""

    __slots__ = (
        "attempts",
        "commit",
        "coordinator_epoch",
        "partition",
        "producer",
        "remaining",
        "transactional_id",
        "version",
    )

    def __init__(self, partition: int, coordinator_epoch: int, metadata: TransactionMetadata) -> None:
        self.partition = partition
        self.coordinator_epoch = coordinator_epoch
        self.transactional_id = metadata.transactional_id
        self.producer: Producer = metadata.producer
        self.commit = metadata.is_committing
        self.version = metadata.client_version
        self.remaining = set(metadata.partitions)
        self.attempts = 0

    @property
    def key(self) -> tuple[int, str]:
        return self.partition, self.transactional_id

    def is_same(self, other: PendingTransaction) -> bool:
        return self.producer == other.producer and self.coordinator_epoch == other.coordinator_epoch

    def __repr__(self) -> str:
        end = "commit" if self.commit else "abort"
        return f"<{end} of {self.transactional_id!r} {self.producer} on {sorted(self.remaining)}>"


class Marker(NamedTuple):
    """What one request says of one transaction."""

    transaction: PendingTransaction
    partitions: frozenset[TopicPartition]


class MarkerQueue:
    def __init__(self, leader_of: LeaderOf) -> None:
        self._leader_of = leader_of
        self._pending: dict[tuple[int, str], PendingTransaction] = {}
        self._queues: dict[int, dict[PendingTransaction, set[TopicPartition]]] = {}
        self._under_way: set[int] = set()

    def __len__(self) -> int:
        return len(self._pending)

    def add(self, transaction: PendingTransaction) -> bool:
        """False when it is here already."""
        known = self._pending.get(transaction.key)
        if known is not None and known.is_same(transaction):
            return False
        self._pending[transaction.key] = transaction
        return True

    def holds(self, transaction: PendingTransaction) -> bool:
        """Whether it is still ours to end, and not given up or replaced."""
        return self._pending.get(transaction.key) is transaction

    def pending_keys(self) -> list[tuple[int, str]]:
        return list(self._pending)

    def has(self, key: tuple[int, str]) -> bool:
        return key in self._pending

    def route(self, transaction: PendingTransaction, partitions: Iterable[TopicPartition]) -> set[TopicPartition]:
        """Put partitions into the queues of their leaders; those that have no leader now are returned."""
        waiting: set[TopicPartition] = set()
        for each in partitions:
            leader = self._leader_of(each)
            if leader is None:
                # Deleted together with its records: there is nothing left to end.
                transaction.remaining.discard(each)
            elif leader == NO_LEADER:
                waiting.add(each)
            else:
                self._queues.setdefault(leader, {}).setdefault(transaction, set()).add(each)
        return waiting

    def ready_nodes(self) -> list[int]:
        """Brokers that have markers to get and no request under way."""
        return [node for node, queue in self._queues.items() if queue and node not in self._under_way]

    def take(self, node: int, markers_max: int) -> list[Marker]:
        """The next request for `node`; `returned` must follow when it has an end."""
        queue = self._queues.get(node, {})
        markers: list[Marker] = []
        while queue and len(markers) < markers_max:
            transaction, partitions = next(iter(queue.items()))
            del queue[transaction]
            if self.holds(transaction):
                markers.append(Marker(transaction, frozenset(partitions)))
        if not queue:
            self._queues.pop(node, None)
        if markers:
            self._under_way.add(node)
        return markers

    def returned(self, node: int) -> None:
        self._under_way.discard(node)

    def answered(self, marker: Marker, codes: Mapping[TopicPartition, ErrorCode]) -> set[TopicPartition]:
        """Note the answer for one marker; the partitions that must be tried again. Silence is no success."""
        transaction = marker.transaction
        again: set[TopicPartition] = set()
        for each in marker.partitions:
            fate = FATES.get(codes.get(each, ErrorCode.UNKNOWN_SERVER_ERROR), Fate.AGAIN)
            if fate is Fate.NOT_OURS:
                self.drop(transaction)
                return set()
            if fate is Fate.AGAIN:
                again.add(each)
            else:
                transaction.remaining.discard(each)
        return again

    def drop(self, transaction: PendingTransaction) -> None:
        if self.holds(transaction):
            del self._pending[transaction.key]

    def drop_partition(self, partition: int) -> None:
        """The transactions of one partition of the coordinator's topic are somebody else's now."""
        for key in [key for key in self._pending if key[0] == partition]:
            del self._pending[key]

    def check_invariants(self) -> None:
        for queue in self._queues.values():
            for transaction, partitions in queue.items():
                assert partitions <= transaction.remaining, (partitions, transaction)
