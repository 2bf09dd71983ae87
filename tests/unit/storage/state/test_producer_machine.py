"""Producer state against a model that replays a list of batches, through restarts, truncations and expiry.

The model knows nothing of caches or files: it has the whole log, and computes what must be remembered from it.
"""

from __future__ import annotations

import copy
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.system import SystemClock, SystemFiles
from penstock.base.types import TopicPartition
from penstock.records.batch import CONTROL_MASK, TRANSACTIONAL_MASK, BatchHeader
from penstock.storage.producers.state import ProducerStateManager

TP = TopicPartition("orders", 0)
START_MS = 1_700_000_000_000
EXPIRATION_MS = 1000
MODULUS = 2**31


@dataclass
class ModelProducer:
    epoch: int
    batches: list[tuple[int, int, int]] = field(default_factory=list)
    """(first sequence, last sequence, first offset), oldest first, at most five."""
    timestamp: int = -1
    open_since: int | None = None


@dataclass(frozen=True)
class Entry:
    header: BatchHeader
    offset: int
    timestamp: int
    is_marker: bool

    @property
    def next_offset(self) -> int:
        return self.offset + self.header.last_offset_delta + 1


Model = dict[int, ModelProducer]


def model_apply(model: Model, entry: Entry) -> None:
    header = entry.header
    producer = model.setdefault(header.producer_id, ModelProducer(header.producer_epoch))
    if producer.epoch != header.producer_epoch:
        producer.epoch, producer.batches = header.producer_epoch, []
    producer.timestamp = entry.timestamp
    if entry.is_marker:
        producer.open_since = None
        return
    first = header.base_sequence
    last = (first + header.last_offset_delta) % MODULUS
    producer.batches = [*producer.batches, (first, last, entry.offset)][-5:]
    if header.is_transactional and producer.open_since is None:
        producer.open_since = entry.offset


def model_snapshot(model: Model) -> Model:
    frozen = copy.deepcopy(model)
    for producer in frozen.values():
        producer.batches = producer.batches[-1:]
    return frozen


def model_expire(model: Model, now_ms: int) -> None:
    for producer_id, producer in list(model.items()):
        if producer.open_since is None and now_ms - producer.timestamp >= EXPIRATION_MS:
            del model[producer_id]


def model_verdict(model: Model, header: BatchHeader) -> int | ErrorCode | None:
    """An offset for a duplicate, an error, or None for acceptance."""
    producer = model.get(header.producer_id)
    if producer is None:
        return None
    last = (header.base_sequence + header.last_offset_delta) % MODULUS
    if header.producer_epoch == producer.epoch:
        for known in producer.batches:
            if known[:2] == (header.base_sequence, last):
                return known[2]
    if header.producer_epoch < producer.epoch:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    follows = producer.batches[-1][1] if producer.batches and header.producer_epoch == producer.epoch else -1
    if header.base_sequence != (follows + 1) % MODULUS:
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    if producer.open_since is not None and not header.is_transactional:
        return ErrorCode.INVALID_TXN_STATE
    return None


class ProducerStateMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp(prefix="producers"))
        self.now_ms = START_MS
        self.log: list[Entry] = []
        self.model: Model = {}
        self.snapshots: dict[int, Model] = {}
        self.high_watermark = 0
        self.completed: list[tuple[int, int]] = []
        self.state = self.open()

    def open(self) -> ProducerStateManager:
        return ProducerStateManager(TP, str(self.directory), SystemFiles(), SystemClock(), expiration_ms=EXPIRATION_MS)

    def teardown(self) -> None:
        shutil.rmtree(self.directory)

    @property
    def end(self) -> int:
        return self.log[-1].next_offset if self.log else 0

    @rule(
        producer_id=st.integers(1, 3),
        choice=st.sampled_from(["next", "repeat", "gap", "zero", "edge"]),
        back=st.integers(1, 7),
        epoch_step=st.sampled_from([0, 0, 0, 0, 1, -1]),
        count=st.integers(1, 3),
        transactional=st.booleans(),
    )
    def produce(
        self, producer_id: int, choice: str, back: int, epoch_step: int, count: int, transactional: bool
    ) -> None:
        producer = self.model.get(producer_id)
        epoch = max(0, (producer.epoch if producer else 0) + epoch_step)
        following = (producer.batches[-1][1] + 1) % MODULUS if producer and producer.batches else 0
        sequence = {"next": following, "gap": (following + back) % MODULUS, "zero": 0, "edge": MODULUS - 2}.get(choice)
        mine = [e.header for e in self.log if e.header.producer_id == producer_id and not e.is_marker]
        attributes = TRANSACTIONAL_MASK if transactional else 0
        if sequence is None:
            if not mine:
                return
            header = mine[-min(back, len(mine))]
        else:
            header = BatchHeader(
                0, 49, 0, 2, 0, attributes, count - 1, self.now_ms, self.now_ms, producer_id, epoch, sequence, count
            )
        expected = model_verdict(self.model, header)
        assert self.verdict(header) == expected
        if expected is not None:
            return
        entry = Entry(header, self.end, self.now_ms, is_marker=False)
        self.log.append(entry)
        model_apply(self.model, entry)
        self.state.update(header, entry.offset, entry.next_offset - 1, self.now_ms)

    @rule(producer_id=st.integers(1, 3), batches=st.integers(3, 7), count=st.integers(1, 3))
    def produce_in_order(self, producer_id: int, batches: int, count: int) -> None:
        """A run of good batches, each of the newest ones then sent again: random choices alone rarely get that far."""
        producer = self.model.get(producer_id)
        transactional = producer is not None and producer.open_since is not None
        for _ in range(batches):
            self.produce(producer_id, "next", 1, 0, count, transactional)
        for back in range(1, 8):
            self.produce(producer_id, "repeat", back, 0, count, transactional)

    def verdict(self, header: BatchHeader) -> int | ErrorCode | None:
        try:
            duplicate = self.state.check(header, self.now_ms)
        except KafkaError as error:
            return error.code
        return None if duplicate is None else duplicate.first_offset

    @rule(producer_id=st.integers(1, 3), aborted=st.booleans(), epoch_step=st.integers(0, 1))
    def end_transaction(self, producer_id: int, aborted: bool, epoch_step: int) -> None:
        producer = self.model.get(producer_id)
        epoch = (producer.epoch if producer else 0) + epoch_step
        attributes = TRANSACTIONAL_MASK | CONTROL_MASK
        header = BatchHeader(0, 49, 0, 2, 0, attributes, 0, self.now_ms, self.now_ms, producer_id, epoch, -1, 1)
        opened = producer.open_since if producer else None
        self.state.check_control(header, 0)
        entry = Entry(header, self.end, self.now_ms, is_marker=True)
        completed = self.follow_marker(self.state, entry, aborted=aborted)
        self.log.append(entry)
        model_apply(self.model, entry)
        assert (completed is None) == (opened is None)
        if opened is not None:
            assert completed == opened
            self.completed.append((opened, entry.offset))

    def follow_marker(self, state: ProducerStateManager, entry: Entry, *, aborted: bool = False) -> int | None:
        completed = state.update_control(
            entry.header, entry.offset, entry.timestamp, coordinator_epoch=0, is_aborted=aborted
        )
        if completed is None:
            return None
        others = [e.current_txn_first_offset for e in state.producers.values() if e.current_txn_first_offset >= 0]
        assert state.last_stable_offset(completed) == min(others, default=entry.offset + 1)
        assert completed.is_aborted == aborted
        state.complete(completed)
        return completed.first_offset

    @rule(data=st.data())
    @precondition(lambda self: self.log)
    def advance_high_watermark(self, data: st.DataObject) -> None:
        # Boundaries of batches, so that it also stops just before a marker.
        ahead = [e.offset for e in self.log if e.offset >= self.high_watermark]
        self.high_watermark = data.draw(st.sampled_from([*ahead, self.end]))
        self.state.on_high_watermark_updated(self.high_watermark)
        self.completed = [pair for pair in self.completed if pair[1] >= self.high_watermark]

    @rule(sync=st.booleans())
    def snapshot(self, sync: bool) -> None:
        if self.state.take_snapshot(sync=sync) is not None:
            self.snapshots[self.end] = model_snapshot(self.model)

    @rule(elapsed_ms=st.integers(1, 400))
    def wait(self, elapsed_ms: int) -> None:
        self.now_ms += elapsed_ms
        self.state.remove_expired(self.now_ms)
        model_expire(self.model, self.now_ms)

    @rule()
    def restart(self) -> None:
        self.state = self.open()
        self.reload(self.end)

    @rule(data=st.data())
    @precondition(lambda self: self.log)
    def truncate(self, data: st.DataObject) -> None:
        keep = data.draw(st.integers(0, len(self.log) - 1))
        self.log = self.log[:keep]
        self.high_watermark = min(self.high_watermark, self.end)
        self.reload(self.end)

    @rule(data=st.data())
    @precondition(lambda self: self.snapshots)
    def corrupt_and_restart(self, data: st.DataObject) -> None:
        offset = data.draw(st.sampled_from(sorted(self.snapshots)))
        path = Path(self.state.snapshot_path(offset))
        content = bytearray(path.read_bytes())
        content[data.draw(st.integers(0, len(content) - 1))] ^= 0xFF
        path.write_bytes(content)
        self.state = self.open()
        self.reload(self.end, {offset})

    def reload(self, end: int, unusable: frozenset[int] | set[int] = frozenset()) -> None:
        """Load and replay as a log does after opening or truncation, in the code and in the model."""
        needs_load = self.state.map_end_offset != end
        self.state.truncate_and_reload(0, end, self.now_ms)
        self.snapshots = {offset: model for offset, model in self.snapshots.items() if 0 < offset <= end}
        if not needs_load:
            return
        # A damaged file is only noticed, and only then removed, when it is the newest.
        while self.snapshots and max(self.snapshots) in unusable:
            del self.snapshots[max(self.snapshots)]
        start = max(self.snapshots, default=0)
        for offset in unusable & set(self.snapshots):
            del self.snapshots[offset]
            Path(self.state.snapshot_path(offset)).unlink()
            self.state.reload_snapshots()
        self.model = copy.deepcopy(self.snapshots.get(start, {}))
        model_expire(self.model, self.now_ms)
        assert self.state.map_end_offset == start
        self.completed = []
        for entry in self.log:
            if entry.offset >= start:
                self.replay(entry)
        self.state.map_end_offset = end

    def replay(self, entry: Entry) -> None:
        producer = self.model.get(entry.header.producer_id)
        opened = producer.open_since if producer else None
        model_apply(self.model, entry)
        if not entry.is_marker:
            self.state.update(entry.header, entry.offset, entry.next_offset - 1, entry.timestamp, replay=True)
        elif self.follow_marker(self.state, entry) is not None:
            assert opened is not None
            self.completed.append((opened, entry.offset))

    @invariant()
    def the_same_producers_are_known(self) -> None:
        known = {
            producer_id: (
                entry.producer_epoch,
                entry.current_txn_first_offset,
                [batch[1] - batch[2] for batch in entry.batches],
            )
            for producer_id, entry in self.state.producers.items()
        }
        assert known == {
            producer_id: (p.epoch, -1 if p.open_since is None else p.open_since, [batch[2] for batch in p.batches])
            for producer_id, p in self.model.items()
        }

    @invariant()
    def the_unstable_offset_is_the_lowest(self) -> None:
        undecided = [p.open_since for p in self.model.values() if p.open_since is not None]
        unreplicated = [first for first, _ in self.completed]
        assert self.state.first_undecided_offset == min(undecided, default=None)
        assert self.state.first_unstable_offset == min(undecided + unreplicated, default=None)


TestProducerState = ProducerStateMachine.TestCase
TestProducerState.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
