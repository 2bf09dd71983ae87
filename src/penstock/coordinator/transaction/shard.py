"""The transactional ids of one partition of `__transaction_state`.

Records are the only way in: `replay` takes one and puts the id's new state on the timeline. What an id may do next is
decided by `operations/`, on the newest state; answers about it are read from the committed one.

A decision to commit or to abort counts when its record is committed. From then on the markers have to be written, by
whoever leads this partition: the shard hands such transactions to its outbox, at the commit or after loading. Nothing
else is remembered about markers, so writing them again after a failover is all there is to recovery.
"""

from __future__ import annotations

from collections import deque
from typing import Protocol

from penstock.base.types import TopicPartition
from penstock.coordinator.records.transaction_records import (
    TransactionLogValue,
    decode_transaction_key,
    decode_transaction_value,
    transaction_record,
)
from penstock.coordinator.runtime.shard import CoordinatorRecord, ShardContext
from penstock.coordinator.runtime.timeline import TimelineDict
from penstock.coordinator.transaction.metadata import Producer, TransactionMetadata, by_topic
from penstock.coordinator.transaction.producer_ids import SpareProducerIds
from penstock.coordinator.transaction.settings import TransactionSettings
from penstock.coordinator.transaction.states import TransactionState


class MarkerOutbox(Protocol):
    """Who writes the markers of transactions whose end is decided. Being told twice of the same one is harmless."""

    def prepared(self, partition: int, coordinator_epoch: int, metadata: TransactionMetadata) -> None: ...

    def unloaded(self, partition: int) -> None:
        """Whoever leads the partition now writes its markers."""


class Duties(Protocol):
    """What a shard does by itself from time to time."""

    def start(self, shard: TransactionShard) -> None: ...


class RepeatableInit:
    """A producer asked for a higher epoch and named its own; the same question again gets the same answer (KIP-360).

    It is not in the log, so it does not survive a change of the coordinator, as in Kafka.
    """

    __slots__ = ("asked_epoch", "given")

    def __init__(self, asked_epoch: int, given: Producer) -> None:
        self.asked_epoch = asked_epoch
        self.given = given


class TransactionShard:
    def __init__(
        self,
        context: ShardContext,
        *,
        settings: TransactionSettingsSource,
        producer_ids: SpareProducerIds,
        outbox: MarkerOutbox,
        duties: Duties,
    ) -> None:
        self.context = context
        self.settings = settings
        self.producer_ids = producer_ids
        self.transactions: TimelineDict[str, TransactionMetadata] = TimelineDict(context.timeline)
        self.ongoing: TimelineDict[str, None] = TimelineDict(context.timeline)
        """The ids with an open transaction, so that a search for old ones does not look at all ids."""
        self.repeatable: dict[str, RepeatableInit] = {}
        self._outbox = outbox
        self._duties = duties
        self._decided: deque[tuple[int, str]] = deque()
        self._is_loaded = False

    @property
    def now_ms(self) -> int:
        return self.context.clock.time_ms()

    # -- Records -----------------------------------------------------------------------------------------------------

    def record(self, metadata: TransactionMetadata) -> CoordinatorRecord:
        version = 1 if self.settings().transaction_version >= 1 else 0
        return transaction_record(metadata.transactional_id, _to_record(metadata), version=version)

    def tombstone(self, transactional_id: str) -> CoordinatorRecord:
        return transaction_record(transactional_id, None)

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: bytes, value: bytes | None) -> None:
        transactional_id = decode_transaction_key(key)
        if value is None:
            self.transactions.pop(transactional_id)
            self.ongoing.pop(transactional_id)
            return
        metadata = _from_record(transactional_id, decode_transaction_value(value))
        self.transactions.set(transactional_id, metadata)
        if metadata.state is TransactionState.ONGOING:
            if transactional_id not in self.ongoing:
                self.ongoing.set(transactional_id, None)
        else:
            self.ongoing.pop(transactional_id)
        if metadata.state.is_prepared and (self._is_loaded or offset >= self.context.timeline.committed_end):
            self._decided.append((offset, transactional_id))

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """No record of this topic is ever part of a transaction."""

    # -- Life --------------------------------------------------------------------------------------------------------

    def on_loaded(self) -> None:
        self._is_loaded = True
        for metadata in list(self.transactions.values_committed()):
            self._send_markers(metadata)
        self._duties.start(self)

    def on_unloaded(self) -> None:
        self._decided.clear()
        self.repeatable.clear()
        self._outbox.unloaded(self.context.partition)

    def committed(self, offset: int) -> None:
        decided = self._decided
        while decided and decided[0][0] < offset:
            _, transactional_id = decided.popleft()
            metadata = self.transactions.get_committed(transactional_id)
            if metadata is not None and self._is_loaded:
                self._send_markers(metadata)

    def rolled_back(self, offset: int) -> None:
        while self._decided and self._decided[-1][0] >= offset:
            self._decided.pop()

    def _send_markers(self, metadata: TransactionMetadata) -> None:
        if metadata.state.is_prepared:
            self._outbox.prepared(self.context.partition, self.context.leader_epoch, metadata)

    # -- Checks ------------------------------------------------------------------------------------------------------

    def check_invariants(self) -> None:
        for transactional_id, metadata in self.transactions.items():
            assert metadata.transactional_id == transactional_id, (transactional_id, metadata)
            metadata.check_invariants()
        open_ids = {key for key, each in self.transactions.items() if each.state is TransactionState.ONGOING}
        assert set(self.ongoing) == open_ids, (set(self.ongoing), open_ids)
        committed = self.context.timeline.committed_end
        assert all(offset >= committed for offset, _ in self._decided) or not self._is_loaded, (
            self._decided,
            committed,
        )


class TransactionSettingsSource(Protocol):
    def __call__(self) -> TransactionSettings: ...


def _to_record(metadata: TransactionMetadata) -> TransactionLogValue:
    return TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        previous_producer_id=metadata.previous_producer_id,
        next_producer_id=metadata.next_producer_id,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_status=metadata.state,
        transaction_partitions=None
        if metadata.state is TransactionState.EMPTY
        else tuple((topic, tuple(numbers)) for topic, numbers in by_topic(metadata.partitions).items()),
        transaction_last_update_timestamp_ms=metadata.last_update_ms,
        transaction_start_timestamp_ms=metadata.start_ms,
        client_transaction_version=metadata.client_version,
    )


def _from_record(transactional_id: str, value: TransactionLogValue) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id=transactional_id,
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=TransactionState(value.transaction_status),
        partitions=frozenset(
            TopicPartition(topic, number) for topic, numbers in value.transaction_partitions or () for number in numbers
        ),
        start_ms=value.transaction_start_timestamp_ms,
        last_update_ms=value.transaction_last_update_timestamp_ms,
        previous_producer_id=value.previous_producer_id,
        next_producer_id=value.next_producer_id,
        client_version=value.client_transaction_version,
    )
