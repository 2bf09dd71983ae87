"""What a transactional id may be asked, in as few lines as possible, for a coordinator whose log never fails."""

from __future__ import annotations

from dataclasses import dataclass, field

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.metadata import EPOCH_MAX, Producer

E = ErrorCode


@dataclass
class ModelId:
    """`history`: how the last transaction ended, None when there was none since the owner came."""

    producer: Producer
    open: set[TopicPartition] = field(default_factory=set)
    history: bool | None = None
    before: Producer | None = None
    """Who the producer was before the last end raised its epoch."""


class Model:
    def __init__(self) -> None:
        self.ids: dict[str, ModelId] = {}

    def init(self, name: str, fresh: Producer) -> ErrorCode:
        """`fresh` is who the coordinator says the producer is."""
        known = self.ids.get(name)
        if known is None:
            assert fresh.epoch == 0
            self.ids[name] = ModelId(fresh)
            return E.NONE
        if known.open:
            self._raise(known, commit=False)
            return E.CONCURRENT_TRANSACTIONS
        self.ids[name] = ModelId(Producer(known.producer.id, known.producer.epoch + 1))
        return E.NONE

    def add(self, name: str, producer: Producer, places: set[TopicPartition]) -> ErrorCode:
        known = self.ids.get(name)
        if known is None or known.producer.id != producer.id:
            return E.INVALID_PRODUCER_ID_MAPPING
        if known.producer != producer:
            return E.PRODUCER_FENCED
        known.open |= places
        known.history = known.before = None
        return E.NONE

    def end(self, name: str, producer: Producer, commit: bool, version: int) -> ErrorCode:
        known = self.ids.get(name)
        if known is None or known.producer.id != producer.id:
            return E.INVALID_PRODUCER_ID_MAPPING
        if known.producer != producer:
            if version < 2 or known.open or not _is_behind(producer, known):
                return E.PRODUCER_FENCED
            return E.NONE if known.history == commit else E.INVALID_TXN_STATE
        if known.open:
            if version < 2:
                known.open, known.history = set(), commit
            else:
                self._raise(known, commit=commit)
            return E.NONE
        if version < 2:
            return E.NONE if known.history == commit else E.INVALID_TXN_STATE
        if commit:
            return E.INVALID_TXN_STATE
        self._raise(known, commit=False)
        return E.NONE

    def _raise(self, known: ModelId, *, commit: bool) -> None:
        assert known.producer.epoch < EPOCH_MAX - 1
        known.before = known.producer
        known.producer = Producer(known.producer.id, known.producer.epoch + 1)
        known.open, known.history = set(), commit


def _is_behind(producer: Producer, known: ModelId) -> bool:
    """As after an end that raised the epoch. Apache Kafka does not ask whether the last end did."""
    if known.history is None:
        return False
    return producer in (known.before, Producer(known.producer.id, known.producer.epoch - 1))
