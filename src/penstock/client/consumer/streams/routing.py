"""Which stream a partition feeds: fixed while the partition is assigned, and as even as the streams can be."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.base.types import TopicPartition


class StreamRouting:
    def __init__(self, streams: int) -> None:
        self._partitions: list[set[TopicPartition]] = [set() for _ in range(streams)]
        self._stream_of: dict[TopicPartition, int] = {}

    def stream_of(self, partition: TopicPartition) -> int:
        """A partition that is new goes to the stream with the fewest."""
        found = self._stream_of.get(partition)
        if found is None:
            found = min(range(len(self._partitions)), key=lambda number: (len(self._partitions[number]), number))
            self._stream_of[partition] = found
            self._partitions[found].add(partition)
        return found

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in sorted(partitions):
            self.stream_of(partition)

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            number = self._stream_of.pop(partition, None)
            if number is not None:
                self._partitions[number].discard(partition)

    def partitions_of(self, stream: int) -> frozenset[TopicPartition]:
        return frozenset(self._partitions[stream])
