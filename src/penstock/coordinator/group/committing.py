"""OffsetCommit, TxnOffsetCommit and OffsetDelete: who may change a group's offsets, and the records that do it.

A commit is fenced by the generation: members commit for their own, everybody else (simple consumers, admin tools) only
while the group is empty. Topics are looked up by the caller; here their names are just names.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import ZERO_UUID
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.offset_store import OffsetStore
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.records.group_records import OffsetCommitValue, offset_commit_record
from penstock.coordinator.runtime.shard import CoordinatorRecord, Result

NO_RETENTION = -1
TIMESTAMP_MAX = 2**63 - 1

_GROUP_NOT_FOUND_FROM = 9


class OffsetToCommit(NamedTuple):
    """One partition's offset as a client commits it."""

    topic: str
    partition: int
    offset: int
    leader_epoch: int = -1
    metadata: str | None = None
    topic_id: UUID = ZERO_UUID


class Committer(NamedTuple):
    """On whose behalf: a member of a generation, or nobody's (generation -1, no member id)."""

    member_id: str = ""
    group_instance_id: str | None = None
    generation: int = -1


class PartitionResult(NamedTuple):
    topic: str
    partition: int
    code: ErrorCode


def check_commit(group: ClassicGroup | None, group_id: str, committer: Committer, api_version: int) -> None:
    """Whether an OffsetCommit of this version may be taken."""
    if group is None:
        if committer.generation < 0:
            return
        if api_version >= _GROUP_NOT_FOUND_FROM:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
        raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {group_id}")
    if committer.generation < 0 and group.is_empty:
        return
    if _names_nobody(committer):
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"{group_id} has members, and the commit is not from one of them")
    _check_committer(group, committer)
    if group.state is GroupState.COMPLETING_REBALANCE:
        raise KafkaError(ErrorCode.REBALANCE_IN_PROGRESS, f"{group_id} waits for its assignment")


def check_transactional_commit(group: ClassicGroup | None, group_id: str, committer: Committer) -> None:
    """As `check_commit`, for a transaction: the state of the group does not matter, and older clients name nobody."""
    if group is None:
        if committer.generation >= 0:
            raise KafkaError(ErrorCode.ILLEGAL_GENERATION, f"there is no group {group_id}")
        return
    if (committer.generation < 0 and group.is_empty) or _names_nobody(committer):
        return
    _check_committer(group, committer)


def _names_nobody(committer: Committer) -> bool:
    return committer.generation < 0 and not committer.member_id and committer.group_instance_id is None


def _check_committer(group: ClassicGroup, committer: Committer) -> None:
    group.check_member(committer.member_id, committer.group_instance_id)
    if committer.generation != group.generation:
        raise KafkaError(
            ErrorCode.ILLEGAL_GENERATION,
            f"{group.group_id} is in generation {group.generation}, the commit is of {committer.generation}",
        )


def commit(
    group_id: str,
    offsets: Iterable[OffsetToCommit],
    *,
    now_ms: int,
    retention_ms: int = NO_RETENTION,
    metadata_max_size: int,
) -> Result[list[PartitionResult]]:
    """The records of a commit that is allowed. Metadata that is too long spoils its own partition only."""
    # A client may ask for more than there is time.
    expire_timestamp_ms = -1 if retention_ms == NO_RETENTION else min(now_ms + retention_ms, TIMESTAMP_MAX)
    records: list[CoordinatorRecord] = []
    results: list[PartitionResult] = []
    for topic, partition, offset, leader_epoch, metadata, topic_id in offsets:
        if metadata is not None and utf16_length(metadata) > metadata_max_size:
            results.append(PartitionResult(topic, partition, ErrorCode.OFFSET_METADATA_TOO_LARGE))
            continue
        value = OffsetCommitValue(offset, leader_epoch, metadata or "", now_ms, expire_timestamp_ms, topic_id)
        records.append(offset_commit_record(group_id, topic, partition, value))
        results.append(PartitionResult(topic, partition, ErrorCode.NONE))
    return Result(records, results)


def utf16_length(text: str) -> int:
    """A string's length as Java counts it, which is what the limit is in."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


# -- Deleting ----------------------------------------------------------------------------------------------------------


def check_offset_delete(group: ClassicGroup | None, group_id: str) -> ClassicGroup:
    """Offsets of a consumer group with members may go for topics it does not read; of other groups, only when empty."""
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not group.is_empty and not group.is_consumer_group:
        raise KafkaError(ErrorCode.NON_EMPTY_GROUP, f"{group_id} has members")
    return group


def delete(
    store: OffsetStore, group: ClassicGroup, partitions: Iterable[tuple[str, int]]
) -> Result[list[PartitionResult]]:
    records: list[CoordinatorRecord] = []
    results: list[PartitionResult] = []
    group_id = group.group_id
    for topic, partition in partitions:
        if group.is_subscribed_to(topic):
            results.append(PartitionResult(topic, partition, ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC))
            continue
        results.append(PartitionResult(topic, partition, ErrorCode.NONE))
        if store.get(group_id, topic, partition) is not None or store.has_pending(group_id, topic, partition):
            records.append(offset_commit_record(group_id, topic, partition, None))
    return Result(records, results)


def delete_all(store: OffsetStore, group_id: str, topics: frozenset[str] | None = None) -> list[CoordinatorRecord]:
    """Tombstones for everything a group has committed or is about to commit, in some topics or in all."""
    keys = dict.fromkeys(store.of_group(group_id) or ())
    keys.update(dict.fromkeys(store.pending_of_group(group_id)))
    return [
        offset_commit_record(group_id, topic, partition, None)
        for topic, partition in keys
        if topics is None or topic in topics
    ]
