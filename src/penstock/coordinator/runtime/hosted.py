"""One shard on this broker: its state, the writes that wait, and how far it is written and committed.

`written_end` is the end of what has been replayed into the shard, always the end of its log; `committed_end` follows
the high watermark. A write replays its records first and appends them then: if the log refuses, the replay is undone
and nothing has happened; if the log takes them at another offset than expected, somebody else wrote there and the shard
is loaded again. Once appended, records are not undone here: the log has them, so a write that is not committed in time
is answered with an error while its records stay, unseen by queries, to be committed later or to go with the leadership.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Tasks
from penstock.coordinator.runtime.batches import build_records, split_records
from penstock.coordinator.runtime.errors import coordinator_error
from penstock.coordinator.runtime.loading import LoadAbandonedError, Loader, LoadSummary
from penstock.coordinator.runtime.log import CoordinatorLog
from penstock.coordinator.runtime.shard import (
    CancelTimer,
    CoordinatorRecord,
    MakeShard,
    Operation,
    ProducerIdentity,
    Query,
    R,
    S,
    ShardContext,
    TimerEffect,
)
from penstock.coordinator.runtime.states import ShardState, check_transition, not_active_error, not_coordinator
from penstock.coordinator.runtime.timeline import NOT_REPLAYING, Timeline
from penstock.coordinator.runtime.timers import TimerEntry, TimerQueue, TimerSet
from penstock.coordinator.runtime.writing import PendingWrite
from penstock.records.builder import ControlType, end_transaction_marker
from penstock.records.compression import Codec

TIMER_RETRY_MS = 500

log = logging.getLogger(__name__)


class HostedShard(Generic[S]):
    def __init__(
        self,
        name: str,
        partition: int,
        source: CoordinatorLog,
        *,
        clock: Clock,
        tasks: Tasks,
        timers: TimerQueue,
        make_shard: MakeShard[S],
        write_timeout_ms: int,
        codec: Codec,
        checks_invariants: bool,
        reload: Callable[[HostedShard[S], int], None],
    ) -> None:
        """`reload` is asked to load this shard again, in the given leader epoch."""
        self.name = name
        self.partition = partition
        self.state = ShardState.INITIAL
        self.leader_epoch = -1
        self.written_end = 0
        self.load_time_s = 0.0
        self._log = source
        self._clock = clock
        self._tasks = tasks
        self._timer_queue = timers
        self._make_shard = make_shard
        self._write_timeout_ms = write_timeout_ms
        self._codec = codec
        self._checks_invariants = checks_invariants
        self._reload = reload
        self._shard: S | None = None
        self._context: ShardContext | None = None
        self._timeline = Timeline()
        self._timers = TimerSet(timers, self._timer_expired)
        self._pending: deque[PendingWrite] = deque()
        self._is_appending = False
        self._moved_to = 0

    @property
    def committed_end(self) -> int:
        return self._timeline.committed_end

    @property
    def pending_count(self) -> int:
        return len(self._pending)

    # -- Life ------------------------------------------------------------------------------------------------------

    def _transition_to(self, state: ShardState) -> None:
        check_transition(self.state, state)
        log.debug("%s: %s -> %s", self.name, self.state.value, state.value)
        self.state = state

    def start_loading(self, leader_epoch: int) -> Loader | None:
        """Begin to load; None when there was nothing to load and the shard is active now."""
        self._transition_to(ShardState.LOADING)
        self.leader_epoch = leader_epoch
        start = self._log.start_offset(self.partition)
        self._timeline = timeline = Timeline(max(start, self._log.high_watermark(self.partition)))
        self._timers = TimerSet(self._timer_queue, self._timer_expired)
        self._context = ShardContext(
            partition=self.partition,
            leader_epoch=leader_epoch,
            timeline=timeline,
            timers=self._timers,
            clock=self._clock,
        )
        self._shard = shard = self._make_shard(self._context)
        self.written_end = start
        if start == self._log.end_offset(self.partition):
            self.loaded(LoadSummary(0, 0, 0.0, start))
            return None
        return Loader(
            self.name,
            self.partition,
            self._log,
            shard,
            timeline,
            clock=self._clock,
            tasks=self._tasks,
            is_wanted=lambda: self._shard is shard,
        )

    async def load(self, loader: Loader) -> None:
        shard = self._shard
        try:
            summary = await loader.run()
            if self._shard is shard:
                self.loaded(summary)
        except LoadAbandonedError:
            log.debug("%s: no longer wanted while it loaded", self.name)
        except Exception:  # a record that cannot be replayed stops this partition, not the broker
            if self._shard is not shard:
                return
            log.exception("%s cannot be loaded; its clients are told to look for another coordinator", self.name)
            self.fail()

    def loaded(self, summary: LoadSummary) -> None:
        end = self._log.end_offset(self.partition)
        self.written_end = end
        shard = self._shard
        assert shard is not None
        self.load_time_s = summary.seconds
        self._timeline.commit(self._log.high_watermark(self.partition))
        self._transition_to(ShardState.ACTIVE)
        if summary.records:
            log.info("loaded %s: %d record(s), %.3f s", self.name, summary.records, summary.seconds)
        shard.on_loaded()
        self._check()

    def change_epoch(self, leader_epoch: int) -> None:
        """Still led here: the log is the same, so the shard goes on."""
        self.leader_epoch = leader_epoch
        if self._context is not None:
            self._context.leader_epoch = leader_epoch

    def fail(self) -> None:
        self._transition_to(ShardState.FAILED)
        self._drop()

    def close(self) -> None:
        if self.state is not ShardState.CLOSED:
            self._transition_to(ShardState.CLOSED)
            self._drop()

    def _drop(self) -> None:
        self._timers.cancel_all()
        shard, self._shard, self._context = self._shard, None, None
        pending, self._pending = self._pending, deque()
        for write in pending:
            write.complete(not_coordinator(self.name))
        if shard is not None:
            shard.on_unloaded()

    def active_shard(self) -> S:
        """KafkaError with what a client is told when there is none."""
        if self.state is not ShardState.ACTIVE:
            raise not_active_error(self.state, self.name)
        assert self._shard is not None
        return self._shard

    # -- Reading and writing -----------------------------------------------------------------------------------------

    def read(self, query: Query[S, R]) -> R:
        return query(self.active_shard())

    def write(
        self, name: str, operation: Operation[S, R], timeout_ms: int, producer: ProducerIdentity
    ) -> asyncio.Future[R]:
        write = PendingWrite(name, self._tasks.future())
        try:
            shard = self.active_shard()
            if self._is_appending:
                raise RuntimeError(f"{name} was started from inside another write")
            result = operation(shard)
            write.expect(result.response, result.on_complete)
            self._append(result.records, producer, is_atomic=result.is_atomic, replay=result.replay)
            self._apply_timers(result.timers)
        except KafkaError as error:
            write.complete(error)
        except Exception as error:  # noqa: BLE001 - it belongs to the request that caused it
            self._complete_broken(write, error)
        else:
            self._park(write, timeout_ms)
        self._check()
        return write.future

    def complete_transaction(
        self, name: str, producer: ProducerIdentity, *, committed: bool, coordinator_epoch: int, timeout_ms: int
    ) -> asyncio.Future[None]:
        """Append a transaction's marker and apply it."""
        write = PendingWrite(name, self._tasks.future())
        try:
            shard = self.active_shard()
            batch = end_transaction_marker(
                ControlType.COMMIT if committed else ControlType.ABORT,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                coordinator_epoch=coordinator_epoch,
                timestamp=self._clock.time_ms(),
            )
            self._append_batch(1, bytearray(batch), lambda: self._replay_marker(shard, producer, committed=committed))
        except KafkaError as error:
            write.complete(error)
        except Exception as error:  # noqa: BLE001 - it belongs to the request that caused it
            self._complete_broken(write, error)
        else:
            self._park(write, timeout_ms)
        self._check()
        return write.future

    def _complete_broken(self, write: PendingWrite, error: Exception) -> None:
        log.error("%s on %s failed", write.name, self.name, exc_info=error)
        write.complete(KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"{write.name} failed: {error!r}"))

    def _append(
        self, records: Sequence[CoordinatorRecord], producer: ProducerIdentity, *, is_atomic: bool, replay: bool
    ) -> None:
        if not records:
            return
        shard = self._shard
        assert shard is not None
        try:
            bytes_max = self._log.batch_bytes_max(self.partition)
            groups = list(split_records(records, is_atomic=is_atomic or producer.id >= 0, bytes_max=bytes_max))
        except KafkaError as error:
            raise coordinator_error(error) from error
        now_ms = self._clock.time_ms()
        for group in groups:
            batch = build_records(group, timestamp_ms=now_ms, producer=producer, codec=self._codec)
            self._append_batch(
                len(group),
                batch,
                (lambda group=group: self._replay_records(shard, group, producer)) if replay else None,  # type: ignore[misc]
            )

    def _append_batch(self, count: int, batch: bytearray, replay: Callable[[], None] | None) -> None:
        """Replay `count` records and append them as `batch`; the replay is undone if either fails."""
        start = self.written_end
        self._is_appending = True
        try:
            if replay is not None:
                replay()
            self._timeline.now = NOT_REPLAYING
            last = self._log.append(self.partition, batch, self.leader_epoch)
        except Exception as error:
            self._timeline.now = NOT_REPLAYING
            self._is_appending = False
            self._roll_back(start)
            if isinstance(error, KafkaError):
                raise coordinator_error(error) from error
            raise
        self._is_appending = False
        if last + 1 != start + count:
            self._resynchronize(expected=start + count - 1, found=last)
        self.written_end = last + 1
        if self._moved_to > self.committed_end:
            self._advance(self._moved_to)

    def _replay_records(self, shard: S, records: Sequence[CoordinatorRecord], producer: ProducerIdentity) -> None:
        timeline = self._timeline
        producer_id, producer_epoch = producer
        for offset, (key, value) in enumerate(records, self.written_end):
            timeline.now = offset
            shard.replay(offset, producer_id, producer_epoch, key, value)

    def _replay_marker(self, shard: S, producer: ProducerIdentity, *, committed: bool) -> None:
        self._timeline.now = self.written_end
        shard.replay_end_transaction(producer.id, producer.epoch, committed)

    def _roll_back(self, end: int) -> None:
        if self._shard is None or self.state is not ShardState.ACTIVE:
            return
        self._timeline.rollback(end)
        self._shard.rolled_back(end)

    def _resynchronize(self, *, expected: int, found: int) -> None:
        """The shard and its log disagree about offsets: start over from the log."""
        log.error(
            "%s was written by somebody else: a record is at offset %d instead of %d; loading it again",
            self.name,
            found,
            expected,
        )
        self.fail()
        self._reload(self, self.leader_epoch)
        raise not_coordinator(self.name)

    def _park(self, write: PendingWrite, timeout_ms: int) -> None:
        """Answer now when everything the operation saw is committed, otherwise when it is."""
        write.end = self.written_end
        if self.committed_end >= write.end:
            write.complete()
            return
        self._pending.append(write)
        write.timer = self._tasks.call_later(timeout_ms / 1000, lambda: self._timed_out(write, timeout_ms))

    def _timed_out(self, write: PendingWrite, timeout_ms: int) -> None:
        write.timer = None
        log.info("%s on %s was not committed within %d ms", write.name, self.name, timeout_ms)
        write.complete(
            KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE, f"{write.name} was not committed within {timeout_ms} ms.")
        )
        self._check()

    # -- Commits -----------------------------------------------------------------------------------------------------

    def high_watermark_moved(self, offset: int) -> None:
        if self._is_appending:
            # Our own append: its records are counted first.
            self._moved_to = offset
            return
        self._advance(offset)
        self._check()

    def _advance(self, offset: int) -> None:
        self._moved_to = 0
        if self._shard is None or offset <= self.committed_end:
            return
        self._timeline.commit(offset)
        if self.state is not ShardState.ACTIVE:
            return
        self._shard.committed(offset)
        while self._pending and self._pending[0].end <= offset:
            self._pending.popleft().complete()

    # -- Timers ------------------------------------------------------------------------------------------------------

    def _apply_timers(self, effects: Sequence[TimerEffect]) -> None:
        for effect in effects:
            if isinstance(effect, CancelTimer):
                self._timers.cancel(effect.key)
            else:
                self._timers.schedule(effect.key, effect.delay_ms, effect.operation, retry=effect.retry)

    def _timer_expired(self, entry: TimerEntry) -> None:
        future = self.write(f"timer {entry.key}", entry.operation, self._write_timeout_ms, ProducerIdentity(-1, -1))
        future.add_done_callback(lambda done: self._timer_ran(entry, done))

    def _timer_ran(self, entry: TimerEntry, done: asyncio.Future[Any]) -> None:
        error = None if done.cancelled() else done.exception()
        if error is None or self.state is not ShardState.ACTIVE:
            return
        if entry.retry:
            log.info("the timer %s of %s failed and is tried again: %s", entry.key, self.name, error)
            if not self._timers.is_scheduled(entry.key):
                self._timers.schedule(entry.key, TIMER_RETRY_MS, entry.operation)
        else:
            log.info("the timer %s of %s failed: %s", entry.key, self.name, error)

    # -- Invariants --------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        if self._checks_invariants:
            self.check_invariants()

    def check_invariants(self) -> None:
        is_held = self.state in (ShardState.LOADING, ShardState.ACTIVE)
        assert (self._shard is not None) == is_held, self.state
        ends = [write.end for write in self._pending]
        assert ends == sorted(ends), ends
        if self.state is not ShardState.ACTIVE:
            assert not self._pending, self.state
            assert not len(self._timers) or self.state is ShardState.LOADING, self.state
            return
        assert self.committed_end <= self.written_end, (self.committed_end, self.written_end)
        assert not ends or self.committed_end < ends[0] <= ends[-1] <= self.written_end, (self.committed_end, ends)
        assert self._timeline.now == NOT_REPLAYING
        self._timeline.check_invariants()
        if self.committed_end == self.written_end:
            assert self._timeline.pending_count == 0
        assert self._shard is not None
        self._shard.check_invariants()
