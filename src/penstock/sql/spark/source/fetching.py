"""What a task does: fetch its ranges as Arrow, exactly and completely, or say what is missing."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence

import numpy
import pyarrow as pa

from penstock import Consumer, OffsetOutOfRange, TopicPartition, UnknownTopicOrPartition
from penstock.sql.spark.source.clients import CONSUMERS
from penstock.sql.spark.source.errors import LOSS_REMEDY, DataLossError, SourceError
from penstock.sql.spark.source.options import ReadOptions
from penstock.sql.spark.source.ranges import OffsetRange

log = logging.getLogger(__name__)

_POLL_MS = 1_000
_SETTLING_S = 5.0
"""A new leader may know for a moment less of its partition than was told to the planner."""


def read_ranges(ranges: Sequence[OffsetRange], options: ReadOptions, *, headers: bool) -> Iterator[pa.RecordBatch]:
    """Record batches as `Consumer.consume_arrow` gives them, with the records of the ranges and no others."""
    with CONSUMERS.lent(options.reading_client()) as consumer:
        reading = _Reading(consumer, ranges, options, headers)
        try:
            yield from reading.batches()
        finally:
            if not consumer.is_closed:
                consumer.assign([])


class _Reading:
    def __init__(self, consumer: Consumer, ranges: Sequence[OffsetRange], options: ReadOptions, headers: bool) -> None:
        self._consumer = consumer
        self._options = options
        self._headers = headers
        self._left = {each.partition: each for each in ranges}

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._consumer.assign(list(self._left))
        for each in self._left.values():
            self._consumer.seek(each.partition, each.start)
        moved_at = time.monotonic()
        while self._left:
            try:
                batch = self._consumer.consume_arrow(_POLL_MS, headers=self._headers)
            except OffsetOutOfRange:
                self._look_for_loss(cut_short=False)
                continue
            except UnknownTopicOrPartition as error:
                raise _topic_gone(self._left) from error
            wanted = self._wanted(batch)
            if wanted.num_rows:
                yield wanted
            silent_s = time.monotonic() - moved_at
            if self._advanced() or batch.num_rows:
                moved_at = time.monotonic()
            elif silent_s > self._options.poll_timeout_s:
                self._give_up()
            elif silent_s > _SETTLING_S:
                self._look_for_loss(cut_short=True)

    def _wanted(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Without what lies behind the ends."""
        if not batch.num_rows:
            return batch
        offsets = batch.column("offset").to_numpy()
        if len(self._left) == 1:
            (only,) = self._left.values()
            return batch if offsets[-1] < only.end else batch.slice(0, int(numpy.searchsorted(offsets, only.end)))
        names = batch.column("topic").dictionary.to_pylist()
        topics = batch.column("topic").indices.to_numpy()
        numbers = batch.column("partition").to_numpy()
        kept = numpy.zeros(batch.num_rows, dtype=bool)
        for each in self._left.values():
            if each.partition.topic in names:
                topic = names.index(each.partition.topic)
                kept |= (topics == topic) & (numbers == each.partition.partition) & (offsets < each.end)
        return batch.filter(pa.array(kept))

    def _advanced(self) -> bool:
        """Whether some range is done; its partition is fetched no further."""
        done = [tp for tp, each in self._left.items() if self._consumer.position(tp) >= each.end]
        for partition in done:
            del self._left[partition]
        if done and self._left:
            self._consumer.pause(done)
        return bool(done)

    def _look_for_loss(self, *, cut_short: bool) -> None:
        """Stop with what is missing, or go on behind it if the user said so.

        A position outside the log is a loss, and where `cut_short` asks for it, so is an end before that of the range.
        """
        partitions = list(self._left)
        begins = self._consumer.beginning_offsets(partitions)
        ends = self._consumer.end_offsets(partitions)
        for partition in partitions:
            wanted, begin, end = self._left[partition], begins[partition], ends[partition]
            position = self._consumer.position(partition)
            is_behind, is_beyond = position < begin, position > end or (cut_short and end < wanted.end)
            if not is_behind and not is_beyond:
                continue
            error = lost_error(wanted, position, begin, end)
            if self._options.fail_on_data_loss:
                raise error
            log.warning("%s", error)
            if is_behind and begin < wanted.end:
                self._consumer.seek(partition, begin)
            else:
                del self._left[partition]
                self._consumer.pause([partition])

    def _give_up(self) -> None:
        named = "; ".join(map(str, self._left.values()))
        raise SourceError(
            f"No record came for {self._options.poll_timeout_s:.0f} s ({named}): see whether the broker can be "
            f"reached from here, or raise kafkaConsumer.pollTimeoutMs."
        )


def lost_error(wanted: OffsetRange, position: int, begin: int, end: int) -> DataLossError:
    if position >= begin:
        return DataLossError(
            f"Records of {wanted.partition} are missing: it was to be read up to offset {wanted.end}, but ends at "
            f"{end}. The topic was made anew, or its log was cut. {LOSS_REMEDY}"
        )
    return DataLossError(
        f"Records of {wanted.partition} are missing: offsets {position} to {min(begin, wanted.end) - 1} were deleted "
        f"(retention) before they were read; the partition begins at {begin} now. {LOSS_REMEDY}"
    )


def _topic_gone(left: dict[TopicPartition, OffsetRange]) -> DataLossError:
    topics = ", ".join(sorted({partition.topic for partition in left}))
    return DataLossError(f"The topic {topics} does not exist any more: it was deleted while it was read. {LOSS_REMEDY}")
