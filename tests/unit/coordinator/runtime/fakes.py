"""A log that commits when it is told to, a world whose time stands still, and the simplest shard there is."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from heapq import heappop, heappush
from itertools import count
from typing import Any, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.records.errors import UnknownRecordTypeError
from penstock.coordinator.runtime.log import LogListener
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.shard import CoordinatorRecord, ProducerIdentity, Result, ShardContext
from penstock.coordinator.runtime.timeline import TimelineDict
from penstock.records.batch import read_header, set_base_offset_and_epoch

T = TypeVar("T")
START_MS = 1_700_000_000_000


class FakeTimer:
    def __init__(self, callback: Callable[[], None]) -> None:
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class FakeWorld:
    """Clock and tasks on an asyncio loop that runs only inside `settle`."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.now_s = 100.0
        self.turns = 0
        self.errors: list[BaseException] = []
        self._timers: list[tuple[float, int, FakeTimer]] = []
        self._order = count()
        self._tasks: set[asyncio.Task[Any]] = set()

    def time_ms(self) -> int:
        return START_MS + int(self.now_s * 1000)

    def monotonic(self) -> float:
        return self.now_s

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.turns += 1
        self.loop.call_soon(callback)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> FakeTimer:
        assert seconds >= 0
        timer = FakeTimer(callback)
        heappush(self._timers, (self.now_s + seconds, next(self._order), timer))
        return timer

    def future(self) -> asyncio.Future[Any]:
        return self.loop.create_future()

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        task = self.loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(self._note_failure)
        return task

    def run_blocking(self, work: Callable[[], T]) -> Awaitable[T]:
        return self.loop.create_task(_later(work))

    def settle(self, turns: int = 200) -> None:
        async def run() -> None:
            for _ in range(turns):
                await asyncio.sleep(0)

        self.loop.run_until_complete(run())
        assert not self.errors, self.errors

    def advance(self, seconds: float) -> None:
        until = self.now_s + seconds
        while self._timers and self._timers[0][0] <= until:
            at, _, timer = heappop(self._timers)
            self.now_s = max(self.now_s, at)
            if timer.callback is not None:
                timer.callback()
            self.settle(3)
        self.now_s = until

    @property
    def timer_count(self) -> int:
        return sum(1 for _, _, timer in self._timers if timer.callback is not None)

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        self.settle(3)
        self.loop.close()

    def _note_failure(self, task: asyncio.Task[Any]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self.errors.append(error)


async def _later(work: Callable[[], T]) -> T:
    await asyncio.sleep(0)
    return work()


class FakeChunk:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self.is_released = False

    def read(self) -> bytes:
        assert not self.is_released
        return self._data

    def release(self) -> None:
        self.is_released = True


class FakeLog:
    """One partition's log. `commits_at_once`: an append is a commit, as on a broker without followers."""

    def __init__(self, *, commits_at_once: bool = False) -> None:
        self.commits_at_once = commits_at_once
        self.batches: list[bytes] = []
        self.hw = 0
        self.start = 0
        self.leader_epoch: int | None = 0
        self.refusals: list[KafkaError] = []
        self.bytes_max = 1_000_000
        self.chunk_batches = 3
        self.read_error: OSError | None = None
        self.chunks: list[FakeChunk] = []
        self.listeners: list[LogListener] = []

    # -- What tests do to it -----------------------------------------------------------------------------------------

    @property
    def end(self) -> int:
        return read_header(self.batches[-1]).next_offset if self.batches else self.start

    def commit(self, offset: int | None = None) -> None:
        self.hw = self.end if offset is None else offset
        for listener in list(self.listeners):
            listener.high_watermark_moved(0, self.hw)

    def add(self, batch: bytes | bytearray) -> int:
        """As if another broker had appended it."""
        placed = bytearray(batch)
        set_base_offset_and_epoch(placed, 0, self.end, self.leader_epoch or 0)
        self.batches.append(bytes(placed))
        return self.end - 1

    def lose(self, *, truncate_to: int | None = None) -> None:
        """Leadership goes away; what the new leader does not have goes with it."""
        self.leader_epoch = None
        for listener in list(self.listeners):
            listener.leadership_changed(0, None)
        if truncate_to is not None:
            while self.batches and read_header(self.batches[-1]).next_offset > truncate_to:
                self.batches.pop()
            self.hw = min(self.hw, self.end)

    # -- The port ----------------------------------------------------------------------------------------------------

    def start_offset(self, partition: int) -> int:
        self._check()
        return self.start

    def end_offset(self, partition: int) -> int:
        self._check()
        return self.end

    def high_watermark(self, partition: int) -> int:
        self._check()
        return self.hw

    def batch_bytes_max(self, partition: int) -> int:
        return self.bytes_max

    def append(self, partition: int, batch: bytearray, leader_epoch: int) -> int:
        self._check()
        if self.refusals:
            raise self.refusals.pop(0)
        assert leader_epoch == self.leader_epoch
        last = self.add(batch)
        if self.commits_at_once:
            self.commit()
        return last

    def open_chunk(self, partition: int, offset: int) -> FakeChunk | None:
        self._check()
        if self.read_error is not None:
            raise self.read_error
        later = [batch for batch in self.batches if read_header(batch).next_offset > offset]
        if not later:
            return None
        data = b"".join(later[: self.chunk_batches])
        if len(later) > self.chunk_batches:
            data += later[self.chunk_batches][:70]
        self.chunks.append(FakeChunk(data))
        return self.chunks[-1]

    def subscribe(self, partition: int, listener: LogListener) -> None:
        self._check()
        self.listeners.append(listener)

    def unsubscribe(self, partition: int, listener: LogListener) -> None:
        self.listeners.remove(listener)

    def _check(self) -> None:
        if self.leader_epoch is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


class Words:
    """A shard that is a dictionary of words; those of a transaction count once it commits."""

    def __init__(self, context: ShardContext) -> None:
        self.context = context
        self.words: TimelineDict[str, str] = TimelineDict(context.timeline)
        self.open: TimelineDict[int, tuple[tuple[str, str | None], ...]] = TimelineDict(context.timeline)
        self.events: list[str] = []
        self.fired: list[str] = []

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: bytes, value: bytes | None) -> None:
        assert self.context.timeline.now == offset
        word = key.decode()
        if word.startswith("?"):
            raise UnknownRecordTypeError(7)
        if word.startswith("!"):
            raise ValueError("no such word")
        meaning = None if value is None else value.decode()
        if producer_id >= 0:
            self.open.set(producer_id, (*(self.open.get(producer_id) or ()), (word, meaning)))
        else:
            self._apply(word, meaning)

    def _apply(self, word: str, meaning: str | None) -> None:
        if meaning is None:
            self.words.pop(word)
        else:
            self.words.set(word, meaning)

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        changes = self.open.pop(producer_id)
        for word, meaning in changes or ():
            if committed:
                self._apply(word, meaning)

    def on_loaded(self) -> None:
        self.events.append("loaded")

    def on_unloaded(self) -> None:
        self.events.append("unloaded")

    def committed(self, offset: int) -> None:
        self.events.append(f"committed {offset}")

    def rolled_back(self, offset: int) -> None:
        self.events.append(f"rolled back {offset}")

    def check_invariants(self) -> None:
        assert all(isinstance(word, str) for word in self.words)


