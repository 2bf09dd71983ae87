"""Bringing a shard up from its log: chunks are read and decoded in a worker, and replayed on the loop in slices.

Nothing is skipped: records of a transaction are replayed with their producer, and the marker that follows tells the
shard to keep or drop them. What lies above the high watermark is replayed too, as uncommitted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from penstock.base.ports import Clock, Tasks
from penstock.coordinator.records.errors import UnknownRecordTypeError
from penstock.coordinator.runtime.log import CoordinatorLog, LogChunk
from penstock.coordinator.runtime.shard import CoordinatorShard
from penstock.coordinator.runtime.timeline import NOT_REPLAYING, Timeline
from penstock.records.batch import BatchHeader, iter_batches
from penstock.records.builder import ControlType, read_end_transaction_marker, read_records
from penstock.records.record import DecodedRecord

RECORDS_PER_SLICE_MAX: Final = 500
"""Replayed at a time before the loop gets to do something else: a few milliseconds."""
PROGRESS_INTERVAL_S: Final = 5.0
NO_PRODUCER_ID: Final = -1

log = logging.getLogger(__name__)


class LoadedBatch(NamedTuple):
    header: BatchHeader
    records: list[DecodedRecord]
    committed: bool | None
    """For a control batch: whether its transaction was committed. None: not a transaction's end."""


class LoadSummary(NamedTuple):
    records: int
    bytes: int
    seconds: float
    end_offset: int


class LoadAbandonedError(Exception):
    """The shard was closed while it loaded."""


def decode_batches(data: bytes) -> list[LoadedBatch]:
    """All whole batches. Runs in a worker."""
    batches = []
    for position, header in iter_batches(data):
        if header.is_control:
            marker = read_end_transaction_marker(data, position, header)
            committed = None if marker is None else marker.type is ControlType.COMMIT
            batches.append(LoadedBatch(header, [], committed))
        else:
            batches.append(LoadedBatch(header, read_records(data, position, header), None))
    return batches


class Loader:
    """Loads one shard once."""

    def __init__(
        self,
        name: str,
        partition: int,
        source: CoordinatorLog,
        shard: CoordinatorShard,
        timeline: Timeline,
        *,
        clock: Clock,
        tasks: Tasks,
        is_wanted: Callable[[], bool],
    ) -> None:
        self._name = name
        self._partition = partition
        self._source = source
        self._shard = shard
        self._timeline = timeline
        self._clock = clock
        self._tasks = tasks
        self._is_wanted = is_wanted
        self._in_slice = 0
        self._records = 0
        self._bytes = 0
        self._unknown_types: set[int] = set()

    async def run(self) -> LoadSummary:
        started = reported = self._clock.monotonic()
        offset = self._source.start_offset(self._partition)
        while (chunk := self._source.open_chunk(self._partition, offset)) is not None:
            batches = await self._read(chunk)
            if not batches:
                break
            for batch in batches:
                # A chunk begins with the whole batch that holds the asked offset, which may begin before it.
                if batch.header.next_offset > offset:
                    await self._replay(batch, offset)
            offset = batches[-1].header.next_offset
            now = self._clock.monotonic()
            if now - reported >= PROGRESS_INTERVAL_S:
                reported = now
                end = self._source.end_offset(self._partition)
                log.info("loading %s: at offset %d of %d, %d record(s)", self._name, offset, end, self._records)
        return LoadSummary(self._records, self._bytes, self._clock.monotonic() - started, offset)

    async def _read(self, chunk: LogChunk) -> list[LoadedBatch]:
        try:
            size, batches = await self._tasks.run_blocking(lambda: _read_and_decode(chunk))
        finally:
            chunk.release()
        self._check_wanted()
        self._bytes += size
        return batches

    async def _replay(self, batch: LoadedBatch, from_offset: int) -> None:
        header = batch.header
        if batch.committed is not None:
            self._timeline.now = header.base_offset
            try:
                self._shard.replay_end_transaction(header.producer_id, header.producer_epoch, batch.committed)
            finally:
                self._timeline.now = NOT_REPLAYING
        producer_id, producer_epoch = NO_PRODUCER_ID, -1
        if header.is_transactional:
            producer_id, producer_epoch = header.producer_id, header.producer_epoch
        for record in batch.records:
            if record.offset >= from_offset:
                self._replay_record(record, producer_id, producer_epoch)
                await self._maybe_pause()

    def _replay_record(self, record: DecodedRecord, producer_id: int, producer_epoch: int) -> None:
        self._records += 1
        self._timeline.now = record.offset
        try:
            if record.key is None:
                raise ValueError(f"the record at offset {record.offset} has no key")
            self._shard.replay(record.offset, producer_id, producer_epoch, record.key, record.value)
        except UnknownRecordTypeError as error:
            if error.record_type not in self._unknown_types:
                self._unknown_types.add(error.record_type)
                log.warning(
                    "%s has records of the unknown type %d, which are skipped; a newer or another broker wrote them",
                    self._name,
                    error.record_type,
                )
        finally:
            self._timeline.now = NOT_REPLAYING

    async def _maybe_pause(self) -> None:
        self._in_slice += 1
        if self._in_slice < RECORDS_PER_SLICE_MAX:
            return
        self._in_slice = 0
        turn = self._tasks.future()
        self._tasks.call_soon(lambda: None if turn.done() else turn.set_result(None))
        await turn
        self._check_wanted()

    def _check_wanted(self) -> None:
        if not self._is_wanted():
            raise LoadAbandonedError


def _read_and_decode(chunk: LogChunk) -> tuple[int, list[LoadedBatch]]:
    data = chunk.read()
    return len(data), decode_batches(data)
