"""ListOffsets, OffsetForLeaderEpoch and DeleteRecords on a partition."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.metadata.image import PartitionState
from penstock.records.validation import ProduceRules, validate_produced
from penstock.replication.fetching import FetchIsolation
from penstock.replication.offsets import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_TIMESTAMP,
    HIGH_WATERMARK_OFFSET,
    LATEST_TIERED_TIMESTAMP,
    LATEST_TIMESTAMP,
    MAX_TIMESTAMP,
    NOT_FOUND,
    delete_records,
    end_offset_for_leader_epoch,
    list_offset,
)
from penstock.replication.partition import Partition
from tests.unit.replication.fakes import START_MS, VirtualWorld, batch, make_partition, settings


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    """Offsets 0-2 of epoch 2 with timestamps START, +1, +2."""
    world = VirtualWorld()
    state = PartitionState(replicas=(0,), isr=(0,), leader=0, leader_epoch=2)
    partition = make_partition(tmp_path, world, state=state)
    partition.append(validate_produced(batch(b"a", b"b", b"c"), ProduceRules(), START_MS), 1, START_MS)
    return partition


def test_special_places(partition: Partition) -> None:
    assert list_offset(partition, LATEST_TIMESTAMP) == (-1, 3, 2)
    assert list_offset(partition, EARLIEST_TIMESTAMP) == (-1, 0, 2)
    assert list_offset(partition, EARLIEST_LOCAL_TIMESTAMP) == (-1, 0, 2)
    assert list_offset(partition, LATEST_TIERED_TIMESTAMP) == NOT_FOUND
    assert list_offset(partition, MAX_TIMESTAMP) == (START_MS + 2, 2, 2)


def test_by_time(partition: Partition) -> None:
    assert list_offset(partition, 0) == (START_MS, 0, 2)
    assert list_offset(partition, START_MS + 1) == (START_MS + 1, 1, 2)
    assert list_offset(partition, START_MS + 9) == NOT_FOUND


def test_an_unknown_place_is_refused(partition: Partition) -> None:
    with pytest.raises(KafkaError) as caught:
        list_offset(partition, -6)
    assert caught.value.code is ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(("epoch", "code"), [(1, ErrorCode.FENCED_LEADER_EPOCH), (3, ErrorCode.UNKNOWN_LEADER_EPOCH)])
def test_epochs_are_checked(partition: Partition, epoch: int, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as caught:
        list_offset(partition, LATEST_TIMESTAMP, current_leader_epoch=epoch)
    assert caught.value.code is code
    with pytest.raises(KafkaError) as caught:
        end_offset_for_leader_epoch(partition, 2, current_leader_epoch=epoch)
    assert caught.value.code is code


def test_an_open_transaction_ends_what_readers_of_committed_records_see(partition: Partition) -> None:
    records = batch(b"t", producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    partition.append(validate_produced(records, ProduceRules(), START_MS), 1, START_MS)
    assert list_offset(partition, LATEST_TIMESTAMP).offset == 4
    assert list_offset(partition, LATEST_TIMESTAMP, isolation=FetchIsolation.COMMITTED).offset == 3


def test_after_an_election_offsets_are_not_available_until_the_watermark_has_caught_up(tmp_path: Path) -> None:
    world = VirtualWorld()
    state = PartitionState(replicas=(0, 1), isr=(0, 1), leader=0)
    partition = make_partition(tmp_path, world, state=state)
    partition.append(validate_produced(batch(b"a"), ProduceRules(), START_MS), 1, START_MS)
    partition.apply_state(
        PartitionState(replicas=(0, 1), isr=(0, 1), leader=0, leader_epoch=1, partition_epoch=1), START_MS
    )
    for timestamp in (LATEST_TIMESTAMP, MAX_TIMESTAMP, START_MS):
        with pytest.raises(KafkaError) as caught:
            list_offset(partition, timestamp)
        assert caught.value.code is ErrorCode.OFFSET_NOT_AVAILABLE
    assert list_offset(partition, LATEST_TIMESTAMP, isolation=FetchIsolation.LOG_END).offset == 1
    assert list_offset(partition, EARLIEST_TIMESTAMP).offset == 0


def test_the_end_of_an_epoch(partition: Partition) -> None:
    assert end_offset_for_leader_epoch(partition, 2) == (2, 3)
    assert end_offset_for_leader_epoch(partition, 3) == (-1, -1)
    assert end_offset_for_leader_epoch(partition, 1) == (1, 0)


def test_records_are_deleted_up_to_an_offset(partition: Partition) -> None:
    assert delete_records(partition, 2) == 2
    assert list_offset(partition, EARLIEST_TIMESTAMP).offset == 2
    assert delete_records(partition, HIGH_WATERMARK_OFFSET) == 3
    with pytest.raises(KafkaError) as caught:
        delete_records(partition, 4)
    assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE
    partition.update_settings(settings(cleanup_delete=False))
    with pytest.raises(KafkaError) as caught:
        delete_records(partition, 3)
    assert caught.value.code is ErrorCode.POLICY_VIOLATION
