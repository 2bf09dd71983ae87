"""The runtime against a model: a list of records, a number for the high watermark, and dictionaries folded from them.

Appends are refused, commits come late or not at all, leadership goes away and takes uncommitted records with it or not,
and comes back. After every step, both views of the shard and the fate of every write must be what the list says.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.runtime.states import ShardState
from tests.unit.coordinator.runtime.fakes import Stage, code_of, look, producer, record

WORDS = st.sampled_from("abc")
MEANINGS = st.none() | st.sampled_from("123")
CHANGES = st.lists(st.tuples(WORDS, MEANINGS), min_size=1, max_size=4)
PRODUCERS = st.sampled_from((1, 2))


@dataclass
class Entry:
    """One record of the model's log: a change, or the end of a transaction."""

    word: str = ""
    meaning: str | None = None
    producer: int = -1
    ends: bool | None = None


@dataclass
class Expected:
    """A write that is not decided: where its last record ends, and when it gives up."""

    future: asyncio.Future[Any]
    end: int
    deadline_s: float
    response: Any


def fold(entries: list[Entry]) -> dict[str, str]:
    words: dict[str, str] = {}
    open_: dict[int, list[Entry]] = {}

    def apply(entry: Entry) -> None:
        if entry.meaning is None:
            words.pop(entry.word, None)
        else:
            words[entry.word] = entry.meaning

    for entry in entries:
        if entry.ends is not None:
            for change in open_.pop(entry.producer, []):
                if entry.ends:
                    apply(change)
        elif entry.producer >= 0:
            open_.setdefault(entry.producer, []).append(entry)
        else:
            apply(entry)
    return words


class RuntimeMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.stage = Stage()
        self.model: list[Entry] = []
        self.hw = 0
        self.epoch = 0
        self.leads = True
        self.waiting: list[Expected] = []

    def teardown(self) -> None:
        self.stage.close()

    # -- Writes ------------------------------------------------------------------------------------------------------

    def expect(self, future: asyncio.Future[Any], response: Any, timeout_ms: int = 5000) -> None:
        end = len(self.model)
        if not self.leads:
            assert code_of(future) is ErrorCode.NOT_COORDINATOR
        elif self.hw >= end:
            assert future.result() == response
        else:
            assert not future.done()
            self.waiting.append(Expected(future, end, self.stage.world.now_s + timeout_ms / 1000, response))

    @rule(changes=CHANGES, timeout_ms=st.sampled_from((500, 5000)))
    def write(self, changes: list[tuple[str, str | None]], timeout_ms: int) -> None:
        future = self.stage.write(lambda _: Result([record(*each) for each in changes], "done"), timeout_ms=timeout_ms)
        if self.leads:
            self.model += [Entry(*each) for each in changes]
        self.expect(future, "done", timeout_ms)

    @rule(changes=CHANGES, number=PRODUCERS)
    def write_in_a_transaction(self, changes: list[tuple[str, str | None]], number: int) -> None:
        future = self.stage.write(
            lambda _: Result([record(*each) for each in changes], "txn"), producer=producer(number)
        )
        if self.leads:
            self.model += [Entry(*each, producer=number) for each in changes]
        self.expect(future, "txn")

    @rule(number=PRODUCERS, committed=st.booleans())
    def end_a_transaction(self, number: int, committed: bool) -> None:
        future = self.stage.runtime.complete_transaction(
            0, "end", producer(number), committed=committed, coordinator_epoch=0
        )
        self.stage.writes.append(future)
        if self.leads:
            self.model.append(Entry(producer=number, ends=committed))
        self.expect(future, None)

    @rule(word=WORDS)
    def look_up(self, word: str) -> None:
        self.expect(self.stage.write(look(word)), fold(self.model).get(word))

    @precondition(lambda self: self.leads)
    @rule(changes=CHANGES, code=st.sampled_from((ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR)))
    def refused_write(self, changes: list[tuple[str, str | None]], code: ErrorCode) -> None:
        self.stage.log.refusals.append(KafkaError(code))
        future = self.stage.write(lambda _: Result([record(*each) for each in changes], "no"))
        told = {
            ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
            ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
        }
        assert code_of(future) is told[code]

    @precondition(lambda self: self.leads)
    @rule(changes=CHANGES)
    def write_that_cannot_be_replayed(self, changes: list[tuple[str, str | None]]) -> None:
        records = [*(record(*each) for each in changes), record("!", "x")]
        assert code_of(self.stage.write(lambda _: Result(records, "no"))) is ErrorCode.UNKNOWN_SERVER_ERROR

    # -- What happens to the log -------------------------------------------------------------------------------------

    @precondition(lambda self: self.leads and self.hw < len(self.model))
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        self.hw = data.draw(st.integers(self.hw + 1, len(self.model)))
        self.stage.log.commit(self.hw)
        for write in [write for write in self.waiting if write.end <= self.hw]:
            assert write.future.result() == write.response
            self.waiting.remove(write)

    @rule(seconds=st.sampled_from((0.3, 1.0, 6.0)))
    def time_passes(self, seconds: float) -> None:
        self.stage.world.advance(seconds)
        for write in [write for write in self.waiting if write.deadline_s <= self.stage.world.now_s]:
            assert code_of(write.future) is ErrorCode.COORDINATOR_NOT_AVAILABLE
            self.waiting.remove(write)

    @precondition(lambda self: self.leads)
    @rule(truncates=st.booleans())
    def lose_leadership(self, truncates: bool) -> None:
        self.leads = False
        self.stage.log.lose(truncate_to=self.hw if truncates else None)
        # Batches stay whole, so what is left is what the log says.
        del self.model[self.stage.log.end :]
        self.hw = self.stage.log.hw
        for write in self.waiting:
            assert code_of(write.future) is ErrorCode.NOT_COORDINATOR
        self.waiting.clear()

    @precondition(lambda self: not self.leads)
    @rule(chunk_batches=st.integers(1, 4))
    def gain_leadership(self, chunk_batches: int) -> None:
        self.leads = True
        self.epoch += 1
        self.stage.log.chunk_batches = chunk_batches
        self.stage.load(epoch=self.epoch)

    # -- What must hold ------------------------------------------------------------------------------------------------

    @invariant()
    def both_views_are_what_the_log_says(self) -> None:
        self.stage.runtime.check_invariants()
        if not self.leads:
            assert self.stage.runtime.state(0) is None
            return
        assert self.stage.runtime.state(0) is ShardState.ACTIVE
        assert self.stage.log.end == len(self.model)
        assert self.stage.newest() == fold(self.model)
        assert self.stage.committed() == fold(self.model[: self.hw])

    @invariant()
    def nobody_is_answered_too_early(self) -> None:
        assert not any(write.future.done() for write in self.waiting)


RuntimeMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=50, deadline=None)
test_runtime_machine = RuntimeMachine.TestCase
