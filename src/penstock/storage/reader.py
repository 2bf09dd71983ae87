"""Reading a log by offset: which bytes of which file to send.

A search costs a bisection over the segments, one over the index, and a scan of about `index.interval.bytes`. Consumers
at the end of the log need none of it: the position of the end that a read was given is remembered, and the next fetch
of that consumer, and of every other one that has caught up, starts exactly there.
"""

from __future__ import annotations

from penstock.records.batch import LENGTH_OFFSET, LOG_OVERHEAD
from penstock.storage.segments.segment import Segment
from penstock.storage.segments.segment_list import SegmentList
from penstock.storage.segments.slices import FileSlice
from penstock.storage.segments.transaction_index import AbortedTransaction

_REMEMBERED_MAX = 128


class Reader:
    __slots__ = ("_remembered", "_segments")

    def __init__(self, segments: SegmentList) -> None:
        self._segments = segments
        # Offset -> where the batch that holds it starts, or will start once it is written.
        self._remembered: dict[int, tuple[Segment, int]] = {}

    def forget_positions(self) -> None:
        """To be called when segments or bytes went away."""
        self._remembered.clear()

    def read(
        self, offset: int, max_bytes: int, up_to_offset: int, log_end_offset: int, min_one_batch: bool
    ) -> FileSlice | None:
        """Bytes from the batch that holds `offset` on, all below `up_to_offset`, which is not beyond the log's end."""
        start = self._remembered.get(offset)
        if start is None or start[1] >= start[0].size:
            start = self._find(offset)
            if start is None:
                return None
        segment, position = start
        end = self._end_position(segment, up_to_offset, log_end_offset)
        length = end - position
        if length <= 0:
            return None
        if length > max_bytes:
            first_batch_bytes = _batch_size(segment, position)
            if max_bytes < first_batch_bytes:
                if not min_one_batch:
                    # A client could do nothing with a part of a batch.
                    return None
                max_bytes = first_batch_bytes
            length = min(length, max_bytes)
        active = self._segments.active
        if segment is not active:
            self._segments.touch(segment)
        elif up_to_offset == log_end_offset:
            self._remember(log_end_offset, segment, end)
        return segment.slice(position, length)

    def _find(self, offset: int) -> tuple[Segment, int] | None:
        segments = self._segments
        for index in range(max(segments.floor_index(offset), 0), len(segments)):
            segment = segments[index]
            found = segment.locate(offset)
            segments.touch(segment)
            if found is not None:
                return segment, found[0]
        return None

    def _end_position(self, segment: Segment, up_to_offset: int, log_end_offset: int) -> int:
        """Where in `segment` the batches below `up_to_offset` end."""
        if up_to_offset >= log_end_offset:
            return segment.size
        remembered = self._remembered.get(up_to_offset)
        if remembered is not None and remembered[0] is segment:
            return remembered[1]
        if self._segments[self._segments.floor_index(up_to_offset)] is not segment:
            return segment.size
        found = segment.locate(up_to_offset)
        position = segment.size if found is None else found[0]
        self._remember(up_to_offset, segment, position)
        return position

    def _remember(self, offset: int, segment: Segment, position: int) -> None:
        if len(self._remembered) >= _REMEMBERED_MAX:
            self._remembered.clear()
        self._remembered[offset] = (segment, position)

    def upper_bound_offset(self, file_slice: FileSlice, log_end_offset: int) -> int:
        """An offset above every one in the slice, from the index: near, but not the lowest."""
        index = self._segments.floor_index(file_slice.base_offset)
        segment = self._segments[index]
        if segment.base_offset == file_slice.base_offset:
            bound = segment.offset_index.offset_at_or_after(file_slice.position + file_slice.length)
            if bound is not None:
                return bound
        following = self._segments.after(index)
        return log_end_offset if following is None else following.base_offset

    def aborted_transactions(self, start_offset: int, end_offset: int) -> list[AbortedTransaction]:
        """Those that overlap the range. Abort markers come after their data, so later segments are searched too."""
        found: list[AbortedTransaction] = []
        segments = self._segments
        for index in range(max(segments.floor_index(start_offset), 0), len(segments)):
            aborted, is_complete = segments[index].transaction_index.collect(start_offset, end_offset)
            found += aborted
            if is_complete:
                break
        return found


def _batch_size(segment: Segment, position: int) -> int:
    length = segment.open_file().file.read_at(position + LENGTH_OFFSET, 4)
    return int.from_bytes(length, "big") + LOG_OVERHEAD
