"""Producer id, epoch and sequences: why a retry neither doubles nor reorders records (KIP-98, KIP-360).

Every batch of a partition carries (producer id, epoch, base sequence); a broker takes a batch only if its sequence
follows the last one it has, answers a repeated one with the old offset, and refuses a gap. So the producer's part is:

- A sequence is given when a batch is first taken to be sent, in the order of the queue, and never again, except under a
  new epoch, when all batches of the partition that are not finished are numbered afresh from 0.
- At most five batches of a partition are in flight, because that is how many a broker remembers.
- The first batch of a partition under an identity travels alone: a broker that does not know the producer takes any
  sequence, so a second batch could be accepted although the first was refused. (A transaction would be aborted then.)
- While one of them must be repeated, nothing new of that partition is sent before it: the retried batches go first, in
  the order of their sequences.
- A batch that was given up although it may have been written (its time was over) leaves a gap that only the broker can
  judge: the partition is *unresolved* until all batches in flight are answered. If the last acknowledged sequence is
  the one before the next, the batch was written after all; if not, the epoch is bumped.
- The bump of a producer without transactions is made here, by itself (KIP-360): the epoch grows by one, and only the
  partition at fault begins at 0 again, once nothing of it is on the wire, so that no answer can be taken for one to the
  new numbers. Others keep the old epoch until nothing of theirs is in flight. At the end of the epochs (32767) a new
  producer id is asked for. Transactional producers get their identity from the coordinator alone.

Only the I/O thread comes here. Plain and synchronous: no clock, no lock, no network.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.producer.batch import ProducerBatch, add_sequence
from penstock.records.batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE

IN_FLIGHT_MAX: Final = 5
EPOCH_MAX: Final = 32_767


class Retry(Enum):
    """What an answer that refuses a batch means for its sequence."""

    NO = "the error stands"
    YES = "send it again as it is"


class PartitionSequences:
    """One partition's numbers."""

    __slots__ = ("acked_offset", "acked_sequence", "epoch", "in_flight", "next_sequence", "producer_id", "unresolved")

    def __init__(self, producer_id: int, epoch: int) -> None:
        self.in_flight: list[ProducerBatch] = []
        """Batches with a sequence that are not finished, by sequence: those that wait for a retry too."""
        self.begin(producer_id, epoch)

    def begin(self, producer_id: int, epoch: int) -> None:
        """Under a new identity, from 0; batches that are not finished keep their order."""
        self.producer_id = producer_id
        self.epoch = epoch
        self.next_sequence = 0
        self.acked_sequence = NO_SEQUENCE
        self.acked_offset = -1
        self.unresolved: int | None = None
        """The sequence behind the last batch that was given up without knowing whether it was written."""
        for batch in self.in_flight:
            batch.sequence_was_reset = True
            self._number(batch)

    def add(self, batch: ProducerBatch) -> None:
        self._number(batch)
        self.in_flight.append(batch)

    def _number(self, batch: ProducerBatch) -> None:
        batch.producer_id = self.producer_id
        batch.producer_epoch = self.epoch
        batch.base_sequence = self.next_sequence
        self.next_sequence = add_sequence(self.next_sequence, batch.count)

    def is_next(self, sequence: int) -> bool:
        return sequence == add_sequence(self.acked_sequence, 1)

    def remove(self, batch: ProducerBatch) -> bool:
        if batch not in self.in_flight:
            return False
        self.in_flight.remove(batch)
        return True


