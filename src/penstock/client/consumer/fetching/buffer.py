"""Records that were fetched and not yet taken, per partition, in the order in which they came.

A partition has at most two fetches here: the one that is being taken and the next one. So the network works while
records are being processed, and memory stays bounded. Whatever was fetched for a position that has since been changed
(a seek, a reset, a new assignment) has another `generation` than the partition's state and is dropped when it is seen.
Paused partitions keep what they have.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.fetching.partition_fetch import Convert, PartitionFetch
from penstock.client.consumer.positions import PartitionState
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.consumer.subscription import SubscriptionState
from penstock.records.kernel import ColumnFiller

FETCHES_MAX: Final = 2


class PartitionQueue:
    """The fetches of one partition for one generation of its position."""

    __slots__ = ("fetches", "generation", "next_offset")

    def __init__(self, generation: int, next_offset: int) -> None:
        self.generation = generation
        self.next_offset = next_offset
        """Where the next fetch begins: behind everything that is here."""
        self.fetches: deque[PartitionFetch] = deque()


class FetchBuffer:
    def __init__(self, subscription: SubscriptionState) -> None:
        self._subscription = subscription
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._turn: deque[TopicPartition] = deque()
        """Partitions that have something, the next one to be taken from first."""
        self.drained = 0
        """Fetches used up so far: when it grows, there is room for more."""
        self.taken_from: dict[TopicPartition, int] = {}
        """Where partitions stood before something was taken of them; whoever takes clears it first."""

    # Fetching.

    def next_offset(self, partition: TopicPartition, state: PartitionState) -> int:
        queue = self._queues.get(partition)
        if queue is not None and queue.generation == state.generation:
            return queue.next_offset
        assert state.position is not None
        return state.position.offset

    def has_room(self, partition: TopicPartition, state: PartitionState) -> bool:
        """Whether one more fetch of the partition is welcome."""
        queue = self._queues.get(partition)
        return queue is None or queue.generation != state.generation or len(queue.fetches) < FETCHES_MAX

    def add(self, fetch: PartitionFetch, state: PartitionState, next_offset: int) -> None:
        partition = fetch.partition
        queue = self._queues.get(partition)
        if queue is None or queue.generation != state.generation:
            self.drop(partition)
            queue = self._queues[partition] = PartitionQueue(state.generation, next_offset)
        if not queue.fetches:
            self._turn.append(partition)
        queue.fetches.append(fetch)
        queue.next_offset = next_offset

    def drop(self, partition: TopicPartition) -> None:
        queue = self._queues.pop(partition, None)
        if queue is not None and queue.fetches:
            self._turn.remove(partition)

    def drop_unassigned(self) -> None:
        for partition in [each for each in self._queues if each not in self._subscription]:
            self.drop(partition)

    def clear(self) -> None:
        self._queues.clear()
        self._turn.clear()

    @property
    def bytes_active(self) -> int:
        """Bytes that wait for the user; those of paused partitions wait for something else and do not count."""
        total = 0
        for partition, queue in self._queues.items():
            state = self._subscription.get(partition)
            if state is not None and not state.paused:
                total += sum(fetch.bytes_left for fetch in queue.fetches)
        return total

    # Taking.

    def take(self, count: int, convert: Convert | None = None) -> ConsumerRecords:
        """Up to `count` records of partitions that are not paused; positions move behind them.

        An error comes out only when no record stands before it, so that nothing is lost with it.
        """
        records = ConsumerRecords()
        for partition, state in self._takeable():
            queue = self._queues[partition]
            while queue.fetches and len(records) < count:
                fetch = queue.fetches[0]
                try:
                    taken = fetch.take(count - len(records), convert)
                except KafkaError as error:
                    state.advance(fetch.next_offset, fetch.last_epoch)
                    if not records:
                        self._failed(partition, error)
                        raise
                    return records
                records += taken
                state.advance(fetch.next_offset, fetch.last_epoch)
                if fetch.is_drained:
                    self._drained(partition, queue)
                    break
            if len(records) >= count:
                break
        return records

    def fill(self, filler: ColumnFiller, number_of: Callable[[str], int]) -> None:
        """As `take`, but into columns, where `number_of` a topic's name stands for the topic."""
        for partition, state in self._takeable():
            queue = self._queues[partition]
            while queue.fetches and not filler.full:
                fetch = queue.fetches[0]
                try:
                    fetch.fill(filler, number_of(partition.topic))
                except KafkaError as error:
                    state.advance(fetch.next_offset, fetch.last_epoch)
                    if not filler.rows:
                        self._failed(partition, error)
                        raise
                    return
                state.advance(fetch.next_offset, fetch.last_epoch)
                if fetch.is_drained:
                    self._drained(partition, queue)

    # Inside.

    def _takeable(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        """Partitions whose turn it is, without those that changed since they were fetched."""
        for partition in tuple(self._turn):
            state = self._subscription.get(partition)
            if state is None or state.generation != self._queues[partition].generation:
                self.drop(partition)
            elif state.is_fetchable:
                assert state.position is not None
                self.taken_from.setdefault(partition, state.position.offset)
                yield partition, state

    def _drained(self, partition: TopicPartition, queue: PartitionQueue) -> None:
        """The first fetch is used up: the next partition has its turn."""
        queue.fetches.popleft()
        self.drained += 1
        self._turn.remove(partition)
        if queue.fetches:
            self._turn.append(partition)

    def _failed(self, partition: TopicPartition, error: KafkaError) -> None:
        if error.code is ErrorCode.CORRUPT_MESSAGE:
            # Perhaps it was damaged on the way: it is fetched again. A record that cannot be deserialized stays.
            self.drop(partition)
            self.drained += 1
