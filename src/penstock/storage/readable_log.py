"""The state of a partition's log, and everything that only reads it.

Offsets, from low to high: `log_start_offset` (records before it are gone or going), `last_stable_offset` (end of what
readers of committed records see), `high_watermark` (end of what readers see; the partition sets it), `log_end_offset`
(the next record's). `recovery_point` is the end of what is known to be on disk.
"""

from __future__ import annotations

from typing import NoReturn
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import OffsetAndEpoch
from penstock.records.batch import NO_TIMESTAMP
from penstock.storage.leader_epochs import UNDEFINED_OFFSET
from penstock.storage.reader import Reader
from penstock.storage.recovery.loader import LoadedLog
from penstock.storage.segments.segment import Segment
from penstock.storage.segments.slices import FileSlice
from penstock.storage.segments.transaction_index import AbortedTransaction
from penstock.storage.timestamps import FoundOffset, find_by_timestamp, find_max_timestamp


class ReadableLog:
    __slots__ = (
        "_clock",
        "_failure",
        "_files",
        "_reader",
        "_segments",
        "config",
        "directory",
        "epochs",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "producers",
        "recovery_point",
        "topic_id",
        "topic_partition",
    )

    def __init__(self, loaded: LoadedLog, *, topic_id: UUID | None) -> None:
        place = loaded.place
        self.directory = place.directory
        self.topic_partition = place.topic_partition
        self.topic_id = topic_id
        self.config = place.config
        self.producers = loaded.producers
        self.epochs = loaded.epochs
        self.log_start_offset = loaded.log_start_offset
        self.log_end_offset = loaded.log_end_offset
        self.high_watermark = loaded.log_start_offset
        self.recovery_point = loaded.recovery_point
        self._files = place.files
        self._clock = place.clock
        self._segments = loaded.segments
        self._reader = Reader(loaded.segments)
        self._failure: str | None = None
        """Why nothing is possible any more: the disk failed, or the log was closed or deleted."""

    # -- What it is ------------------------------------------------------------------------------------------------

    @property
    def segments(self) -> list[Segment]:
        return list(self._segments)

    @property
    def size_bytes(self) -> int:
        return self._segments.size_bytes

    @property
    def active_base_offset(self) -> int:
        return self._segments.active.base_offset

    @property
    def last_stable_offset(self) -> int:
        unstable = self.producers.first_unstable_offset
        if unstable is None or unstable >= self.high_watermark:
            return self.high_watermark
        return max(unstable, self.log_start_offset)

    @property
    def latest_epoch(self) -> int | None:
        return self.epochs.latest_epoch

    def end_offset_for_epoch(self, epoch: int) -> OffsetAndEpoch | None:
        found, end_offset = self.epochs.end_offset_for(epoch, self.log_end_offset)
        return None if end_offset == UNDEFINED_OFFSET else OffsetAndEpoch(end_offset, found)

    def _refuse(self) -> NoReturn:
        raise KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"The log of {self.topic_partition} is not available: {self._failure}"
        )

    # -- Reads -----------------------------------------------------------------------------------------------------

    def read(self, offset: int, max_bytes: int, *, up_to_offset: int, min_one_batch: bool) -> FileSlice | None:
        """The bytes from the batch with `offset` on, below `up_to_offset`; the last batch may be cut by `max_bytes`.

        The first batch is whole: if it is larger than `max_bytes` it is returned nevertheless with `min_one_batch`,
        and nothing is without. None: there is nothing to return.
        """
        end = self.log_end_offset
        if offset < self.log_start_offset or offset > end:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Offset {offset} of {self.topic_partition} is not in the log, which goes from"
                f" {self.log_start_offset} to {end}.",
            )
        if self._failure is not None:
            self._refuse()
        if up_to_offset > end:
            up_to_offset = end
        if offset >= up_to_offset:
            return None
        try:
            return self._reader.read(offset, max_bytes, up_to_offset, end, min_one_batch)
        except OSError as error:
            raise self._read_failed(error) from error

    def _read_failed(self, error: OSError) -> KafkaError:
        return KafkaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"Reading {self.topic_partition} in {self.directory} failed: {error}"
        )

    def upper_bound_offset(self, file_slice: FileSlice) -> int:
        """An offset above every one in the slice: the `end` to ask `aborted_transactions` with."""
        return self._reader.upper_bound_offset(file_slice, self.log_end_offset)

    def aborted_transactions(self, start: int, end: int) -> list[AbortedTransaction]:
        """The aborted transactions with records in [start, end)."""
        return self._reader.aborted_transactions(start, end)

    def offset_for_timestamp(self, timestamp: int) -> FoundOffset | None:
        """The first record whose timestamp is `timestamp` or later."""
        try:
            return find_by_timestamp(self._segments, timestamp, self.log_start_offset)
        except OSError as error:
            raise self._read_failed(error) from error

    def offset_of_max_timestamp(self) -> FoundOffset | None:
        try:
            return find_max_timestamp(self._segments)
        except OSError as error:
            raise self._read_failed(error) from error

    def earliest(self) -> FoundOffset:
        """The start of the log, with its epoch if that is known."""
        entry = self.epochs.earliest_entry
        epoch = entry.epoch if entry is not None and entry.start_offset <= self.log_start_offset else -1
        return FoundOffset(NO_TIMESTAMP, self.log_start_offset, epoch)

    def latest(self, up_to_offset: int) -> FoundOffset:
        """The end of the log as far as a reader sees it (`up_to_offset`), with the latest epoch."""
        epoch = self.epochs.latest_epoch
        return FoundOffset(NO_TIMESTAMP, up_to_offset, -1 if epoch is None else epoch)
