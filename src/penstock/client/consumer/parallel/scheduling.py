"""Which record may go to a worker next.

Records that must keep their order share a lane: those with one key, or those of one partition. Of a lane at most one
record is with a worker; the rest wait behind it. Records without a lane wait for nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Hashable
from enum import Enum
from typing import Final

from penstock.base.types import TopicPartition
from penstock.client.consumer.parallel.frontier import Frontier
from penstock.records.record import ConsumerRecord

Lane = Hashable


class Order(Enum):
    KEY = "key"
    """Records with equal keys one after another; those without a key in no order."""
    PARTITION = "partition"
    """The records of each partition one after another."""
    UNORDERED = "unordered"


def _key_lane(record: ConsumerRecord) -> Lane | None:
    key = record.key
    if key is None:
        return None
    try:
        hash(key)
    except TypeError:
        # A deserializer may give lists or dicts.
        key = repr(key)
    return (record.topic, record.partition, key)


_LANES: Final[dict[Order, Callable[[ConsumerRecord], Lane | None]]] = {
    Order.KEY: _key_lane,
    Order.PARTITION: lambda record: (record.topic, record.partition),
    Order.UNORDERED: lambda record: None,
}


class Work:
    """A record on its way through the workers."""

    __slots__ = ("attempt", "frontier", "lane", "record")

    def __init__(self, record: ConsumerRecord, frontier: Frontier, lane: Lane | None) -> None:
        self.record = record
        self.frontier = frontier
        self.lane = lane
        self.attempt = 0

    @property
    def partition(self) -> TopicPartition:
        return TopicPartition(self.record.topic, self.record.partition)


class Scheduler:
    def __init__(self, order: Order) -> None:
        self._lane_of = _LANES[order]
        self._ready: deque[Work] = deque()
        self._lanes: dict[Lane, deque[Work]] = {}
        """Lanes with a record that is ready or with a worker; the queue holds those behind it."""
        self.waiting = 0
        """Records that no worker has yet."""

    def add(self, record: ConsumerRecord, frontier: Frontier) -> None:
        work = Work(record, frontier, self._lane_of(record))
        frontier.begun(record.offset)
        frontier.waiting += 1
        self.waiting += 1
        if work.lane is None:
            self._ready.append(work)
        elif work.lane in self._lanes:
            self._lanes[work.lane].append(work)
        else:
            self._lanes[work.lane] = deque()
            self._ready.append(work)

    def next(self) -> Work | None:
        """A record for a worker; the caller says `finished` or `give_up` for it later."""
        if not self._ready:
            return None
        self.waiting -= 1
        work = self._ready.popleft()
        frontier = work.frontier
        frontier.waiting -= 1
        frontier.running += 1
        frontier.highest = max(frontier.highest, work.record.offset)
        return work

    def finished(self, work: Work) -> None:
        work.frontier.running -= 1
        work.frontier.finished(work.record.offset)
        self._advance(work.lane)

    def give_up(self, work: Work) -> None:
        """The worker is free again but the record is not finished: nothing behind it may be committed."""
        work.frontier.running -= 1

    def drop(self, partitions: Collection[TopicPartition]) -> None:
        """Forget the waiting records of these partitions; those with workers stay."""
        self._remove(lambda work: work.partition in partitions)

    def trim(self, partitions: Collection[TopicPartition]) -> None:
        """As `drop`, but keep those before a record that a worker has or had.

        When they are finished too there is no gap, and whoever reads on from the frontier repeats nothing.
        """
        self._remove(lambda work: work.partition in partitions and work.record.offset > work.frontier.highest)

    def _remove(self, is_unwanted: Callable[[Work], bool]) -> None:
        for lane, queue in list(self._lanes.items()):
            self._lanes[lane] = self._kept(queue, is_unwanted)
        dropped = [work for work in self._ready if is_unwanted(work)]
        self._ready = self._kept(self._ready, is_unwanted)
        for work in dropped:
            self._advance(work.lane)

    def _kept(self, queue: deque[Work], is_unwanted: Callable[[Work], bool]) -> deque[Work]:
        kept: deque[Work] = deque()
        for work in queue:
            if is_unwanted(work):
                work.frontier.waiting -= 1
                self.waiting -= 1
            else:
                kept.append(work)
        return kept

    def _advance(self, lane: Lane | None) -> None:
        if lane is None:
            return
        queue = self._lanes[lane]
        if queue:
            self._ready.append(queue.popleft())
        else:
            del self._lanes[lane]
