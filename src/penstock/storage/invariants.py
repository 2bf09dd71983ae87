"""What is true of a log between any two operations, for tests and simulations to check after each."""

from __future__ import annotations

from penstock.storage.readable_log import ReadableLog
from penstock.storage.segments.scan import iter_valid
from penstock.storage.segments.segment import Segment


def check_log(log: ReadableLog) -> None:
    segments = log.segments
    _require(bool(segments), "a log has a segment", log)
    _require(0 <= log.log_start_offset <= log.log_end_offset, "the start is not after the end", log)
    _require(log.log_start_offset <= log.high_watermark <= log.log_end_offset, "the high watermark is within", log)
    _require(log.last_stable_offset <= log.high_watermark, "the last stable offset is not above it", log)
    _require(log.recovery_point <= log.log_end_offset, "the recovery point is not beyond the end", log)
    _require(log.size_bytes == sum(segment.size for segment in segments), "the sizes add up", log)
    next_offset = segments[0].base_offset
    for segment in segments:
        _require(segment.base_offset >= next_offset, f"{segment} starts after the one before it", log)
        next_offset = max(next_offset, check_segment(segment))
    _require(next_offset <= log.log_end_offset, "no batch is beyond the end", log)
    epochs = [entry.epoch for entry in log.epochs.entries]
    _require(epochs == sorted(set(epochs)), "epochs grow", log)
    _require(all(entry.start_offset <= log.log_end_offset for entry in log.epochs.entries), "epochs start within", log)


def check_segment(segment: Segment) -> int:
    """Every byte belongs to a valid batch, and the indexes point at them; returns the next offset."""
    file = segment.open_file().file
    _require(file.size() == segment.size, "the file has the size that is remembered", segment)
    last_offsets: dict[int, int] = {}
    largest: dict[int, int] = {}
    end, next_offset, max_timestamp = 0, segment.base_offset, -1
    for position, header, _ in iter_valid(file, segment.size, segment.base_offset):
        last_offsets[position] = header.last_offset
        if header.max_timestamp > max_timestamp:
            max_timestamp = header.max_timestamp
            largest[header.last_offset] = max_timestamp
        end, next_offset = position + header.size_in_bytes, header.next_offset
    _require(end == segment.size, f"all bytes are whole batches, not {end} of them", segment)
    _require(segment.max_timestamp == max_timestamp, f"{max_timestamp} is the largest timestamp", segment)
    _check_indexes(segment, last_offsets, largest)
    return next_offset


def _check_indexes(segment: Segment, last_offsets: dict[int, int], largest: dict[int, int]) -> None:
    offsets = [segment.offset_index.entry(slot) for slot in range(segment.offset_index.entries)]
    for offset, position in offsets:
        _require(last_offsets.get(position) == offset, f"offset {offset} ends the batch at {position}", segment)
    _require(offsets == sorted(offsets), "the offset index grows", segment)
    times = [segment.time_index.entry(slot) for slot in range(segment.time_index.entries)]
    for timestamp, offset in times:
        _require(largest.get(offset) == timestamp, f"{timestamp} is first reached at {offset}", segment)
    _require(times == sorted(set(times)), "the time index grows", segment)


def _require(condition: bool, rule: str, subject: object) -> None:
    if not condition:
        raise AssertionError(f"{subject!r}: {rule}")
