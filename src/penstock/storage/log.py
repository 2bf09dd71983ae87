"""The log of one partition: appends at its end, reads anywhere, moves of its start and its end.

Everything here runs on the loop and only touches the page cache, except what says that it blocks: `open`, `close`,
and the plans that `flush_plan` returns. Segments that leave the log are renamed to `.deleted` and returned; their
`remove_files` is for a worker, `file.delete.delay.ms` later.

After a failed write the file is cut back to the last whole batch and the log goes on; when even that fails, the log
refuses everything from then on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple, NoReturn
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Files
from penstock.base.types import TopicPartition
from penstock.records.batch import (
    CONTROL_MASK,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    crc_is_valid,
    iter_batches,
    set_base_offset_and_epoch,
)
from penstock.records.builder import read_end_transaction_marker
from penstock.records.validation import ValidatedBatch
from penstock.storage.config import LogConfig
from penstock.storage.flushing import FlushPlan
from penstock.storage.invariants import check_log
from penstock.storage.leader_epochs import LeaderEpochCache
from penstock.storage.producers.replay import follow_batch, follow_marker, rebuild_producers
from penstock.storage.producers.state import DEFAULT_EXPIRATION_MS, ProducerStateManager
from penstock.storage.readable_log import ReadableLog
from penstock.storage.recovery.loader import LoadedLog, LogLoader, LogPlace
from penstock.storage.retention import count_deletable
from penstock.storage.segments.segment import Segment

log = logging.getLogger(__name__)

_new_tuple = tuple.__new__


class AppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    log_append_time: int
    """-1 where the producer's timestamps are kept; for a duplicate, the timestamp of its first append."""
    log_start_offset: int
    duplicate: bool