class Idempotence:
    """The identity of one producer. `transactional` leaves every new identity to the transaction manager."""

    def __init__(self, *, transactional: bool = False) -> None:
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self._transactional = transactional
        self._partitions: dict[TopicPartition, PartitionSequences] = {}
        self._to_restart: set[TopicPartition] = set()

    # Identity.

    @property
    def has_identity(self) -> bool:
        return self.producer_id != NO_PRODUCER_ID

    def assign(self, producer_id: int, producer_epoch: int) -> None:
        """A new identity: the sequences of all partitions begin at 0 again."""
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        for sequences in self._partitions.values():
            sequences.begin(producer_id, producer_epoch)
        self._to_restart.clear()

    def maybe_bump(self) -> None:
        """Once per round of the sender: a new epoch, if one was asked for; no identity, if no epochs are left."""
        self._resolve()
        if not self._to_restart or not self.has_identity or self._transactional:
            return
        if any(batch.on_wire for tp in self._to_restart for batch in self._of(tp).in_flight):
            return
        if self.producer_epoch >= EPOCH_MAX:
            self.producer_id = NO_PRODUCER_ID
            self.producer_epoch = NO_PRODUCER_EPOCH
            return  # `assign` with the next id starts every partition afresh
        self.producer_epoch += 1
        for tp in self._to_restart:
            self._of(tp).begin(self.producer_id, self.producer_epoch)
        self._to_restart.clear()

    # Sending.

    def may_send(self, batch: ProducerBatch) -> bool:
        """Whether the first batch of a partition's queue may be sent now."""
        if not self.has_identity or batch.tp in self._to_restart:
            return False
        sequences = self._of(batch.tp)
        if not batch.has_sequence:
            in_flight = len(sequences.in_flight)
            return (
                sequences.unresolved is None
                and not (in_flight and sequences.acked_sequence == NO_SEQUENCE and not self._transactional)
                and in_flight < IN_FLIGHT_MAX
                and not (in_flight and self._is_stale(sequences))
            )
        # A repeated batch waits until it is the oldest one: then nothing behind it can arrive before it.
        return bool(sequences.in_flight) and sequences.in_flight[0] is batch

    def number(self, batch: ProducerBatch) -> None:
        """Give the batch its sequence, once, when it is taken to be sent."""
        if batch.has_sequence:
            return
        sequences = self._of(batch.tp)
        if self._is_stale(sequences):
            sequences.begin(self.producer_id, self.producer_epoch)
        sequences.add(batch)

    def replace(self, batch: ProducerBatch, pieces: Iterable[ProducerBatch]) -> None:
        """The batch was split: its pieces share out its sequences."""
        if not batch.has_sequence:
            return
        sequences = self._of(batch.tp)
        place = sequences.in_flight.index(batch) if batch in sequences.in_flight else 0
        sequence = batch.base_sequence
        numbered = list(pieces)
        for piece in numbered:
            piece.producer_id, piece.producer_epoch = batch.producer_id, batch.producer_epoch
            piece.base_sequence = sequence
            sequence = add_sequence(sequence, piece.count)
        sequences.in_flight[place : place + 1] = numbered

    # Answers.

    def completed(self, batch: ProducerBatch, base_offset: int) -> None:
        """It was written."""
        if not batch.has_sequence:
            return
        sequences = self._of(batch.tp)
        sequences.remove(batch)
        if (batch.producer_id, batch.producer_epoch) != (sequences.producer_id, sequences.epoch):
            return
        if sequences.acked_sequence == NO_SEQUENCE or _is_after(batch.last_sequence, sequences.acked_sequence):
            sequences.acked_sequence = batch.last_sequence
        if base_offset >= 0:
            sequences.acked_offset = max(sequences.acked_offset, base_offset + batch.count - 1)

    def failed(self, batch: ProducerBatch, *, certain: bool) -> None:
        """It was given up. `certain`: it is not written, so its sequences are a gap. Otherwise time will tell."""
        if not batch.has_sequence:
            return
        sequences = self._of(batch.tp)
        if not sequences.remove(batch):
            return
        if (batch.producer_id, batch.producer_epoch) != (sequences.producer_id, sequences.epoch):
            return
        if certain:
            self._to_restart.add(batch.tp)
        else:
            sequences.unresolved = add_sequence(batch.last_sequence, 1)

    def judge(self, batch: ProducerBatch, code: ErrorCode, log_start_offset: int) -> Retry:
        """What to do about a refusal, as far as sequences decide it; the plain rule for all other codes."""
        sequences = self._of(batch.tp)
        if code is ErrorCode.UNKNOWN_PRODUCER_ID:
            return self._judge_unknown_id(batch, sequences, log_start_offset)
        if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return self._judge_order(batch, sequences)
        return Retry.YES if code.retriable else Retry.NO

    def _judge_unknown_id(self, batch: ProducerBatch, sequences: PartitionSequences, log_start_offset: int) -> Retry:
        """The broker has forgotten this producer: retention removed its records, or the partition lost them."""
        if log_start_offset == -1 or (batch.sequence_was_reset and self._is_current(batch, sequences)):
            return Retry.YES
        if self._transactional:
            if sequences.acked_offset >= log_start_offset:
                return Retry.NO
            sequences.begin(self.producer_id, self.producer_epoch)
            return Retry.YES
        self._restart(batch, sequences)
        return Retry.YES

    def _judge_order(self, batch: ProducerBatch, sequences: PartitionSequences) -> Retry:
        """A gap in front of the batch: an earlier batch under way may fill it; if none is, records are lost."""
        resolved = sequences.unresolved is None
        overtaken = self._is_current(batch, sequences) and (
            sequences.acked_sequence != NO_SEQUENCE and not _is_after(batch.base_sequence, sequences.acked_sequence)
        )
        is_next = sequences.is_next(batch.base_sequence) and not batch.sequence_was_reset
        if resolved and not is_next and not overtaken:
            return Retry.YES
        if self._transactional:
            return Retry.NO
        if resolved or sequences.unresolved == batch.base_sequence:
            self._restart(batch, sequences)
        return Retry.YES

    # Inside.

    def _of(self, tp: TopicPartition) -> PartitionSequences:
        found = self._partitions.get(tp)
        if found is None:
            found = self._partitions[tp] = PartitionSequences(self.producer_id, self.producer_epoch)
        return found

    def in_flight(self, tp: TopicPartition) -> int:
        """Batches with a sequence that are not finished."""
        return len(self._of(tp).in_flight)

    def _is_stale(self, sequences: PartitionSequences) -> bool:
        return (sequences.producer_id, sequences.epoch) != (self.producer_id, self.producer_epoch)

    def _is_current(self, batch: ProducerBatch, sequences: PartitionSequences) -> bool:
        return (batch.producer_id, batch.producer_epoch) == (sequences.producer_id, sequences.epoch)

    def _restart(self, batch: ProducerBatch, sequences: PartitionSequences) -> None:
        # An answer to what was sent under an older epoch says nothing about the present one.
        if self._is_current(batch, sequences):
            self._to_restart.add(batch.tp)

    def _resolve(self) -> None:
        for tp, sequences in self._partitions.items():
            if sequences.unresolved is None or sequences.in_flight:
                continue
            if not sequences.is_next(sequences.next_sequence) and not self._transactional:
                self._to_restart.add(tp)
            sequences.unresolved = None


def _is_after(sequence: int, other: int) -> bool:
    """Whether `sequence` comes behind `other`, in numbers that begin again at 0."""
    return 0 < (sequence - other) % (1 << 31) < 1 << 30