def record(word: str, meaning: str | None) -> CoordinatorRecord:
    return CoordinatorRecord(word.encode(), None if meaning is None else meaning.encode())


def put(word: str, meaning: str | None) -> Callable[[Words], Result[str]]:
    return lambda shard: Result([record(word, meaning)], f"{word}={meaning}")


def look(word: str) -> Callable[[Words], Result[str | None]]:
    """An operation without records: it sees the newest state."""
    return lambda shard: Result([], shard.words.get(word))


def committed_words(shard: Words) -> dict[str, str]:
    return dict(shard.words.items_committed())


def newest_words(shard: Words) -> dict[str, str]:
    return dict(shard.words.items())


def producer(number: int, epoch: int = 0) -> ProducerIdentity:
    return ProducerIdentity(number, epoch)


class Stage:
    """A runtime of `Words` on a fake log; one partition, led here unless said otherwise."""

    def __init__(self, *, commits_at_once: bool = False, loaded: bool = True) -> None:
        self.world = FakeWorld()
        self.log = FakeLog(commits_at_once=commits_at_once)
        self.shards: list[Words] = []
        self.writes: list[asyncio.Future[Any]] = []
        self.runtime: CoordinatorRuntime[Words] = CoordinatorRuntime(
            "words",
            self.log,
            clock=self.world,
            tasks=self.world,
            make_shard=self._make,
            partition_count=lambda: 1,
            write_timeout_ms=5000,
            checks_invariants=True,
        )
        if loaded:
            self.load()

    def _make(self, context: ShardContext) -> Words:
        self.shards.append(Words(context))
        return self.shards[-1]

    @property
    def shard(self) -> Words:
        return self.shards[-1]

    def load(self, epoch: int | None = None) -> None:
        self.log.leader_epoch = (self.log.leader_epoch or 0) if epoch is None else epoch
        self.runtime.load(0, self.log.leader_epoch)
        self.world.settle()

    def write(self, operation: Callable[[Words], Result[Any]], **options: Any) -> asyncio.Future[Any]:
        self.writes.append(self.runtime.write(0, "test", operation, **options))
        return self.writes[-1]

    def close(self) -> None:
        self.runtime.close()
        for write in self.writes:
            # Looked at, so that asyncio does not complain about the ones that a test leaves alone.
            if write.done() and not write.cancelled():
                write.exception()
        self.world.close()

    def committed(self) -> dict[str, str]:
        return self.runtime.read(0, committed_words)

    def newest(self) -> dict[str, str]:
        return newest_words(self.shard)


def code_of(future: asyncio.Future[Any]) -> ErrorCode:
    assert future.done()
    error = future.exception()
    assert isinstance(error, KafkaError), error
    return error.code
