"""A log against a list of batches: whatever is done to it, it holds what the list holds."""

from __future__ import annotations

import os
import shutil
from itertools import pairwise
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.records.batch import iter_batches
from penstock.records.builder import read_records
from penstock.records.compression import Codec
from penstock.storage.log import Log
from penstock.storage.segments.segment import Segment
from tests.unit.storage.core.building import START_MS, ManualClock, append, open_log, reopen, small_segments


class ModelBatch(NamedTuple):
    base_offset: int
    timestamps: tuple[int, ...]
    value: bytes | None
    leader_epoch: int

    @property
    def end(self) -> int:
        return self.base_offset + len(self.timestamps)


class LogMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(mkdtemp(prefix="penstock-log-"))
        self.clock = ManualClock()
        self.config = small_segments(segment_bytes=600, retention_ms=1000)
        self.log = open_log(self.directory, config=self.config, clock=self.clock)
        self.batches: list[ModelBatch] = []
        self.start = 0
        self.end = 0
        self.epoch = 0
        self.flushed = 0
        self.removed: list[Segment] = []

    def teardown(self) -> None:
        self.log.fail("done")
        shutil.rmtree(self.directory)

    # -- What is done to it ----------------------------------------------------------------------------------------

    @rule(
        stamps=st.lists(st.integers(START_MS, START_MS + 50), min_size=1, max_size=4),
        length=st.integers(0, 60),
        codec=st.sampled_from([Codec.NONE, Codec.ZSTD]),
        commit=st.booleans(),
    )
    def append(self, stamps: list[int], length: int, codec: Codec, commit: bool) -> None:
        value = b"%d" % self.end + b"v" * length
        info = append(
            self.log, *[value] * len(stamps), timestamps=stamps, codec=codec, leader_epoch=self.epoch, now_ms=START_MS
        )
        assert (info.first_offset, info.last_offset) == (self.end, self.end + len(stamps) - 1)
        self.batches.append(ModelBatch(self.end, tuple(stamps), value, self.epoch))
        self.end += len(stamps)
        if commit:
            self.log.set_high_watermark(self.end)

    @rule()
    def new_leader(self) -> None:
        self.epoch += 1

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        plan = self.log.flush_plan()
        if plan is not None:
            self.log.flushed(plan())
        self.flushed = self.end

    @rule(back=st.integers(0, 12))
    def truncate(self, back: int) -> None:
        offset = max(self.end - back, 0)
        first = self.log.segments[0].base_offset
        self._take(self.log.truncate_to(offset))
        if offset >= self.end:
            return
        self.batches = [batch for batch in self.batches if batch.end <= offset] if offset >= first else []
        self.end = offset
        self.start = min(self.start, offset)
        self.flushed = min(self.flushed, offset)

    @rule(fraction=st.floats(0, 1))
    def delete_records(self, fraction: float) -> None:
        self.start = self.log.delete_records_before(int(self.log.high_watermark * fraction))

    @rule(elapsed_ms=st.integers(0, 1200))
    def retain(self, elapsed_ms: int) -> None:
        segments = self.log.segments
        now_ms = START_MS + elapsed_ms
        gone = self._take(self.log.delete_old_segments(now_ms))
        assert gone == segments[: len(gone)]
        if gone:
            after = self.log.segments[0].base_offset
            self.start = max(self.start, after)
            self.batches = [batch for batch in self.batches if batch.base_offset >= after]
        for segment, following in pairwise(self.log.segments):
            assert following.base_offset > self.start or following.base_offset > self.log.high_watermark
            too_old = now_ms - segment.largest_timestamp > 1000
            assert not too_old or following.base_offset > self.log.high_watermark
        self._check_start()

    @rule()
    def unlink_removed(self) -> None:
        for segment in self.removed:
            segment.remove_files()
        self.removed.clear()

    @rule()
    def restart(self) -> None:
        self._reopened(reopen(self.log, self.directory, clean=True, clock=self.clock))
        self.flushed = self.end

    @rule()
    def crash(self) -> None:
        self._reopened(reopen(self.log, self.directory, clean=False, clock=self.clock))

    @precondition(lambda self: self.end > self.flushed)
    @rule(fraction=st.floats(0, 1))
    def crash_and_lose_bytes(self, fraction: float) -> None:
        """The last segment ends at any byte that was not flushed."""
        active = self.log.segments[-1]
        safe = active.locate(max(self.flushed, active.base_offset))
        low = active.size if safe is None else safe[0]
        cut = low + int((active.size - low) * fraction)
        ends = dict(_batch_ends(active))
        self.log.fail("crashed")
        os.truncate(active.path, cut)
        lost = {base for base, end in ends.items() if end > cut}
        self.batches = [batch for batch in self.batches if batch.base_offset not in lost]
        self._reopened(reopen(self.log, self.directory, clean=False, clock=self.clock))

    # -- What must hold --------------------------------------------------------------------------------------------

    def _take(self, removed: list[Segment]) -> list[Segment]:
        self.removed += removed
        return removed

    def _reopened(self, log: Log) -> None:
        """A log that had been truncated inside a batch reopens after the last whole one, but not before its start."""
        self.log = log
        self.removed.clear()
        last = max(self.batches[-1].end if self.batches else 0, log.segments[-1].base_offset)
        if last < self.start:
            self.batches, last = [], self.start
        self.end = last
        self.flushed = min(self.flushed, self.end)
        self.log.set_high_watermark(self.end)
        self._check_start()

    def _check_start(self) -> None:
        self.start = max(self.start, self.log.segments[0].base_offset)

    @invariant()
    def ends_agree(self) -> None:
        self.log.check_invariants()
        assert (self.log.log_start_offset, self.log.log_end_offset) == (self.start, self.end)
        assert self.log.recovery_point <= self.end

    @rule(fraction=st.floats(0, 1), max_bytes=st.sampled_from([1, 150, 1 << 20]))
    def read(self, fraction: float, max_bytes: int) -> None:
        offset = self.start + int((self.end - self.start) * fraction)
        file_slice = self.log.read(offset, max_bytes, up_to_offset=self.end, min_one_batch=True)
        expected = [batch for batch in self.batches if batch.end > offset]
        if file_slice is None:
            assert not expected
            return
        data = file_slice.read()
        file_slice.release()
        assert len(data) == file_slice.length
        found = [
            ModelBatch(header.base_offset, tuple(r.timestamp for r in records), records[0].value, header.leader_epoch)
            for position, header in iter_batches(data)
            if (records := read_records(data, position, header))
        ]
        assert found
        assert found == expected[: len(found)]

    @rule(timestamp=st.integers(START_MS - 1, START_MS + 51))
    def look_up_timestamp(self, timestamp: int) -> None:
        expected = next(
            (
                (stamp, offset, batch.leader_epoch)
                for batch in self.batches
                for offset, stamp in enumerate(batch.timestamps, batch.base_offset)
                if stamp >= timestamp and offset >= self.start
            ),
            None,
        )
        assert self.log.offset_for_timestamp(timestamp) == expected

    @rule()
    def read_outside(self) -> None:
        for offset in (self.start - 1, self.end + 1):
            with pytest.raises(KafkaError) as caught:
                self.log.read(offset, 100, up_to_offset=self.end, min_one_batch=True)
            assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def _batch_ends(segment: Segment) -> list[tuple[int, int]]:
    data = segment.open_file().file.read_at(0, segment.size)
    return [(header.base_offset, position + header.size_in_bytes) for position, header in iter_batches(data)]


TestLogMachine = LogMachine.TestCase
TestLogMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
