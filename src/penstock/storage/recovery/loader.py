"""Opening a log: from whatever a crash left on disk to segments, offsets and producer state that agree.

After a clean stop nothing is scanned: indexes are checked for what can be seen at their ends, the log's end is found
from the last index entry, and producer state comes from the snapshot there. After a crash every segment that may hold
bytes beyond the recovery point is read batch by batch, from the first to the last byte; the first batch that is not
whole, not valid or not in order ends the log. Its indexes, and the producer snapshots after it, are made anew.

What was flushed before the recovery point moved is trusted, except that a missing or damaged index is rebuilt, and a
damaged transaction index makes recovery start at its segment, since its entries depend on producer state.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock, Files
from penstock.base.types import TopicPartition
from penstock.records.batch import HEADER_SIZE, read_header
from penstock.storage.config import LogConfig
from penstock.storage.leader_epochs import LeaderEpochCache
from penstock.storage.producers.replay import follow_batch, rebuild_producers
from penstock.storage.producers.state import ProducerStateManager
from penstock.storage.recovery.leftovers import segment_base_offsets, tidy_directory
from penstock.storage.segments.scan import iter_headers, iter_valid
from penstock.storage.segments.segment import TRANSACTION_INDEX_SUFFIX, Segment
from penstock.storage.segments.segment_list import SegmentList
from penstock.storage.segments.transaction_index import CorruptTransactionIndexError

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPlace:
    """Which log, where, and by what rules."""

    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    files: Files
    clock: Clock

    def new_segment(self, base_offset: int) -> Segment:
        return Segment.create(self.directory, base_offset, self.config, self.files, self.clock.time_ms())


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedLog:
    place: LogPlace
    segments: SegmentList
    producers: ProducerStateManager
    epochs: LeaderEpochCache
    log_start_offset: int
    log_end_offset: int
    recovery_point: int


@dataclass(slots=True, kw_only=True)
class LogLoader:
    """The work of opening one log; every method blocks."""

    place: LogPlace
    recovery_point: int
    log_start_offset: int
    clean: bool
    producers: ProducerStateManager
    epochs: LeaderEpochCache

    def load(self) -> LoadedLog:
        names = tidy_directory(self.place.directory, self.place.files)
        segments = self._open_segments(names)
        if not segments:
            return self._start_empty(self.log_start_offset)
        first_doubtful = self._check_indexes(segments)
        needs_recovery = first_doubtful < len(segments)
        log_end_offset = self._recover(segments, first_doubtful) if needs_recovery else segments[-1].read_next_offset()
        if log_end_offset < self.log_start_offset:
            log.warning(
                "%s ends at %d, before its start offset %d: its segments are deleted",
                self.place.topic_partition, log_end_offset, self.log_start_offset,
            )  # fmt: skip
            self._remove(segments, 0)
            return self._start_empty(self.log_start_offset)
        return self._finish(SegmentList(segments), log_end_offset, was_recovered=needs_recovery)

    def _open_segments(self, names: set[str]) -> list[Segment]:
        now_ms = self.place.clock.time_ms()
        return [
            Segment.open(
                self.place.directory,
                base_offset,
                self.place.config,
                self.place.files,
                now_ms,
                has_transaction_index=f"{base_offset:020d}{TRANSACTION_INDEX_SUFFIX}" in names,
            )
            for base_offset in segment_base_offsets(names)
        ]

    def _start_empty(self, offset: int) -> LoadedLog:
        self.epochs.clear()
        self.producers.truncate_fully_and_start_at(offset)
        segment = self.place.new_segment(offset)
        return LoadedLog(
            place=self.place,
            segments=SegmentList([segment]),
            producers=self.producers,
            epochs=self.epochs,
            log_start_offset=offset,
            log_end_offset=offset,
            recovery_point=min(self.recovery_point, offset),
        )

    def _finish(self, segments: SegmentList, log_end_offset: int, *, was_recovered: bool) -> LoadedLog:
        log_start_offset = max(self.log_start_offset, segments[0].base_offset)
        self.producers.remove_stray_snapshots(segment.base_offset for segment in segments)
        rebuild_producers(self.producers, segments, log_start_offset, log_end_offset, self.place.clock.time_ms())
        self.epochs.truncate_from_end(log_end_offset)
        if self.epochs.latest_epoch is None and log_end_offset > log_start_offset:
            self._rebuild_epochs(segments)
        self.epochs.truncate_from_start(log_start_offset)
        segments.active.load_first_timestamp()
        # A recovery point only moves when a flush has moved it; what was recovered may still be unflushed.
        flushed = log_end_offset if self.clean and not was_recovered else min(self.recovery_point, log_end_offset)
        return LoadedLog(
            place=self.place,
            segments=segments,
            producers=self.producers,
            epochs=self.epochs,
            log_start_offset=log_start_offset,
            log_end_offset=log_end_offset,
            recovery_point=flushed,
        )

    # -- Indexes ---------------------------------------------------------------------------------------------------

    def _check_indexes(self, segments: list[Segment]) -> int:
        """Check what is trusted, rebuilding indexes; returns from which segment on recovery is needed."""
        first_doubtful = len(segments) if self.clean else self._first_unflushed(segments)
        for index, segment in enumerate(segments[:first_doubtful]):
            try:
                segment.transaction_index.check()
                if not indexes_are_sane(segment):
                    log.warning("the indexes of %s are missing or damaged and are rebuilt", segment.path)
                    rebuild_indexes(segment)
                if index == len(segments) - 1:
                    check_ends_whole(segment)
            except (CorruptTransactionIndexError, DamagedSegmentError) as error:
                log.warning("%s: recovery starts at %s", error, segment.path)
                return index
            segment.close_files()
        return first_doubtful

    def _first_unflushed(self, segments: list[Segment]) -> int:
        """The segment with the recovery point and all after it; the last one always, its indexes are not trimmed."""
        below = [index for index, segment in enumerate(segments) if segment.base_offset <= self.recovery_point]
        return below[-1] if below else 0

    def _rebuild_epochs(self, segments: SegmentList) -> None:
        """The checkpoint of the leader epochs is lost, but every batch has its epoch."""
        for segment in segments:
            for _, header in iter_headers(segment.open_file().file, 0, segment.size):
                if header.leader_epoch < 0:
                    return
                self.epochs.assign(header.leader_epoch, header.base_offset)
            segments.touch(segment)

    # -- Recovery --------------------------------------------------------------------------------------------------

    def _recover(self, segments: list[Segment], first: int) -> int:
        """Recover the segments from `first` on, in place; returns where the log ends."""
        trusted = SegmentList(segments[: first + 1])
        start = segments[first].base_offset
        log_start_offset = max(self.log_start_offset, segments[0].base_offset)
        rebuild_producers(self.producers, trusted, log_start_offset, start, self.place.clock.time_ms())
        index = first
        while True:
            segment = segments[index]
            log.debug("recovering %s", segment.path)
            size_before = segment.size
            next_offset = recover_segment(segment, self.producers, self.epochs)
            index += 1
            following = segments[index] if index < len(segments) else None
            if following is None or segment.size < size_before or next_offset > following.base_offset:
                self._remove(segments, index)
                self.producers.map_end_offset = next_offset
                return next_offset
            segment.finish()
            segment.close_files()
            self.producers.take_snapshot(following.base_offset, sync=False)

    def _remove(self, segments: list[Segment], first: int) -> None:
        for segment in segments[first:]:
            log.warning("%s comes after the end of the log and is removed", segment.path)
            segment.close_files()
            segment.remove_files()
        del segments[first:]


class DamagedSegmentError(Exception):
    """A segment that should be whole is not."""


def recover_segment(segment: Segment, producers: ProducerStateManager, epochs: LeaderEpochCache) -> int:
    """Verify every batch, cut the file after the last good one, rebuild all indexes; returns the next offset.

    The segment is left open for appends: one that takes no more is to be finished by the caller.

    `producers` must stand at the segment's base offset, and then follows.
    """
    segment.reset_indexes()
    file = segment.open_file().file
    valid_bytes, next_offset = 0, segment.base_offset
    for position, header, content in iter_valid(file, segment.size, segment.base_offset):
        last_offset = header.last_offset
        if last_offset > segment.roll_after_offset:
            break
        size = header.size_in_bytes
        if header.producer_id >= 0:
            try:
                follow_batch(producers, header, content, segment.transaction_index)
            except KafkaError as error:
                log.warning("%s", error)
                break
        if header.leader_epoch > (-1 if epochs.latest_epoch is None else epochs.latest_epoch):
            epochs.assign(header.leader_epoch, header.base_offset)
        segment.note_batch(position, size, last_offset, header.max_timestamp)
        valid_bytes, next_offset = position + size, last_offset + 1
    if valid_bytes < segment.size:
        log.warning("%s: %d bytes after offset %d are not valid and are cut off",
                    segment.path, segment.size - valid_bytes, next_offset - 1)  # fmt: skip
        segment.truncate_file(valid_bytes)
    segment.hot_from = segment.size
    return next_offset


def rebuild_indexes(segment: Segment) -> None:
    """Make the offset and the time index anew from trusted content; the transaction index stays."""
    segment.offset_index.reset()
    segment.time_index.reset()
    try:
        for position, header in iter_headers(segment.open_file().file, 0, segment.size):
            segment.note_batch(position, header.size_in_bytes, header.last_offset, header.max_timestamp)
    except KafkaError as error:
        raise DamagedSegmentError(error.message) from error
    segment.finish()


def indexes_are_sane(segment: Segment) -> bool:
    """Whether the indexes can belong to the segment, by their ends; takes over what the time index knows."""
    offsets, times = segment.offset_index, segment.time_index
    if not offsets.open() or not times.open():
        return False
    head = segment.open_file().file.read_at(0, HEADER_SIZE) if segment.size else b""
    if len(head) < HEADER_SIZE:
        return offsets.entries == 0 and times.entries == 0
    first = read_header(head)
    if not _offsets_are_sane(segment, first.size_in_bytes):
        return False
    if times.entries == 0:
        return first.max_timestamp < 0
    segment.max_timestamp, segment.offset_of_max_timestamp = times.last_timestamp, times.last_offset
    # Zeros after the last entry mean that the file was not trimmed: how many entries it has is not known.
    first_timestamp, first_offset = times.entry(0)
    return times.entries == 1 or (times.last_timestamp > first_timestamp and times.last_offset > first_offset)


def _offsets_are_sane(segment: Segment, first_batch_bytes: int) -> bool:
    offsets = segment.offset_index
    if offsets.entries == 0:
        # No entry yet is right for few batches only; a wrong guess costs a rebuild and nothing else.
        return segment.size <= first_batch_bytes + 2 * segment.index_interval_bytes
    last_offset, position = offsets.entry(offsets.entries - 1)
    if offsets.entries > 1 and last_offset <= offsets.entry(0)[0]:
        return False
    if not 0 <= position <= segment.size - HEADER_SIZE:
        return False
    header = read_header(segment.open_file().file.read_at(position, HEADER_SIZE))
    # Kafka's followers write one entry for several batches: its offset is then that of the last of them.
    return header.base_offset <= last_offset and header.last_offset <= last_offset


def check_ends_whole(segment: Segment) -> None:
    """DamagedSegmentError when the last segment does not end with a whole batch, though the stop was clean."""
    offsets = segment.offset_index
    position = offsets.entry(offsets.entries - 1)[1] if offsets.entries else 0
    end = position
    try:
        for at, header in iter_headers(segment.open_file().file, position, segment.size):
            end = at + header.size_in_bytes
    except KafkaError as error:
        raise DamagedSegmentError(error.message) from error
    if end != segment.size:
        raise DamagedSegmentError(f"{segment.path} has {segment.size - end} bytes after its last whole batch")
