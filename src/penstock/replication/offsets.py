"""Questions about the offsets of a partition, as ListOffsets, OffsetForLeaderEpoch and DeleteRecords ask them."""

from __future__ import annotations

from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.replication.fetching import FetchIsolation
from penstock.replication.partition import Partition

LATEST_TIMESTAMP = -1
EARLIEST_TIMESTAMP = -2
MAX_TIMESTAMP = -3
EARLIEST_LOCAL_TIMESTAMP = -4
LATEST_TIERED_TIMESTAMP = -5
HIGH_WATERMARK_OFFSET = -1
"""DeleteRecords' word for "everything that is committed"."""


class ListedOffset(NamedTuple):
    """-1 everywhere when no record answers the question."""

    timestamp: int = -1
    offset: int = -1
    leader_epoch: int = -1


NOT_FOUND = ListedOffset()


def list_offset(
    partition: Partition,
    timestamp: int,
    *,
    isolation: FetchIsolation = FetchIsolation.HIGH_WATERMARK,
    current_leader_epoch: int = -1,
) -> ListedOffset:
    """The first offset whose record is at or after `timestamp`, or one of the special places above.

    There is no tiered storage, so the local log is the whole log and its tiered part is empty.
    """
    partition.check_leader(current_leader_epoch)
    log = partition.log
    end = partition.readable_end(isolation)
    if timestamp == LATEST_TIMESTAMP:
        _check_epoch_reached(partition, isolation)
        return ListedOffset(-1, end, partition.leader_epoch)
    if timestamp in (EARLIEST_TIMESTAMP, EARLIEST_LOCAL_TIMESTAMP):
        return ListedOffset(*log.earliest())
    if timestamp == LATEST_TIERED_TIMESTAMP:
        return NOT_FOUND
    if timestamp < 0 and timestamp != MAX_TIMESTAMP:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"{timestamp} is no timestamp that this broker knows.")
    found = log.offset_of_max_timestamp() if timestamp == MAX_TIMESTAMP else log.offset_for_timestamp(timestamp)
    if found is not None and found[1] < end:
        return ListedOffset(*found)
    # A record that is not visible yet might be the answer after all.
    _check_epoch_reached(partition, isolation)
    return NOT_FOUND


def _check_epoch_reached(partition: Partition, isolation: FetchIsolation) -> None:
    """After an election the watermark may lag behind what the former leader had shown already."""
    if isolation != FetchIsolation.LOG_END and partition.leader_epoch_start > partition.log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_NOT_AVAILABLE,
            f"The high watermark of {partition.topic_partition} has not reached the start of leader epoch "
            f"{partition.leader_epoch}.",
        )


def end_offset_for_leader_epoch(
    partition: Partition, leader_epoch: int, *, current_leader_epoch: int = -1
) -> tuple[int, int]:
    """The largest epoch at or below `leader_epoch` and where it ends; (-1, -1) when that is not known."""
    partition.check_leader(current_leader_epoch)
    found = partition.log.end_offset_for_epoch(leader_epoch)
    return (-1, -1) if found is None else (found.epoch, found.offset)


def delete_records(partition: Partition, offset: int) -> int:
    """Move the start of the log to `offset`; returns the low watermark, the smallest start over all replicas."""
    partition.check_leader()
    log = partition.log
    if not partition.settings.log.cleanup_delete:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Records of partition {partition.topic_partition} can not be deleted due to the configured policy",
        )
    target = log.high_watermark if offset == HIGH_WATERMARK_OFFSET else offset
    if target < 0 or target > log.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Offset {target} is not between 0 and the high watermark {log.high_watermark} of "
            f"{partition.topic_partition}.",
        )
    log.delete_records_before(target)
    return min([log.log_start_offset, *(each.log_start_offset for each in partition.remote.values())])
