"""The core of a partition: high watermark, ISR wishes, epochs and reads, with followers that tests move by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as run_settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.metadata.image import PartitionState
from penstock.records.validation import ProduceRules, validate_produced
from penstock.replication.fetching import FetchIsolation
from penstock.replication.partition import ALL_ACKS, Partition
from penstock.replication.replica import Replica
from tests.unit.replication.fakes import START_MS, VirtualWorld, batch, make_partition, settings, wanted

TRIPLE = PartitionState(replicas=(0, 1, 2), isr=(0, 1, 2), leader=0)


@pytest.fixture
def world() -> VirtualWorld:
    return VirtualWorld()


def append(partition: Partition, *values: bytes, acks: int = 1) -> int:
    validated = validate_produced(batch(*(values or (b"x",))), ProduceRules(), START_MS)
    return partition.append(validated, acks, START_MS).last_offset


def fetched(partition: Partition, replica_id: int, offset: int, world: VirtualWorld, epoch: int = -1) -> bool:
    replica = partition.follower(replica_id, -1)
    return partition.follower_fetched(replica, offset, log_start_offset=0, now_ms=world.time_ms(), broker_epoch=epoch)


def code_of(caught: pytest.ExceptionInfo[KafkaError]) -> ErrorCode:
    return caught.value.code


# -- High watermark ------------------------------------------------------------------------------------------------


def test_alone_the_high_watermark_is_the_log_end_at_every_append(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    assert partition.append_is_commit
    for expected in (1, 2, 3):
        append(partition, acks=ALL_ACKS)
        assert partition.log.high_watermark == partition.log.log_end_offset == expected


def test_the_high_watermark_is_the_smallest_end_in_the_isr(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=TRIPLE)
    assert not partition.append_is_commit
    append(partition, b"a", b"b", b"c")
    assert partition.log.high_watermark == 0
    assert not fetched(partition, 1, 3, world)
    assert fetched(partition, 2, 2, world)
    assert partition.log.high_watermark == 2
    assert fetched(partition, 2, 3, world)
    assert partition.log.high_watermark == 3


def test_a_replica_outside_the_isr_does_not_hold_the_high_watermark_back(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=PartitionState(replicas=(0, 1, 2), isr=(0, 1), leader=0))
    append(partition)
    assert fetched(partition, 1, 1, world)
    assert partition.log.high_watermark == 1


def test_a_replica_about_to_join_is_waited_for(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=PartitionState(replicas=(0, 1), isr=(0,), leader=0))
    append(partition)
    fetched(partition, 1, 1, world)
    append(partition)
    assert partition.log.high_watermark == 1
    world.advance(11)
    assert partition.maybe_advance_high_watermark(world.time_ms())
    assert partition.log.high_watermark == 2


def test_the_high_watermark_stands_still_below_the_minimum_isr(tmp_path: Path, world: VirtualWorld) -> None:
    state = PartitionState(replicas=(0, 1, 2), isr=(0,), leader=0)
    partition = make_partition(tmp_path, world, state=state, min_isr=2)
    append(partition, acks=1)
    assert partition.log.high_watermark == 0


# -- ISR wishes ----------------------------------------------------------------------------------------------------


def test_while_a_larger_isr_is_pending_the_high_watermark_counts_it(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=PartitionState(replicas=(0, 1, 2), isr=(0, 1), leader=0))
    append(partition)
    fetched(partition, 1, 1, world)
    fetched(partition, 2, 1, world)
    assert partition.joining_replica() == 2
    proposal = partition.propose_isr({0, 1, 2}, node_epoch=5)
    assert proposal.isr == ((0, 5), (1, -1), (2, -1))
    world.advance(60)
    append(partition)
    fetched(partition, 1, 2, world)
    assert partition.log.high_watermark == 1
    assert partition.isr == {0, 1}
    assert partition.maximal_isr == {0, 1, 2}
    partition.reject_isr(proposal)
    assert partition.maximal_isr == {0, 1}
    assert partition.maybe_advance_high_watermark(world.time_ms())


def test_while_a_smaller_isr_is_pending_the_high_watermark_counts_the_old_one(
    tmp_path: Path, world: VirtualWorld
) -> None:
    partition = make_partition(tmp_path, world, state=TRIPLE)
    append(partition)
    fetched(partition, 1, 1, world)
    world.advance(11)
    fetched(partition, 1, 1, world)
    assert partition.lagging_replicas(world.time_ms()) == {2}
    proposal = partition.propose_isr({0, 1}, node_epoch=5)
    assert partition.lagging_replicas(world.time_ms()) == frozenset()
    assert not partition.maybe_advance_high_watermark(world.time_ms())
    agreed = PartitionState(replicas=(0, 1, 2), isr=(0, 1), leader=0, partition_epoch=1)
    assert partition.commit_isr(proposal, agreed, world.time_ms())
    assert partition.log.high_watermark == 1
    assert partition.isr == {0, 1}


def test_an_answer_that_was_overtaken_changes_nothing(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=TRIPLE)
    proposal = partition.propose_isr({0}, node_epoch=5)
    newer = PartitionState(replicas=(0, 1, 2), isr=(0, 1), leader=0, partition_epoch=3)
    partition.apply_state(newer, world.time_ms())
    partition.commit_isr(
        proposal, PartitionState(replicas=(0, 1, 2), isr=(0,), leader=0, partition_epoch=1), world.time_ms()
    )
    assert partition.isr == {0, 1}
    partition.reject_isr(proposal)
    assert partition.maximal_isr == {0, 1}


def test_metadata_older_than_what_is_known_is_skipped(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(
        tmp_path, world, state=PartitionState(replicas=(0, 1), isr=(0, 1), leader=0, partition_epoch=4)
    )
    stale = PartitionState(replicas=(0, 1), isr=(1,), leader=1, leader_epoch=0, partition_epoch=3)
    assert not partition.apply_state(stale, world.time_ms())
    assert partition.is_leader


def test_a_follower_of_an_earlier_life_may_not_join(tmp_path: Path, world: VirtualWorld) -> None:
    state = PartitionState(replicas=(0, 1), isr=(0,), leader=0)
    partition = make_partition(tmp_path, world, state=state, eligible=lambda broker, epoch: epoch == 8)
    fetched(partition, 1, 0, world, epoch=7)
    assert partition.joining_replica() is None
    fetched(partition, 1, 0, world, epoch=8)
    assert partition.joining_replica() == 1
    with pytest.raises(KafkaError) as caught:
        fetched(partition, 1, 0, world, epoch=7)
    assert code_of(caught) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_follower_joins_only_beyond_the_start_of_the_leader_epoch(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=PartitionState(replicas=(0, 1), isr=(0,), leader=0))
    append(partition)
    append(partition)
    again = PartitionState(replicas=(0, 1), isr=(0,), leader=0, leader_epoch=1, partition_epoch=1)
    assert partition.apply_state(again, world.time_ms())
    fetched(partition, 1, 1, world)
    assert partition.joining_replica() is None
    fetched(partition, 1, 2, world)
    assert partition.joining_replica() == 1


def test_an_unknown_follower_is_refused(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=TRIPLE)
    with pytest.raises(KafkaError) as caught:
        partition.follower(9, -1)
    assert code_of(caught) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    with pytest.raises(KafkaError) as caught:
        partition.follower(9, 0)
    assert code_of(caught) is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_follower_that_always_trails_a_little_is_caught_up() -> None:
    replica = Replica(1)
    replica.reset(now_ms=0, in_sync=True)
    for turn in range(1, 6):
        # It asks for the end as it was at its fetch before.
        replica.fetched(turn - 1, log_start_offset=0, now_ms=turn * 1000, leader_end=turn, broker_epoch=1)
    assert replica.last_caught_up_ms == 4000
    assert replica.is_caught_up(leader_end=5, now_ms=13_000, lag_time_max_ms=10_000)
    assert not replica.is_caught_up(leader_end=5, now_ms=15_000, lag_time_max_ms=10_000)


@given(steps=st.lists(st.tuples(st.sampled_from(["append", "fetch", "propose", "reject"]), st.integers(1, 2))))
@run_settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_the_high_watermark_never_passes_a_member_of_the_isr_nor_goes_back(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int]]
) -> None:
    world = VirtualWorld()
    partition = make_partition(tmp_path_factory.mktemp("log"), world, state=TRIPLE)
    ends = {1: 0, 2: 0}
    pending = None
    last = 0
    for action, who in steps:
        if action == "append":
            append(partition)
        elif action == "fetch":
            ends[who] = min(partition.log.log_end_offset, ends[who] + 1)
            fetched(partition, who, ends[who], world)
        elif action == "propose" and pending is None:
            pending = partition.propose_isr({0, who}, node_epoch=1)
        elif action == "reject" and pending is not None:
            partition.reject_isr(pending)
            pending = None
        assert last <= partition.log.high_watermark <= min(ends.values())
        last = partition.log.high_watermark
    partition.log.close()


# -- Appends -------------------------------------------------------------------------------------------------------


def test_too_few_in_sync_replicas_refuse_acks_all_only(tmp_path: Path, world: VirtualWorld) -> None:
    state = PartitionState(replicas=(0, 1, 2), isr=(0,), leader=0)
    partition = make_partition(tmp_path, world, state=state, min_isr=2)
    with pytest.raises(KafkaError) as caught:
        append(partition, acks=ALL_ACKS)
    assert code_of(caught) is ErrorCode.NOT_ENOUGH_REPLICAS
    assert partition.log.log_end_offset == 0
    append(partition, acks=1)
    assert partition.log.log_end_offset == 1


def test_the_minimum_isr_is_never_above_the_replica_count(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, min_isr=3)
    append(partition, acks=ALL_ACKS)
    assert partition.log.high_watermark == 1


def test_a_follower_does_not_append_as_leader(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    partition.apply_state(
        PartitionState(replicas=(0, 1), isr=(1,), leader=1, leader_epoch=1, partition_epoch=1), world.time_ms()
    )
    with pytest.raises(KafkaError) as caught:
        append(partition)
    assert code_of(caught) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_flushing_by_count_means_an_append_is_not_its_own_commit(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    partition.update_settings(settings(flush_messages=1))
    assert not partition.append_is_commit


# -- Epochs and reads ----------------------------------------------------------------------------------------------


def test_epochs_fence_both_ways(tmp_path: Path, world: VirtualWorld) -> None:
    state = PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=5)
    partition = make_partition(tmp_path, world, state=state)
    partition.check_leader_epoch(-1)
    partition.check_leader_epoch(5)
    for epoch, code in ((4, ErrorCode.FENCED_LEADER_EPOCH), (6, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        with pytest.raises(KafkaError) as caught:
            partition.check_leader_epoch(epoch)
        assert code_of(caught) is code
        with pytest.raises(KafkaError) as caught:
            partition.read(wanted(0, current_leader_epoch=epoch), 100, FetchIsolation.HIGH_WATERMARK, True)
        assert code_of(caught) is code


def test_a_new_leader_epoch_is_known_before_its_first_record(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    append(partition)
    partition.apply_state(
        PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=3, partition_epoch=1), world.time_ms()
    )
    assert partition.log.end_offset_for_epoch(0) == (1, 0)
    assert partition.log.end_offset_for_epoch(3) == (1, 3)


def test_each_isolation_sees_as_far_as_it_may(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=TRIPLE)
    append(partition)
    append(partition)
    fetched(partition, 1, 1, world)
    fetched(partition, 2, 1, world)
    one = len(batch(b"x"))
    for isolation, batches in ((FetchIsolation.LOG_END, 2), (FetchIsolation.HIGH_WATERMARK, 1)):
        result = partition.read(wanted(0), 1 << 20, isolation, True)
        assert result.records is not None
        assert result.records.length == batches * one
        assert partition.readable_bytes(wanted(0), isolation) == batches * one
        result.records.release()
    beyond = partition.read(wanted(2), 100, FetchIsolation.HIGH_WATERMARK, True)
    assert (beyond.records, beyond.high_watermark) == (None, 1)
    with pytest.raises(KafkaError) as caught:
        partition.read(wanted(3), 100, FetchIsolation.HIGH_WATERMARK, True)
    assert code_of(caught) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_reader_whose_log_parted_from_this_one_is_told_where(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    append(partition)
    append(partition)
    partition.apply_state(
        PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=3, partition_epoch=1), world.time_ms()
    )
    append(partition)

    def read(offset: int, epoch: int) -> tuple[int, int] | None:
        result = partition.read(wanted(offset, last_fetched_epoch=epoch), 1 << 20, FetchIsolation.HIGH_WATERMARK, True)
        if result.records is not None:
            result.records.release()
        return result.diverging_epoch

    assert read(2, 0) is None
    assert read(3, 0) == (0, 2)
    assert read(3, 3) is None
    assert read(2, 2) == (0, 2)
    with pytest.raises(KafkaError) as caught:
        read(2, 9)
    assert code_of(caught) is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_stopped_partition_refuses_with_its_reason(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    partition.stop(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with pytest.raises(KafkaError) as caught:
        append(partition)
    assert code_of(caught) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(KafkaError) as caught:
        partition.read(wanted(0), 100, FetchIsolation.HIGH_WATERMARK, True)
    assert code_of(caught) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# -- Deleting records ----------------------------------------------------------------------------------------------


def test_records_are_deleted_up_to_the_high_watermark_at_most(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    append(partition, b"a", b"b", b"c")
    partition.delete_records_before(1)
    assert partition.low_watermark == 1
    for offset in (4, -2):
        with pytest.raises(KafkaError) as caught:
            partition.delete_records_before(offset)
        assert code_of(caught) is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.delete_records_before(0)
    assert partition.low_watermark == 1, "the start of a log never goes back"
    partition.delete_records_before(-1)
    assert partition.low_watermark == 3


def test_a_log_that_is_only_compacted_keeps_its_records(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world)
    append(partition)
    partition.update_settings(settings(cleanup_compact=True, cleanup_delete=False))
    with pytest.raises(KafkaError) as caught:
        partition.delete_records_before(1)
    assert code_of(caught) is ErrorCode.POLICY_VIOLATION
    partition.update_settings(settings(cleanup_compact=True, cleanup_delete=True))
    partition.delete_records_before(1)


def test_a_follower_deletes_nothing_by_itself(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=PartitionState(replicas=(0, 1), isr=(0, 1), leader=1))
    with pytest.raises(KafkaError) as caught:
        partition.delete_records_before(0)
    assert code_of(caught) is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_low_watermark_waits_for_those_in_sync(tmp_path: Path, world: VirtualWorld) -> None:
    partition = make_partition(tmp_path, world, state=PartitionState(replicas=(0, 1), isr=(0, 1), leader=0))
    append(partition, b"a", b"b")
    fetched(partition, 1, 2, world)
    partition.delete_records_before(2)
    assert (partition.log.log_start_offset, partition.low_watermark) == (2, 0)
