"""Writes, answers and reads of the coordinator runtime, on a log whose commits come late, fail, or never come."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.runtime.states import LEGAL_TRANSITIONS, ShardState, check_transition
from penstock.records.batch import read_header
from penstock.records.builder import read_records
from tests.unit.coordinator.runtime.fakes import Stage, Words, code_of, look, producer, put, record

MakeStage = Callable[..., Stage]


def test_an_append_that_is_a_commit_is_answered_at_once(make_stage: MakeStage) -> None:
    stage = make_stage(commits_at_once=True)
    done = stage.write(put("a", "1"))
    assert done.result() == "a=1"
    assert stage.committed() == {"a": "1"}
    assert stage.shard.events == ["loaded", "committed 1"]


def test_an_answer_waits_for_the_commit_and_queries_do_not_see_what_waits(stage: Stage) -> None:
    done = stage.write(put("a", "1"))
    assert not done.done()
    assert stage.newest() == {"a": "1"}
    assert stage.committed() == {}
    stage.log.commit()
    assert done.result() == "a=1"
    assert stage.committed() == {"a": "1"}


def test_commits_that_come_late_answer_in_order(stage: Stage) -> None:
    writes = [stage.write(put("a", str(number))) for number in range(4)]
    stage.log.commit(2)
    assert [write.done() for write in writes] == [True, True, False, False]
    assert stage.committed() == {"a": "1"}
    assert stage.newest() == {"a": "3"}
    stage.log.commit()
    assert [write.result() for write in writes] == ["a=0", "a=1", "a=2", "a=3"]


def test_an_operation_sees_uncommitted_state_and_its_answer_waits_for_it(stage: Stage) -> None:
    stage.write(put("a", "1"))
    seen = stage.write(look("a"))
    assert not seen.done()
    stage.log.commit()
    assert seen.result() == "1"
    assert stage.write(look("a")).done()


def test_a_refused_append_undoes_its_replay_and_nothing_else(stage: Stage) -> None:
    first = stage.write(put("a", "1"))
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    refused = stage.write(put("a", "2"))
    assert code_of(refused) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.newest() == {"a": "1"}
    third = stage.write(put("b", "3"))
    stage.log.commit()
    assert first.done()
    assert third.result() == "b=3"
    assert stage.committed() == {"a": "1", "b": "3"}


@pytest.mark.parametrize(
    ("refusal", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
        (ErrorCode.NETWORK_EXCEPTION, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_PRODUCER_EPOCH),
    ],
)
def test_a_logs_codes_become_a_coordinators(stage: Stage, refusal: ErrorCode, told: ErrorCode) -> None:
    stage.log.refusals.append(KafkaError(refusal))
    assert code_of(stage.write(put("a", "1"))) is told
    assert stage.newest() == {}


def test_a_write_that_is_not_committed_in_time_is_answered_with_an_error_and_its_outcome_is_the_logs(
    stage: Stage,
) -> None:
    late = stage.write(put("a", "1"), timeout_ms=1000)
    patient = stage.write(put("b", "2"))
    stage.world.advance(1.5)
    assert code_of(late) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert not patient.done()
    assert stage.committed() == {}
    stage.log.commit()
    # Both records are in the log, so both are what a coordinator that loads it would find.
    assert patient.result() == "b=2"
    assert stage.committed() == {"a": "1", "b": "2"}


def test_a_timed_out_write_that_is_lost_with_the_leadership_leaves_nothing(stage: Stage) -> None:
    stage.write(put("a", "1"))
    stage.log.commit()
    late = stage.write(put("a", "2"), timeout_ms=1000)
    stage.world.advance(2)
    stage.log.lose(truncate_to=1)
    stage.load(epoch=1)
    assert code_of(late) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert stage.newest() == stage.committed() == {"a": "1"}


def test_leadership_lost_between_append_and_commit_fails_what_waits(stage: Stage) -> None:
    done = stage.write(put("a", "1"))
    stage.log.commit()
    waiting = [stage.write(put("a", "2")), stage.write(look("a"))]
    stage.log.lose(truncate_to=1)
    assert [code_of(each) for each in waiting] == [ErrorCode.NOT_COORDINATOR] * 2
    assert done.result() == "a=1"
    assert stage.shard.events[-1] == "unloaded"
    assert code_of(stage.write(put("a", "3"))) is ErrorCode.NOT_COORDINATOR
    with pytest.raises(KafkaError) as refused:
        stage.committed()
    assert refused.value.code is ErrorCode.NOT_COORDINATOR
    stage.load(epoch=1)
    assert stage.committed() == stage.newest() == {"a": "1"}


def test_a_new_leader_that_has_the_uncommitted_records_shows_them_once_they_are_committed(stage: Stage) -> None:
    stage.write(put("a", "1"))
    stage.log.lose()
    stage.load(epoch=1)
    assert stage.newest() == {"a": "1"}
    assert stage.committed() == {}
    seen = stage.write(look("a"))
    assert not seen.done()
    stage.log.commit()
    assert stage.committed() == {"a": "1"}
    assert seen.result() == "1"


def test_a_record_that_cannot_be_replayed_undoes_its_whole_batch(stage: Stage) -> None:
    broken = stage.write(lambda _: Result([record("a", "1"), record("!", "2")], "no"))
    assert code_of(broken) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.newest() == {}
    assert stage.log.batches == []


def test_an_operation_that_refuses_appends_nothing(stage: Stage) -> None:
    def refuse(shard: Words) -> Result[None]:
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION)

    assert code_of(stage.write(refuse)) is ErrorCode.ILLEGAL_GENERATION
    assert stage.log.batches == []


def test_hard_state_changes_only_while_a_record_is_replayed(stage: Stage) -> None:
    def cheat(shard: Words) -> Result[None]:
        shard.words.set("a", "1")
        return Result([], None)

    assert code_of(stage.write(cheat)) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.newest() == {}


def test_on_complete_is_told_once_how_the_write_ended(stage: Stage) -> None:
    told: list[KafkaError | None] = []

    def operation(shard: Words) -> Result[None]:
        return Result([record("a", "1")], None, on_complete=told.append)

    stage.write(operation)
    assert told == []
    stage.log.commit()
    assert told == [None]
    stage.write(operation, timeout_ms=10)
    stage.world.advance(1)
    stage.log.commit()
    assert [each and each.code for each in told] == [None, ErrorCode.COORDINATOR_NOT_AVAILABLE]
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    stage.write(operation)
    stage.write(operation)
    stage.log.lose()
    assert [each and each.code for each in told[2:]] == [
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ]


def test_on_complete_may_start_another_write(make_stage: MakeStage) -> None:
    stage = make_stage(commits_at_once=True)

    def operation(shard: Words) -> Result[None]:
        return Result([record("a", "1")], None, on_complete=lambda _: stage.write(put("b", "2")).result())

    stage.write(operation)
    assert stage.committed() == {"a": "1", "b": "2"}


def test_a_client_that_went_away_does_not_undo_its_write(stage: Stage) -> None:
    done = stage.write(put("a", "1"))
    done.cancel()
    stage.log.commit()
    assert stage.committed() == {"a": "1"}


def test_records_without_replay_are_appended_only(stage: Stage) -> None:
    done = stage.write(lambda _: Result([record("a", "1")], "kept by the operation", replay=False))
    stage.log.commit()
    assert done.result() == "kept by the operation"
    assert stage.newest() == {}
    assert len(stage.log.batches) == 1


def test_the_records_of_an_operation_are_one_batch(stage: Stage) -> None:
    stage.write(lambda _: Result([record("a", "1"), record("b", None), record("c", "3")], None))
    (batch,) = stage.log.batches
    found = read_records(batch, 0, read_header(batch))
    assert [(each.key, each.value) for each in found] == [(b"a", b"1"), (b"b", None), (b"c", b"3")]
    assert len({each.timestamp for each in found}) == 1
    assert not read_header(batch).has_producer_id


def test_records_that_need_not_be_atomic_are_split_and_others_are_refused(stage: Stage) -> None:
    stage.log.bytes_max = 200
    many = [record(f"word-{number}", "x" * 20) for number in range(10)]
    refused = stage.write(lambda _: Result(many, None))
    assert code_of(refused) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert stage.newest() == {}
    split = stage.write(lambda _: Result(many, "done", is_atomic=False))
    assert len(stage.log.batches) > 1
    assert all(len(batch) <= 200 for batch in stage.log.batches)
    stage.log.commit(5)
    assert not split.done()
    stage.log.commit()
    assert split.result() == "done"
    assert len(stage.committed()) == 10


def test_when_a_later_part_of_a_split_write_is_refused_the_earlier_ones_stay(stage: Stage) -> None:
    stage.log.bytes_max = 120
    many = [record(f"word-{number}", "x" * 20) for number in range(4)]

    def operation(shard: Words) -> Result[None]:
        stage.log.refusals = []
        return Result(many, None, is_atomic=False)

    first_append = stage.log.append

    def append(partition: int, batch: bytearray, leader_epoch: int) -> int:
        if len(stage.log.batches) == 2:
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
        return first_append(partition, batch, leader_epoch)

    stage.log.append = append  # type: ignore[method-assign]
    done = stage.write(operation)
    assert code_of(done) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.log.commit()
    assert len(stage.committed()) == len(stage.newest()) == 2


def test_a_transaction_counts_when_its_marker_is_committed(stage: Stage) -> None:
    stage.write(put("a", "1"), producer=producer(7))
    stage.write(put("b", "2"), producer=producer(8))
    stage.log.commit()
    header = read_header(stage.log.batches[0])
    assert (header.producer_id, header.is_transactional, header.is_control) == (7, True, False)
    assert stage.committed() == {}
    end = stage.runtime.complete_transaction(0, "end", producer(7), committed=True, coordinator_epoch=3)
    assert stage.newest() == {"a": "1"}
    assert stage.committed() == {}
    assert not end.done()
    stage.log.commit()
    assert end.done()
    stage.runtime.complete_transaction(0, "end", producer(8), committed=False, coordinator_epoch=3)
    stage.log.commit()
    assert stage.committed() == stage.newest() == {"a": "1"}
    assert read_header(stage.log.batches[-1]).is_control


def test_a_refused_marker_leaves_the_transaction_open(stage: Stage) -> None:
    stage.write(put("a", "1"), producer=producer(7))
    stage.log.refusals.append(KafkaError(ErrorCode.TRANSACTION_COORDINATOR_FENCED))
    end = stage.runtime.complete_transaction(0, "end", producer(7), committed=True, coordinator_epoch=3)
    assert code_of(end) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert stage.newest() == {}
    assert dict(stage.shard.open.items()) == {7: (("a", "1"),)}


def test_somebody_else_in_the_log_makes_the_shard_load_again(make_stage: MakeStage) -> None:
    stage = make_stage(commits_at_once=True)
    stage.write(put("a", "1"))
    stage.log.add(stage.log.batches[0])
    confused = stage.write(put("b", "2"))
    assert code_of(confused) is ErrorCode.NOT_COORDINATOR
    assert stage.runtime.state(0) is ShardState.LOADING
    assert code_of(stage.write(put("c", "3"))) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    stage.world.settle()
    assert stage.committed() == {"a": "1", "b": "2"}
    assert stage.write(put("c", "3")).result() == "c=3"


def test_a_newer_leader_epoch_goes_on_with_the_same_shard(stage: Stage) -> None:
    waiting = stage.write(put("a", "1"))
    stage.log.leader_epoch = 5
    stage.runtime.leadership_changed(0, 5)
    assert stage.shard.context.leader_epoch == stage.runtime.leader_epoch(0) == 5
    stage.write(put("b", "2"))
    stage.log.commit()
    assert waiting.done()
    assert len(stage.shards) == 1


def test_an_older_epoch_unloads_nothing(stage: Stage) -> None:
    stage.log.leader_epoch = 5
    stage.runtime.load(0, 5)
    stage.runtime.unload(0, 4)
    assert stage.runtime.state(0) is ShardState.ACTIVE
    stage.runtime.unload(0, 6)
    assert stage.runtime.state(0) is None


def test_close_answers_who_waits_and_refuses_the_rest(stage: Stage) -> None:
    waiting = stage.write(put("a", "1"))
    stage.runtime.close()
    assert code_of(waiting) is ErrorCode.NOT_COORDINATOR
    assert code_of(stage.write(put("b", "1"))) is ErrorCode.NOT_COORDINATOR
    stage.runtime.load(0, 9)
    assert stage.runtime.state(0) is None
    assert stage.world.timer_count == 0
    assert stage.log.listeners == []


def test_questions_to_all_shards(make_stage: MakeStage) -> None:
    stage = make_stage(commits_at_once=True)
    assert stage.write(put("a", "1")).result() == "a=1"
    assert stage.runtime.read_all(lambda shard: shard.words.get_committed("a")) == ["1"]


def test_transitions_are_those_of_the_table() -> None:
    for old in ShardState:
        for new in ShardState:
            if new in LEGAL_TRANSITIONS[old]:
                check_transition(old, new)
            else:
                with pytest.raises(RuntimeError):
                    check_transition(old, new)
