"""Bringing a shard up from a log: slices, transactions, unknown records, failures, leadership that leaves meanwhile."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.runtime.loading import RECORDS_PER_SLICE_MAX
from penstock.coordinator.runtime.states import ShardState
from penstock.records.builder import ControlType, Record, build_batch, end_transaction_marker
from penstock.records.compression import Codec
from tests.unit.coordinator.runtime.fakes import FakeLog, Stage, code_of, look, put

MakeStage = Callable[..., Stage]


def add(log: FakeLog, *words: tuple[str, str | None], producer_id: int = -1, codec: Codec = Codec.NONE) -> None:
    records = [Record(1, word.encode(), None if meaning is None else meaning.encode()) for word, meaning in words]
    log.add(
        build_batch(
            records,
            producer_id=producer_id,
            producer_epoch=0 if producer_id >= 0 else -1,
            transactional=producer_id >= 0,
            codec=codec,
        )
    )


def end(log: FakeLog, producer_id: int, kind: ControlType) -> None:
    log.add(end_transaction_marker(kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=1, timestamp=1))


@pytest.fixture
def unloaded(make_stage: MakeStage) -> Stage:
    return make_stage(loaded=False)


def test_an_empty_log_is_loaded_at_once(unloaded: Stage) -> None:
    unloaded.runtime.load(0, 0)
    assert unloaded.runtime.state(0) is ShardState.ACTIVE


def test_records_are_replayed_in_order_and_tombstones_count(unloaded: Stage) -> None:
    for number in range(10):
        add(unloaded.log, ("a", str(number)), (f"b{number}", "x"), codec=Codec(number % 5))
    add(unloaded.log, ("b3", None))
    unloaded.log.hw = unloaded.log.end
    unloaded.load()
    assert unloaded.committed() == {"a": "9", **{f"b{each}": "x" for each in range(10) if each != 3}}
    assert all(chunk.is_released for chunk in unloaded.log.chunks)
    assert len(unloaded.log.chunks) > 2


def test_while_it_loads_clients_are_told_to_come_back(unloaded: Stage) -> None:
    add(unloaded.log, ("a", "1"))
    unloaded.runtime.load(0, 0)
    assert code_of(unloaded.write(look("a"))) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    for refused in (unloaded.committed, lambda: unloaded.runtime.read_all(lambda _: None)):
        with pytest.raises(KafkaError) as told:
            refused()
        assert told.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    unloaded.world.settle()
    assert unloaded.runtime.read_all(lambda shard: shard.words.get("a")) == ["1"]


def test_many_records_are_replayed_in_slices(unloaded: Stage) -> None:
    unloaded.log.chunk_batches = 100
    for number in range(5):
        add(unloaded.log, *((f"{number}-{each}", "x") for each in range(RECORDS_PER_SLICE_MAX)))
    unloaded.load()
    assert unloaded.world.turns >= 5
    assert len(unloaded.newest()) == 5 * RECORDS_PER_SLICE_MAX


def test_records_of_aborted_transactions_leave_nothing_and_open_ones_wait(unloaded: Stage) -> None:
    log = unloaded.log
    add(log, ("a", "aborted"), producer_id=1)
    add(log, ("b", "committed"), producer_id=2)
    add(log, ("c", "plain"))
    add(log, ("b", "aborted too"), producer_id=1)
    end(log, 1, ControlType.ABORT)
    end(log, 2, ControlType.COMMIT)
    add(log, ("d", "open"), producer_id=1)
    log.hw = log.end
    unloaded.load()
    assert unloaded.committed() == unloaded.newest() == {"b": "committed", "c": "plain"}
    assert dict(unloaded.shard.open.items()) == {1: (("d", "open"),)}


def test_what_is_above_the_high_watermark_is_loaded_as_uncommitted(unloaded: Stage) -> None:
    add(unloaded.log, ("a", "1"))
    add(unloaded.log, ("a", "2"), ("b", "2"))
    unloaded.log.hw = 1
    unloaded.load()
    assert unloaded.newest() == {"a": "2", "b": "2"}
    assert unloaded.committed() == {"a": "1"}
    unloaded.log.commit()
    assert unloaded.committed() == {"a": "2", "b": "2"}


def test_a_high_watermark_that_moves_while_loading_counts(unloaded: Stage) -> None:
    add(unloaded.log, ("a", "1"))
    add(unloaded.log, ("a", "2"))
    unloaded.runtime.load(0, 0)
    unloaded.log.commit(1)
    unloaded.world.settle()
    assert unloaded.committed() == {"a": "1"}


def test_unknown_records_are_skipped(unloaded: Stage, caplog: pytest.LogCaptureFixture) -> None:
    add(unloaded.log, ("?new", "1"), ("a", "1"), ("?newer", "2"))
    unloaded.load()
    assert unloaded.newest() == {"a": "1"}
    assert caplog.text.count("unknown type 7") == 1


@pytest.mark.parametrize("damage", ["replay", "disk", "bytes"])
def test_what_cannot_be_loaded_fails_its_partition_and_a_new_epoch_tries_again(unloaded: Stage, damage: str) -> None:
    add(unloaded.log, ("a", "1"))
    add(unloaded.log, ("!" if damage == "replay" else "b", "1"))
    good = list(unloaded.log.batches)
    if damage == "disk":
        unloaded.log.read_error = OSError(5, "input/output error")
    if damage == "bytes":
        unloaded.log.batches[1] = unloaded.log.batches[1][:-4] + b"\xff\xff\xff\xff"
    unloaded.load()
    assert unloaded.runtime.state(0) is ShardState.FAILED
    assert code_of(unloaded.write(look("a"))) is ErrorCode.NOT_COORDINATOR
    assert unloaded.runtime.read_all(lambda _: 1) == []
    unloaded.log.read_error = None
    unloaded.log.batches = good[:1]
    unloaded.load(epoch=1)
    assert unloaded.newest() == {"a": "1"}


def test_leadership_that_leaves_while_loading_ends_the_load(unloaded: Stage) -> None:
    for number in range(20):
        add(unloaded.log, (f"{number}", "1"))
    unloaded.runtime.load(0, 0)
    unloaded.world.settle(2)
    assert unloaded.runtime.state(0) is ShardState.LOADING
    unloaded.log.lose()
    unloaded.world.settle()
    assert unloaded.runtime.state(0) is None
    assert unloaded.shard.events == ["unloaded"]
    assert all(chunk.is_released for chunk in unloaded.log.chunks)
    unloaded.load(epoch=1)
    assert len(unloaded.newest()) == 20
    assert len(unloaded.shards) == 2


def test_unload_and_reload_is_replay(make_stage: MakeStage) -> None:
    stage = make_stage(commits_at_once=True)
    for number in range(30):
        stage.write(put(str(number % 7), str(number)))
    before = stage.committed()
    stage.log.lose()
    stage.load(epoch=1)
    assert stage.committed() == before
    assert stage.write(put("x", "y")).result() == "x=y"


def test_a_log_that_starts_later_is_loaded_from_there(unloaded: Stage) -> None:
    unloaded.log.start = unloaded.log.hw = 100
    unloaded.load()
    unloaded.log.commits_at_once = True
    assert unloaded.write(put("a", "1")).result() == "a=1"
    assert unloaded.committed() == {"a": "1"}
