"""The committed offsets of all groups of a shard, and those that wait for the end of a transaction.

This is hard state: it changes by replay only. An offset that was committed in a transaction is kept aside, by producer,
until the transaction's marker is replayed; then it counts, unless a plain commit that stands later in the log has come
in between, or it is dropped.

Everything is kept by group, so no request looks at another group's offsets.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from penstock.coordinator.records.group_records import OffsetCommitKey, OffsetCommitValue
from penstock.coordinator.runtime.timeline import Timeline, TimelineDict

NO_PRODUCER_ID = -1

TopicAndPartition = tuple[str, int]


class CommittedOffset(NamedTuple):
    value: OffsetCommitValue
    record_offset: int
    """Where in the log it stands: of two, the later counts."""


GroupOffsets = TimelineDict[TopicAndPartition, CommittedOffset]
_Pending = TimelineDict[OffsetCommitKey, CommittedOffset]


class OffsetStore:
    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._groups: TimelineDict[str, GroupOffsets] = TimelineDict(timeline)
        self._pending: TimelineDict[int, _Pending] = TimelineDict(timeline)
        self._producers: TimelineDict[str, TimelineDict[int, int]] = TimelineDict(timeline)
        """By group, the producers with pending offsets in it and how many they are."""

    # -- Looking -----------------------------------------------------------------------------------------------------

    def of_group(self, group_id: str) -> GroupOffsets | None:
        return self._groups.get(group_id)

    def of_group_committed(self, group_id: str) -> GroupOffsets | None:
        return self._groups.get_committed(group_id)

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        offsets = self._groups.get(group_id)
        return None if offsets is None else offsets.get((topic, partition))

    def has_any(self, group_id: str) -> bool:
        """Whether a group has offsets, committed or pending."""
        return group_id in self._groups or group_id in self._producers

    def has_open_transaction(self, group_id: str) -> bool:
        return group_id in self._producers

    def has_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether some transaction that has not ended commits this offset."""
        producers = self._producers.get(group_id)
        if producers is None:
            return False
        key = OffsetCommitKey(group_id, topic, partition)
        return any(key in self._pending[producer_id] for producer_id in producers)

    def pending_of_group(self, group_id: str) -> Iterator[TopicAndPartition]:
        for producer_id in self._producers.get(group_id) or ():
            for key in self._pending[producer_id]:
                if key.group == group_id:
                    yield key.topic, key.partition

    def group_ids(self) -> Iterator[str]:
        """Groups with offsets, committed or pending."""
        yield from self._groups
        for group_id in self._producers:
            if group_id not in self._groups:
                yield group_id

    def count(self) -> int:
        """Committed offsets of all groups."""
        return sum(len(offsets) for offsets in self._groups.values())

    # -- Replaying ---------------------------------------------------------------------------------------------------

    def replay(self, offset: int, producer_id: int, key: OffsetCommitKey, value: OffsetCommitValue | None) -> None:
        if value is None:
            self._remove(key)
        elif producer_id == NO_PRODUCER_ID:
            self._put(key, CommittedOffset(value, offset))
        else:
            self._put_pending(producer_id, key, CommittedOffset(value, offset))

    def replay_end(self, producer_id: int, *, committed: bool) -> None:
        pending = self._pending.pop(producer_id)
        if pending is None:
            return
        for key, offset in pending.items():
            self._count_pending(producer_id, key.group, -1)
            if committed:
                existing = self.get(*key)
                if existing is None or offset.record_offset > existing.record_offset:
                    self._put(key, offset)

    def _put(self, key: OffsetCommitKey, offset: CommittedOffset) -> None:
        offsets = self._groups.get(key.group)
        if offsets is None:
            offsets = TimelineDict(self._timeline)
            self._groups.set(key.group, offsets)
        offsets.set((key.topic, key.partition), offset)

    def _put_pending(self, producer_id: int, key: OffsetCommitKey, offset: CommittedOffset) -> None:
        pending = self._pending.get(producer_id)
        if pending is None:
            pending = TimelineDict(self._timeline)
            self._pending.set(producer_id, pending)
        if key not in pending:
            self._count_pending(producer_id, key.group, 1)
        pending.set(key, offset)

    def _remove(self, key: OffsetCommitKey) -> None:
        """A deleted offset takes what is pending for it with it."""
        offsets = self._groups.get(key.group)
        if offsets is not None:
            offsets.pop((key.topic, key.partition))
            if not len(offsets):
                self._groups.pop(key.group)
        for producer_id in list(self._producers.get(key.group) or ()):
            pending = self._pending[producer_id]
            if pending.pop(key) is not None:
                self._count_pending(producer_id, key.group, -1)
                if not len(pending):
                    self._pending.pop(producer_id)

    def _count_pending(self, producer_id: int, group_id: str, change: int) -> None:
        producers = self._producers.get(group_id)
        if producers is None:
            producers = TimelineDict(self._timeline)
            self._producers.set(group_id, producers)
        count = (producers.get(producer_id) or 0) + change
        if count:
            producers.set(producer_id, count)
            return
        producers.pop(producer_id)
        if not len(producers):
            self._producers.pop(group_id)

    def check_invariants(self) -> None:
        for group_id, offsets in self._groups.items():
            assert len(offsets), f"{group_id} is kept without offsets"
        counts: dict[tuple[str, int], int] = {}
        for producer_id, pending in self._pending.items():
            assert len(pending), f"producer {producer_id} is kept without offsets"
            for key in pending:
                counts[key.group, producer_id] = counts.get((key.group, producer_id), 0) + 1
        kept = {
            (group_id, producer_id): count
            for group_id, producers in self._producers.items()
            for producer_id, count in producers.items()
        }
        assert kept == counts, (kept, counts)