class Log(ReadableLog):
    __slots__ = ("_flushing_up_to", "_unsynced_snapshots", "last_flush_ms", "on_roll")

    def __init__(self, loaded: LoadedLog, *, topic_id: UUID | None) -> None:
        super().__init__(loaded, topic_id=topic_id)
        self.last_flush_ms = self._clock.time_ms()
        self.on_roll: Callable[[Log], None] | None = None
        """Called after a roll: the segments before the active one should now be flushed."""
        self._unsynced_snapshots: list[str] = []
        self._flushing_up_to = 0

    @classmethod
    def open(
        cls,
        *,
        directory: str,
        topic_partition: TopicPartition,
        topic_id: UUID | None,
        config: LogConfig,
        files: Files,
        clock: Clock,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        clean: bool = False,
        producer_expiration_ms: int = DEFAULT_EXPIRATION_MS,
    ) -> Log:
        """Open or create the log in `directory`. Blocks: without `clean` it reads all after `recovery_point`."""
        files.make_directory(directory)
        place = LogPlace(directory=directory, topic_partition=topic_partition, config=config, files=files, clock=clock)
        loader = LogLoader(
            place=place,
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean=clean,
            producers=ProducerStateManager(
                topic_partition, directory, files, clock, expiration_ms=producer_expiration_ms
            ),
            epochs=LeaderEpochCache(topic_partition, directory, files),
        )
        return cls(loader.load(), topic_id=topic_id)

    def update_config(self, config: LogConfig) -> None:
        self.config = config
        for segment in self._segments:
            segment.update_config(config)

    # -- Appends ---------------------------------------------------------------------------------------------------

    def append_as_leader(self, validated: ValidatedBatch, leader_epoch: int, now_ms: int) -> AppendInfo:
        """Give a batch its offsets and write it. KafkaError: nothing was appended."""
        buffer, header, max_timestamp = validated
        producer_id = header.producer_id
        if producer_id >= 0:
            if header.base_sequence >= 0:
                earlier = self.producers.check(header, now_ms)
                if earlier is not None:
                    first_offset, last_offset, timestamp = earlier[:3]
                    return AppendInfo(first_offset, last_offset, timestamp, self.log_start_offset, True)
            else:
                self._check_coordinator_batch(buffer, header)
        first_offset = self.log_end_offset
        last_offset = first_offset + header.last_offset_delta
        segment = self._segment_for(len(buffer), max_timestamp, first_offset, last_offset, now_ms)
        if leader_epoch != self.epochs.latest_epoch:
            self.epochs.assign(leader_epoch, first_offset)
        set_base_offset_and_epoch(buffer, 0, first_offset, leader_epoch)
        try:
            segment.append(buffer, last_offset, max_timestamp)
        except OSError as error:
            self._undo_append(segment, error)
        self.log_end_offset = last_offset + 1
        attributes = header.attributes
        if producer_id >= 0:
            if attributes & CONTROL_MASK:
                placed = header._replace(base_offset=first_offset)
                follow_marker(self.producers, placed, buffer, segment.transaction_index)
            else:
                self.producers.update(header, first_offset, last_offset, max_timestamp)
        append_time = max_timestamp if attributes & TIMESTAMP_TYPE_MASK else NO_TIMESTAMP
        return _new_tuple(AppendInfo, (first_offset, last_offset, append_time, self.log_start_offset, False))

    def _check_coordinator_batch(self, buffer: memoryview, header: BatchHeader) -> None:
        """Markers and a coordinator's transactional records carry no sequence; epochs fence them."""
        if not header.attributes & CONTROL_MASK:
            self.producers.check_coordinator(header)
        elif (marker := read_end_transaction_marker(buffer, 0, header)) is not None:
            self.producers.check_control(header, marker.coordinator_epoch)

    def append_as_follower(self, buffer: memoryview) -> AppendInfo:
        """Write batches as the leader has them, offsets and epochs included; a partial one at the end is left out."""
        first_offset = -1
        for position, header in iter_batches(buffer):
            size = header.length + LOG_OVERHEAD
            if header.base_offset < self.log_end_offset or header.last_offset_delta < 0:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE,
                    f"A batch for {self.topic_partition} starts at offset {header.base_offset}, the log is at"
                    f" {self.log_end_offset} already.",
                )
            if not crc_is_valid(buffer, position, size):
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"The checksum of the batch at offset {header.base_offset} for {self.topic_partition} is wrong.",
                )
            self._append_placed(buffer[position : position + size], header)
            if first_offset < 0:
                first_offset = header.base_offset
        last_offset = self.log_end_offset - 1
        return AppendInfo(first_offset, last_offset, NO_TIMESTAMP, self.log_start_offset, False)

    def _append_placed(self, batch: memoryview, header: BatchHeader) -> None:
        last_offset, max_timestamp = header.last_offset, header.max_timestamp
        now_ms = self._clock.time_ms()
        segment = self._segment_for(len(batch), max_timestamp, header.base_offset, last_offset, now_ms)
        if header.leader_epoch >= 0:
            self.epochs.assign(header.leader_epoch, header.base_offset)
        try:
            segment.append(batch, last_offset, max_timestamp)
        except OSError as error:
            self._undo_append(segment, error)
        self.log_end_offset = last_offset + 1
        follow_batch(self.producers, header, batch, segment.transaction_index)

    def _undo_append(self, segment: Segment, error: OSError) -> NoReturn:
        self.epochs.truncate_from_end(self.log_end_offset)
        try:
            segment.undo_append(self.log_end_offset)
        except OSError as second_error:
            self._failure = f"{segment.path} could not be cut back after a failed write: {second_error}"
            log.error("%s", self._failure)
        message = f"An append to {self.topic_partition} in {self.directory} failed: {error}"
        log.error("%s", message)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error

    # -- Rolling ---------------------------------------------------------------------------------------------------

    def _segment_for(self, size: int, max_timestamp: int, first_offset: int, last_offset: int, now_ms: int) -> Segment:
        """The segment that takes the next batch: a new one when the active one is full, or old enough."""
        if self._failure is not None:
            self._refuse()
        segment = self._segments.active
        if (
            size + segment.size <= self.config.segment_bytes
            and max_timestamp <= segment.roll_after_timestamp
            and now_ms <= segment.roll_after_ms
            and last_offset <= segment.roll_after_offset
            and not segment.index_is_full
        ):
            return segment
        if size > self.config.segment_bytes:
            raise KafkaError(
                ErrorCode.RECORD_LIST_TOO_LARGE,
                f"A batch of {size} bytes for {self.topic_partition} is larger than a segment"
                f" ({self.config.segment_bytes} bytes).",
            )
        return self._roll(first_offset)

    def roll(self) -> None:
        """Start a new segment at the log's end, unless the active one is still empty."""
        self._roll(self.log_end_offset)

    def _roll(self, first_offset: int) -> Segment:
        active = self._segments.active
        base_offset = max(first_offset, self.log_end_offset)
        if active.base_offset == base_offset:
            return active
        try:
            active.finish()
            segment = Segment.create(self.directory, base_offset, self.config, self._files, self._clock.time_ms())
            self._segments.add(segment)
            snapshot = self.producers.take_snapshot(base_offset, sync=False)
        except OSError as error:
            message = f"A new segment for {self.topic_partition} cannot be made: {error}"
            log.error("%s", message)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, message) from error
        if snapshot is not None:
            self._unsynced_snapshots.append(snapshot)
        if self.on_roll is not None:
            self.on_roll(self)
        return segment

    def maybe_roll_by_time(self, now_ms: int) -> bool:
        """Roll a segment that has been open for longer than `segment.ms`, also when no append comes to do it.

        Both by its records and by the clock: old records that are being copied in must not roll at every look.
        """
        active = self._segments.active
        allowed_ms = self.config.segment_ms - active.jitter_ms
        first = active.first_timestamp
        age_ms = now_ms - max(active.created_ms, NO_TIMESTAMP if first is None else first)
        if active.size == 0 or age_ms <= allowed_ms:
            return False
        self.roll()
        return True

    # -- The high watermark and the start --------------------------------------------------------------------------

    def set_high_watermark(self, offset: int) -> None:
        # Every append comes through here; the comparisons cost half of what min and max would.
        if offset < self.log_start_offset:
            offset = self.log_start_offset
        if offset > self.log_end_offset:
            offset = self.log_end_offset
        self.high_watermark = offset
        self.producers.on_high_watermark_updated(offset)

    def delete_records_before(self, offset: int) -> int:
        """Move the start of the log up; the segments before it go with the next `delete_old_segments`."""
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"The start of {self.topic_partition} cannot move to {offset}, beyond the high watermark"
                f" {self.high_watermark}.",
            )
        self._move_start(offset)
        return self.log_start_offset

    def _move_start(self, offset: int) -> None:
        if offset <= self.log_start_offset:
            return
        self.log_start_offset = offset
        self.high_watermark = max(self.high_watermark, offset)
        self.epochs.truncate_from_start(offset)
        self.producers.on_log_start_offset_incremented(offset)

    def delete_old_segments(self, now_ms: int, high_watermark: int | None = None) -> list[Segment]:
        """Take out the segments that retention or the start of the log let go."""
        count = count_deletable(
            self._segments,
            self.config,
            log_start_offset=self.log_start_offset,
            log_end_offset=self.log_end_offset,
            high_watermark=self.high_watermark if high_watermark is None else high_watermark,
            now_ms=now_ms,
        )
        if count == 0:
            return []
        if count == len(self._segments):
            self.roll()
        self._move_start(self._segments[count].base_offset)
        return self._discard(self._segments.remove_first(count))

    def _discard(self, removed: Iterable[Segment]) -> list[Segment]:
        """Mark the files of segments that have left the log, and the producer snapshots that belong to them."""
        self._reader.forget_positions()
        discarded = list(removed)
        for segment in discarded:
            segment.mark_deleted()
            segment.snapshot_path = self.producers.rename_snapshot_for_deletion(segment.base_offset)
        return discarded

    # -- Truncation ------------------------------------------------------------------------------------------------

    def truncate_to(self, offset: int) -> list[Segment]:
        """Drop everything from `offset` on, a batch that holds it included; returns the segments that went whole."""
        if offset >= self.log_end_offset:
            # A leader that never wrote may have left an epoch at the very end.
            self.epochs.truncate_from_end(self.log_end_offset)
            return []
        if offset < self._segments[0].base_offset:
            return self.truncate_fully_and_start_at(offset)
        now_ms = self._clock.time_ms()
        removed = self._discard(self._segments.remove_after(offset))
        self._segments.active.truncate_to(offset, now_ms)
        self._move_end(offset)
        self.log_start_offset = min(self.log_start_offset, offset)
        self.epochs.truncate_from_end(offset)
        rebuild_producers(self.producers, self._segments, self.log_start_offset, offset, now_ms)
        return removed

    def truncate_fully_and_start_at(self, offset: int, log_start_offset: int | None = None) -> list[Segment]:
        """Drop everything and go on at `offset`."""
        removed = self._discard(self._segments)
        segment = Segment.create(self.directory, offset, self.config, self._files, self._clock.time_ms())
        self._segments.replace_all(segment)
        self._move_end(offset)
        self.log_start_offset = offset if log_start_offset is None else log_start_offset
        self.high_watermark = offset
        self.epochs.clear()
        self.producers.truncate_fully_and_start_at(offset)
        return removed

    def _move_end(self, offset: int) -> None:
        self.log_end_offset = offset
        self.recovery_point = min(self.recovery_point, offset)
        self._flushing_up_to = min(self._flushing_up_to, offset)
        self.high_watermark = min(self.high_watermark, offset)

    # -- Flushing and closing --------------------------------------------------------------------------------------

    @property
    def unflushed_messages(self) -> int:
        return self.log_end_offset - self.recovery_point

    def flush_plan(self, up_to_offset: int | None = None) -> FlushPlan | None:
        """What to call in a worker to make the log durable up to an offset (its end by default), then `flushed`.

        None when it is so already. One flush of a log at a time.
        """
        end = self.log_end_offset if up_to_offset is None else up_to_offset
        return self._plan_flush(end) if end > self.recovery_point else None

    def _plan_flush(self, end: int) -> FlushPlan:
        first = max(self._segments.floor_index(self.recovery_point), 0)
        unflushed = [segment for segment in self.segments[first:] if segment.base_offset < end]
        paths = [path for segment in unflushed for path in segment.paths]
        plan = FlushPlan(
            files=self._files,
            directory=self.directory,
            paths=[*paths, *self._unsynced_snapshots],
            write_epochs=self.epochs.pending_write(),
            up_to_offset=end,
        )
        self._unsynced_snapshots.clear()
        self._flushing_up_to = end
        return plan

    def flushed(self, up_to_offset: int) -> None:
        """A plan has done its work; what was truncated meanwhile does not count."""
        up_to_offset = min(up_to_offset, self._flushing_up_to)
        self.recovery_point = max(self.recovery_point, up_to_offset)
        self.last_flush_ms = self._clock.time_ms()

    def close(self, *, sync: bool = True) -> None:
        """Close cleanly: everything durable, indexes trimmed, producer state in a snapshot. Blocks.

        Without `sync` the caller makes the whole file system durable afterwards.
        """
        if self._failure is not None:
            return
        self._segments.active.finish()
        snapshot = self.producers.take_snapshot(self.log_end_offset, sync=False)
        if snapshot is not None:
            self._unsynced_snapshots.append(snapshot)
        if self._unsynced_snapshots or self.epochs.is_dirty or self.recovery_point < self.log_end_offset:
            plan = self._plan_flush(self.log_end_offset)
            self.flushed(plan() if sync else plan.write_only())
        self._stop("it is closed")

    def fail(self, reason: str) -> None:
        """Refuse everything from now on and let go of all files without writing: the disk is not to be trusted."""
        self._stop(reason)

    def _stop(self, reason: str) -> None:
        self._failure = reason
        self._reader.forget_positions()
        for segment in self._segments:
            segment.close_files()

    def rename_for_deletion(self, directory: str) -> None:
        """Move the whole log out of the way, to be removed later; it takes part in nothing any more."""
        self._stop("it is deleted")
        self._files.rename(self.directory, directory)
        self.directory = self.producers.directory = self.epochs.directory = directory
        for segment in self._segments:
            segment.move_to(directory)

    def check_invariants(self) -> None:
        """AssertionError when memory and files do not agree. Reads everything: for tests."""
        check_log(self)
