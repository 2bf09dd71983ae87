"""Logs, batches and clocks for the tests of the storage core."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from penstock.base.ports import Files
from penstock.base.system import SystemFiles
from penstock.base.types import TopicPartition
from penstock.records.batch import iter_batches
from penstock.records.builder import ControlType, build_batch, end_transaction_marker, read_records
from penstock.records.compression import Codec
from penstock.records.record import DecodedRecord, Record
from penstock.records.validation import ValidatedBatch, trust_batch
from penstock.storage.config import LogConfig
from penstock.storage.log import AppendInfo, Log

TP = TopicPartition("orders", 3)
START_MS = 1_700_000_000_000


class ManualClock:
    def __init__(self, now_ms: int = START_MS) -> None:
        self.now_ms = now_ms

    def time_ms(self) -> int:
        return self.now_ms

    def monotonic(self) -> float:
        return self.now_ms / 1000


def open_log(
    directory: Path,
    *,
    files: Files | None = None,
    clock: ManualClock | None = None,
    config: LogConfig | None = None,
    **options: Any,
) -> Log:
    return Log.open(
        directory=str(directory / str(TP)),
        topic_partition=TP,
        topic_id=None,
        config=config or LogConfig(),
        files=files or SystemFiles(),
        clock=clock or ManualClock(),
        **options,
    )


def reopen(log: Log, directory: Path, *, clean: bool, **options: Any) -> Log:
    """Stop the log cleanly or as a crash does, and open it again."""
    options.setdefault("config", log.config)
    options.setdefault("recovery_point", log.recovery_point)
    options.setdefault("log_start_offset", log.log_start_offset)
    if clean:
        log.close()
    else:
        log.fail("crashed")
    return open_log(directory, clean=clean, **options)


def batch_of(
    values: Sequence[bytes], *, timestamps: int | Sequence[int] = START_MS, codec: Codec = Codec.NONE, **options: Any
) -> ValidatedBatch:
    stamps = [timestamps] * len(values) if isinstance(timestamps, int) else timestamps
    records = [Record(stamp, None, value) for stamp, value in zip(stamps, values, strict=True)]
    return trust_batch(bytearray(build_batch(records, codec=codec, **options)))


def append(log: Log, *values: bytes, leader_epoch: int = 0, now_ms: int = START_MS, **options: Any) -> AppendInfo:
    return log.append_as_leader(batch_of(values or (b"value",), **options), leader_epoch, now_ms)


def append_marker(log: Log, control_type: ControlType, *, producer_id: int, producer_epoch: int = 0) -> AppendInfo:
    marker = end_transaction_marker(
        control_type,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        coordinator_epoch=0,
        timestamp=START_MS,
    )
    return log.append_as_leader(trust_batch(bytearray(marker)), 0, START_MS)


def read_all(log: Log, offset: int | None = None, *, max_bytes: int = 1 << 20) -> list[DecodedRecord]:
    """Every record from `offset` on, as a consumer gets them: fetch after fetch, partial batches dropped."""
    records: list[DecodedRecord] = []
    position = log.log_start_offset if offset is None else offset
    while True:
        file_slice = log.read(position, max_bytes, up_to_offset=log.log_end_offset, min_one_batch=True)
        if file_slice is None:
            return records
        data = file_slice.read()
        assert file_slice.valid
        assert len(data) == file_slice.length
        file_slice.release()
        found = [record for at, header in iter_batches(data) for record in read_records(data, at, header)]
        assert found, "a slice has a whole batch"
        records += [record for record in found if record.offset >= position]
        position = found[-1].offset + 1


def offsets(records: Iterable[DecodedRecord]) -> list[int]:
    return [record.offset for record in records]


def small_segments(**options: Any) -> LogConfig:
    """Segments and index intervals of a few batches."""
    return LogConfig(**{"segment_bytes": 1000, "index_interval_bytes": 100, "segment_index_bytes": 4096, **options})


@contextmanager
def scratch_directory() -> Iterator[Path]:
    """A directory per example of a property, where `tmp_path` would be one for all of them."""
    with TemporaryDirectory() as directory:
        yield Path(directory)
