"""Finding records by timestamp.

Timestamps need not grow with offsets, so what the time index knows is the largest one so far: the first batch that
reaches a timestamp lies at or before the first entry that does, and after the offset index entry before that, because
at every offset index entry the time index was brought up to date. The scan is about `index.interval.bytes` long.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.records.batch import BatchHeader
from penstock.records.builder import find_record_by_timestamp, read_records
from penstock.storage.segments.scan import iter_headers
from penstock.storage.segments.segment import NEVER, Segment
from penstock.storage.segments.segment_list import SegmentList


class FoundOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int
    """-1 when the batch has none."""


def find_by_timestamp(segments: SegmentList, timestamp: int, log_start_offset: int) -> FoundOffset | None:
    """The first record at `log_start_offset` or later whose timestamp is `timestamp` or later."""
    for index in range(segments.first_index_reaching(timestamp), len(segments)):
        segment = segments[index]
        if segment.max_timestamp < timestamp:
            continue
        found = _find_in_segment(segment, timestamp, log_start_offset)
        segments.touch(segment)
        if found is not None:
            return found
    return None


def find_max_timestamp(segments: SegmentList) -> FoundOffset | None:
    """The first record with the largest timestamp of the log."""
    segment = max(segments, key=lambda candidate: candidate.max_timestamp)
    if segment.max_timestamp < 0:
        return None
    start = segment.offset_index.position_at_or_before(segment.offset_of_max_timestamp)
    for position, header in iter_headers(segment.open_file().file, start, segment.size):
        if header.max_timestamp == segment.max_timestamp:
            found = _find_in_batch(segment, position, header, segment.max_timestamp, 0)
            segments.touch(segment)
            return found
    return None


def _find_in_segment(segment: Segment, timestamp: int, start_offset: int) -> FoundOffset | None:
    entry = segment.time_index.first_at_or_after(timestamp)
    before_offset = NEVER if entry is None else entry[1] - 1
    index = segment.offset_index
    # The start offset may be the later one of the two.
    start = max(index.position_at_or_before(before_offset), index.position_at_or_before(start_offset))
    for position, header in iter_headers(segment.open_file().file, start, segment.size):
        if header.max_timestamp >= timestamp and header.last_offset >= start_offset:
            found = _find_in_batch(segment, position, header, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _find_in_batch(
    segment: Segment, position: int, header: BatchHeader, timestamp: int, start_offset: int
) -> FoundOffset | None:
    batch = segment.open_file().file.read_at(position, header.size_in_bytes)
    if header.base_offset >= start_offset:
        first = find_record_by_timestamp(batch, 0, header, timestamp)
        return None if first is None else FoundOffset(*first, header.leader_epoch)
    for record in read_records(batch, 0, header):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return FoundOffset(record.timestamp, record.offset, header.leader_epoch)
    return None
