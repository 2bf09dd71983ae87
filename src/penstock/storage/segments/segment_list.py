"""The segments of a log in order: the last one is active, the others are found by offset or by timestamp.

Inactive segments open their files when they are read; only the few used last keep them open, so that the descriptors
of a log are bounded whatever its size.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate

from penstock.storage.segments.segment import Segment

OPEN_INACTIVE_MAX = 4
"""How many inactive segments of one log may keep their files open while nobody reads them."""


class SegmentList:
    __slots__ = ("_base_offsets", "_inactive_bytes", "_largest_timestamps", "_open", "_segments", "active")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._segments = list(segments)
        self._open: dict[int, Segment] = {}
        self._changed()

    def _changed(self) -> None:
        self._base_offsets = [segment.base_offset for segment in self._segments]
        self._largest_timestamps: list[int] | None = None
        self._inactive_bytes = sum(segment.size for segment in self._segments[:-1])
        self.active = self._segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    def __getitem__(self, index: int) -> Segment:
        return self._segments[index]

    @property
    def size_bytes(self) -> int:
        return self._inactive_bytes + self.active.size

    def after(self, index: int) -> Segment | None:
        return self._segments[index + 1] if index + 1 < len(self._segments) else None

    # -- Changes ---------------------------------------------------------------------------------------------------

    def add(self, segment: Segment) -> None:
        """Append a new active segment."""
        previous = self.active
        self._segments.append(segment)
        self._changed()
        self.touch(previous)

    def remove_first(self, count: int) -> list[Segment]:
        """Take out the oldest segments; the active one is never among them."""
        removed = self._segments[:count]
        del self._segments[:count]
        return self._removed(removed)

    def remove_after(self, offset: int) -> list[Segment]:
        """Take out the segments that start after `offset`; the first one never does."""
        keep = bisect_right(self._base_offsets, offset)
        removed = self._segments[keep:]
        del self._segments[keep:]
        return self._removed(removed)

    def replace_all(self, segment: Segment) -> list[Segment]:
        removed = self._segments
        self._segments = [segment]
        return self._removed(removed)

    def _removed(self, removed: list[Segment]) -> list[Segment]:
        for segment in removed:
            self._open.pop(segment.base_offset, None)
        self._changed()
        self._open.pop(self.active.base_offset, None)
        return removed

    # -- Search ----------------------------------------------------------------------------------------------------

    def floor_index(self, offset: int) -> int:
        """The index of the last segment that starts at `offset` or before; -1 when all start after it."""
        return bisect_right(self._base_offsets, offset) - 1

    def first_index_reaching(self, timestamp: int) -> int:
        """The index of the first segment with a timestamp at or after `timestamp`; the active one's if no other has."""
        if self._largest_timestamps is None:
            inactive = self._segments[:-1]
            self._largest_timestamps = list(accumulate((segment.largest_timestamp for segment in inactive), max))
        return bisect_left(self._largest_timestamps, timestamp)

    # -- Open files ------------------------------------------------------------------------------------------------

    def touch(self, segment: Segment) -> None:
        """An inactive segment was used: keep it open, and close the one that was not used for longest."""
        if segment is self.active:
            return
        self._open.pop(segment.base_offset, None)
        self._open[segment.base_offset] = segment
        if len(self._open) > OPEN_INACTIVE_MAX:
            oldest = next(iter(self._open))
            self._open.pop(oldest).close_files()
