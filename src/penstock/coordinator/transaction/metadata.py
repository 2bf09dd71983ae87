"""What is known of one transactional id, and the steps it can take: each gives the next value, nothing is changed.

**Epochs.** A producer is (producer id, epoch). In the first protocol the epoch stays over many transactions and grows
when another owner comes (InitProducerId) or when the coordinator aborts by itself. In the second (KIP-890) every end of
a transaction raises it, before the markers, so that no late record or marker of an earlier transaction fits. Epochs end
at 2^15 - 1 and the last one is the coordinator's, for fencing: a producer that holds the one before it is given a new
producer id. That id waits in `next_producer_id` until the markers are written under the old one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.states import LEGAL_PREVIOUS, TransactionState

NO_PRODUCER_ID: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
EPOCH_MAX: Final = 32_767
EPOCH_BUMP_VERSION: Final = 2
"""The transaction version from which on every end raises the epoch."""

_S = TransactionState


class Producer(NamedTuple):
    """Who writes: an id and how many owners it had before this one."""

    id: int
    epoch: int


NO_PRODUCER: Final = Producer(NO_PRODUCER_ID, NO_EPOCH)


class IllegalTransitionError(Exception):
    """A defect: an operation wanted a step that the table does not have."""


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """The numbers of the partitions under their topics, both in order."""
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted(partitions):
        topics.setdefault(topic, []).append(partition)
    return topics


def epoch_is_exhausted(epoch: int) -> bool:
    return epoch >= EPOCH_MAX - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState = TransactionState.EMPTY
    partitions: frozenset[TopicPartition] = frozenset()
    start_ms: int = NO_TIME
    last_update_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before the last rotation, until the next transaction begins: it tells a repeated request."""
    next_producer_id: int = NO_PRODUCER_ID
    client_version: int = 0
    """The transaction version of the client behind the last step."""

    @property
    def producer(self) -> Producer:
        return Producer(self.producer_id, self.producer_epoch)

    @property
    def is_exhausted(self) -> bool:
        return epoch_is_exhausted(self.producer_epoch)

    @property
    def is_committing(self) -> bool:
        return self.state is _S.PREPARE_COMMIT

    @property
    def producer_after_completion(self) -> Producer:
        """Who may write next, once the prepared end is complete."""
        if self.next_producer_id != NO_PRODUCER_ID:
            return Producer(self.next_producer_id, 0)
        return self.producer

    def timed_out(self, now_ms: int) -> bool:
        return self.state is _S.ONGOING and self.start_ms + self.timeout_ms < now_ms

    def expired(self, now_ms: int, expiration_ms: int) -> bool:
        return self.state.is_idle and self.last_update_ms <= now_ms - expiration_ms

    # -- Steps -------------------------------------------------------------------------------------------------------

    def initialized(self, producer: Producer, timeout_ms: int, now_ms: int) -> TransactionMetadata:
        """A new owner, or the same one with a new epoch."""
        rotated = producer.id != self.producer_id
        return self._moved(
            _S.EMPTY,
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            previous_producer_id=self.producer_id if rotated else self.previous_producer_id,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_ms=NO_TIME,
            last_update_ms=now_ms,
            client_version=0,
        )

    def with_partitions(
        self, added: frozenset[TopicPartition], now_ms: int, client_version: int = 0
    ) -> TransactionMetadata:
        """Begin the transaction, or take more partitions into it."""
        return self._moved(
            _S.ONGOING,
            partitions=self.partitions | added,
            start_ms=now_ms if self.state.is_idle else self.start_ms,
            last_update_ms=now_ms,
            previous_producer_id=NO_PRODUCER_ID,
            client_version=client_version,
        )

    def prepared(self, *, commit: bool, client_version: int, next_producer_id: int, now_ms: int) -> TransactionMetadata:
        """Decide how it ends. From an idle state there is nothing to end, only an epoch to raise."""
        bump = client_version >= EPOCH_BUMP_VERSION
        return self._moved(
            _S.PREPARE_COMMIT if commit else _S.PREPARE_ABORT,
            producer_epoch=self.producer_epoch + 1 if bump else self.producer_epoch,
            next_producer_id=next_producer_id,
            previous_producer_id=NO_PRODUCER_ID,
            start_ms=now_ms if self.state.is_idle else self.start_ms,
            last_update_ms=now_ms,
            client_version=client_version,
        )

    def fenced(self, *, version: int, next_producer_id: int, now_ms: int) -> TransactionMetadata:
        """Abort on the coordinator's own account: the epoch is raised, so that the owner learns of it."""
        return self._moved(
            _S.PREPARE_ABORT,
            producer_epoch=min(self.producer_epoch + 1, EPOCH_MAX),
            next_producer_id=next_producer_id,
            last_update_ms=now_ms,
            client_version=version,
        )

    def completed(self, now_ms: int) -> TransactionMetadata:
        """All markers are written."""
        after = self.producer_after_completion
        return self._moved(
            _S.COMPLETE_COMMIT if self.is_committing else _S.COMPLETE_ABORT,
            producer_id=after.id,
            producer_epoch=after.epoch,
            previous_producer_id=self.producer_id if after.id != self.producer_id else NO_PRODUCER_ID,
            next_producer_id=NO_PRODUCER_ID,
            partitions=frozenset(),
            last_update_ms=now_ms,
        )

    def _moved(self, state: TransactionState, **changes: Any) -> TransactionMetadata:
        if self.state not in LEGAL_PREVIOUS[state]:
            raise IllegalTransitionError(
                f"{self.transactional_id!r} cannot go from {self.state.label} to {state.label}"
            )
        return replace(self, state=state, **changes)

    # -- Checks ------------------------------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        assert self.producer_id >= 0, self
        assert 0 <= self.producer_epoch <= EPOCH_MAX, self
        assert self.state not in (_S.DEAD, _S.PREPARE_EPOCH_FENCE), self
        assert self.state is not _S.ONGOING or (self.partitions and self.start_ms >= 0), self
        assert not self.partitions or not self.state.is_idle, self
        assert self.next_producer_id == NO_PRODUCER_ID or self.state.is_prepared, self
        assert self.producer_epoch < EPOCH_MAX or self.state is not _S.ONGOING, self
