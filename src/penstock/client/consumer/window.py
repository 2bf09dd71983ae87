"""Records that were taken for an iterator and are on their way to the user one by one.

A list iterator knows how many records it has left (`length_hint`), so iterating costs nothing extra per record, and a
commit in the middle of a loop still commits exactly behind the record that the user has last.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from operator import length_hint

from penstock.base.types import TopicPartition
from penstock.client.consumer.records import ConsumerRecords
from penstock.records.record import ConsumerRecord


class IterationWindow:
    __slots__ = ("_iterator", "_records", "_settled")

    def __init__(self) -> None:
        self._records = ConsumerRecords()
        self._iterator: Iterator[ConsumerRecord] = iter(self._records)
        self._settled = 0
        """So many of the records the user is done with."""

    def __len__(self) -> int:
        """Records that the user does not have yet."""
        return length_hint(self._iterator)

    def open(self, records: ConsumerRecords) -> Iterator[ConsumerRecord]:
        """Give these one by one, from now on."""
        self._records = records
        self._iterator = iter(records)
        self._settled = 0
        return self._iterator

    def settle(self) -> None:
        """The user asks for more: he is done with what he has."""
        self._settled = self._given

    @property
    def current(self) -> ConsumerRecord | None:
        """The record that was given last; None when the user is done with it."""
        return self._records[self._given - 1] if self._given > self._settled else None

    def unread(self) -> dict[TopicPartition, int]:
        """Per partition the offset of the first record that the user does not have yet."""
        found: dict[TopicPartition, int] = {}
        for record in self._records[self._given :]:
            partition = TopicPartition(record.topic, record.partition)
            if partition not in found:
                found[partition] = record.offset
        return found

    def take(self, count: int) -> ConsumerRecords:
        """Up to `count` of the records that are left, for a poll in the middle of a loop."""
        if not len(self):
            return ConsumerRecords()
        first = self._given
        taken = self._records[first:]
        # The loop that runs over them must not give them again.
        del self._records[first:]
        self.open(ConsumerRecords(taken[count:]))
        return ConsumerRecords(taken[:count])

    def drop(self, partitions: Collection[TopicPartition] | None = None) -> None:
        """Forget what is left, or what is left of these partitions.

        The loop that runs over it must see that too, so the list that it runs over is changed in place.
        """
        if not len(self):
            return
        first = self._given
        kept = [] if partitions is None else [each for each in self._records[first:] if each[:2] not in partitions]
        self._records[first:] = kept

    @property
    def _given(self) -> int:
        return len(self._records) - len(self)
