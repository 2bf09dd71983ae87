"""What a poll gives."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.types import TopicPartition
from penstock.records.record import ConsumerRecord


class ConsumerRecords(list[ConsumerRecord]):
    """Records in the order in which they are to be processed; those of one partition are in the order of offsets."""

    __slots__ = ()

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """The partitions that records came from."""
        return tuple(self.by_partition())

    def by_partition(self) -> dict[TopicPartition, list[ConsumerRecord]]:
        """The records of each partition, in order."""
        return by_partition(self)

    def of(self, partition: TopicPartition) -> list[ConsumerRecord]:
        """The records of one partition."""
        return self.by_partition().get(TopicPartition(*partition), [])


def by_partition(records: Iterable[ConsumerRecord]) -> dict[TopicPartition, list[ConsumerRecord]]:
    found: dict[tuple[str, int], list[ConsumerRecord]] = {}
    for record in records:
        found.setdefault((record.topic, record.partition), []).append(record)
    return {TopicPartition(*key): each for key, each in found.items()}
