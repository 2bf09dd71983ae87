"""The records that one answer brought for one partition: opened batch by batch, when they are wanted.

Nothing is copied before that; a batch stays a range of the frame that it arrived in. `take` gives lists of records:
whole decoded batches or slices of them. `fill` makes columns of them, where it can of many batches in one go.

Always true: the records that were given are those before `next_offset`, and `last_epoch` is the leader epoch of the
batch before it. What is damaged raises when it is reached, not before: the records in front of it are given first.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Final, NamedTuple

from crc32c import crc32c

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.consumer.fetching.aborted import AbortedFilter
from penstock.client.errors import error_for
from penstock.network.in_flight import Frame
from penstock.records.batch import (
    CODEC_MASK,
    CONTROL_MASK,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    TRANSACTIONAL_MASK,
    BatchHeader,
    crc_is_valid,
    read_header,
)
from penstock.records.buffers import Buffer
from penstock.records.builder import open_records
from penstock.records.errors import InvalidRecords
from penstock.records.kernel import ColumnFiller, decode_consumer_records
from penstock.records.record import ConsumerRecord

_LENGTH: Final = struct.Struct(">i")
_LAST_DELTA: Final = struct.Struct(">i")
_BASE: Final = struct.Struct(">q")
_OPENED_BYTES_MAX: Final = 1 << 30
_SPECIAL_MASK: Final = CODEC_MASK | CONTROL_MASK
"""Attributes of batches that a filler cannot read by itself."""

Convert = Callable[[list[ConsumerRecord]], tuple[list[ConsumerRecord], Exception | None]]
"""Records as fetched to records as the user wants them: those up to the first that fails, and why it does."""


class PlainBatch(NamedTuple):
    """An opened batch: its records are `buffer[start:end]`; those below `from_offset` do not count."""

    header: BatchHeader
    buffer: Buffer
    start: int
    end: int
    from_offset: int


def next_offset_behind(frame: Frame, start: int, end: int) -> int | None:
    """The offset behind the last whole batch in the range; None when there is no whole batch."""
    position, last = start, -1
    while end - position >= HEADER_SIZE:
        size: int = _LENGTH.unpack_from(frame, position + 8)[0] + LOG_OVERHEAD
        if size < HEADER_SIZE or size > end - position:
            break
        last = position
        position += size
    if last < 0:
        return None
    base: int = _BASE.unpack_from(frame, last)[0]
    delta: int = _LAST_DELTA.unpack_from(frame, last + 23)[0]
    return base + delta + 1


class PartitionFetch:
    __slots__ = (
        "_check_crcs",
        "_end",
        "_filter",
        "_frame",
        "_pending",
        "_pending_at",
        "_pending_epoch",
        "_pending_next",
        "_pending_position",
        "_position",
        "last_epoch",
        "next_offset",
        "partition",
    )

    def __init__(
        self,
        partition: TopicPartition,
        frame: Frame,
        start: int,
        end: int,
        *,
        offset: int,
        epoch: int,
        aborted: AbortedFilter | None,
        check_crcs: bool,
    ) -> None:
        self.partition = partition
        self.next_offset = offset
        self.last_epoch = epoch
        self._frame = frame
        self._position = start
        self._end = end
        self._filter = aborted
        self._check_crcs = check_crcs
        self._pending: list[ConsumerRecord] = []
        """Decoded records of the batch before `_position`, of which those from `_pending_at` on were not given."""
        self._pending_at = 0
        self._pending_next = offset
        self._pending_epoch = epoch
        self._pending_position = start

    @property
    def is_drained(self) -> bool:
        return self._end - self._position < HEADER_SIZE and self._pending_at >= len(self._pending)

    @property
    def bytes_left(self) -> int:
        return self._end - self._position

    def take(self, count: int, convert: Convert | None = None) -> list[ConsumerRecord]:
        """Up to `count` records, one batch at most. Empty when there are no more."""
        pending, at = self._pending, self._pending_at
        if at >= len(pending):
            if not self._decode_next():
                return []
            pending, at = self._pending, 0
        taken = pending[at : at + count]
        if convert is not None:
            taken = self._converted(taken, convert)
        self._taken(at + len(taken))
        return taken

    def fill(self, filler: ColumnFiller, topic: int) -> None:
        """Give records to the filler until it is full or there are no more; `topic` is the topic's number there."""
        if self._pending_at < len(self._pending):
            # A batch was begun record by record: it is opened again, for the records that are left of it.
            self._position = self._pending_position
            self._pending = []
            self._pending_at = 0
        while not filler.full:
            self._fill_run(filler, topic)
            if filler.full or (opened := self._open_next()) is None:
                return
            self._fill_opened(filler, topic, opened)

    # Inside.

    def _fill_run(self, filler: ColumnFiller, topic: int) -> None:
        """All batches up to the first that needs a closer look."""
        special = _SPECIAL_MASK if self._filter is None else _SPECIAL_MASK | TRANSACTIONAL_MASK
        self._position, next_offset = filler.fill_run(
            self._frame, self._position, self._end, special, crc32c if self._check_crcs else None,
            topic, self.partition.partition, self.next_offset,
        )  # fmt: skip
        if next_offset > self.next_offset:
            self.next_offset = next_offset
            self.last_epoch = filler.leader_epoch

    def _fill_opened(self, filler: ColumnFiller, topic: int, opened: PlainBatch) -> None:
        header = opened.header
        rows = filler.rows
        try:
            filler.fill(
                opened.buffer, opened.start, opened.end, header.count, header.base_offset, header.base_timestamp,
                header.append_time, topic, self.partition.partition, opened.from_offset,
            )  # fmt: skip
        except InvalidRecords as error:
            raise self._damaged(header.base_offset, str(error)) from error
        if not filler.full:
            self._skip(header)
        elif filler.rows > rows:
            self.next_offset = filler.next_offset
            self.last_epoch = header.leader_epoch
            if filler.next_offset > header.last_offset:
                self._step_over(header)

    def _converted(self, taken: list[ConsumerRecord], convert: Convert) -> list[ConsumerRecord]:
        converted, error = convert(taken)
        if error is not None and not converted:
            raise error
        return converted

    def _taken(self, at: int) -> None:
        pending = self._pending
        self.last_epoch = self._pending_epoch
        if at >= len(pending):
            self._pending = []
            self._pending_at = 0
            self.next_offset = self._pending_next
        else:
            self._pending_at = at
            self.next_offset = pending[at - 1].offset + 1

    def _decode_next(self) -> bool:
        """Open and decode the next batch that has records to give."""
        while (opened := self._open_next()) is not None:
            header = opened.header
            topic, partition = self.partition
            try:
                records = decode_consumer_records(
                    opened.buffer, opened.start, opened.end, header.count, header.base_offset, header.base_timestamp,
                    header.append_time, topic, partition, header.leader_epoch, opened.from_offset,
                )  # fmt: skip
            except (InvalidRecords, KafkaError) as error:
                raise self._damaged(header.base_offset, str(error)) from error
            if records:
                self._pending = records
                self._pending_at = 0
                self._pending_next = header.next_offset
                self._pending_epoch = header.leader_epoch
                self._pending_position = self._position
                self._step_over(header)
                return True
            self._skip(header)
        return False

    def _open_next(self) -> PlainBatch | None:
        """The next batch whose records count. The position stays before it: it may turn out to be damaged."""
        while self._end - self._position >= HEADER_SIZE:
            header = read_header(self._frame, self._position)
            size = header.length + LOG_OVERHEAD
            if size > self._end - self._position and size >= HEADER_SIZE:
                # The broker cuts off where the fetch size is reached.
                self._position = self._end
                return None
            self._check(header, size)
            if header.last_offset < self.next_offset or self._is_skipped(header):
                self._skip(header)
                continue
            try:
                buffer, start, end = open_records(self._frame, self._position, header, _OPENED_BYTES_MAX)
            except KafkaError as error:
                raise self._damaged(header.base_offset, error.message) from error
            return PlainBatch(header, buffer, start, end, self.next_offset)
        return None

    def _is_skipped(self, header: BatchHeader) -> bool:
        if header.attributes & CONTROL_MASK:
            if self._filter is not None:
                self._filter.saw_control(self._frame, self._position, header)
            return True
        return self._filter is not None and header.attributes & TRANSACTIONAL_MASK != 0 and self._filter.skips(header)

    def _skip(self, header: BatchHeader) -> None:
        """Nothing in it is for the user, so whatever is before its end counts as given."""
        self._step_over(header)
        if header.next_offset > self.next_offset:
            self.next_offset = header.next_offset
            self.last_epoch = header.leader_epoch

    def _step_over(self, header: BatchHeader) -> None:
        self._position += header.length + LOG_OVERHEAD

    def _check(self, header: BatchHeader, size: int) -> None:
        if size < HEADER_SIZE or header.magic != MAGIC:
            raise self._damaged(
                header.base_offset, f"no record batch of format 2 (length {header.length}, magic {header.magic})"
            )
        if self._check_crcs and not crc_is_valid(self._frame, self._position, size):
            raise self._damaged(header.base_offset, "its checksum does not hold")

    def _damaged(self, offset: int, why: str) -> KafkaError:
        return error_for(
            ErrorCode.CORRUPT_MESSAGE,
            f"The batch at offset {offset} of {self.partition} is damaged: {why}. It will be fetched again; "
            f"if that does not help, seek past it.",
        )
