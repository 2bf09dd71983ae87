"""Which offsets and groups have had their time.

Offsets of an empty group go `offsets.retention.minutes` after it became empty; those of a group that only commits,
after the commit; those of a stable consumer group, after the commit too, but only for topics it no longer reads. Groups
that are neither keep theirs. An empty group goes when its last offset has gone. Older clients could name an expiry time
of their own, which then counts alone.
"""

from __future__ import annotations

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.offset_store import OffsetStore
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.records.group_records import OffsetCommitValue, group_metadata_record, offset_commit_record
from penstock.coordinator.runtime.shard import CoordinatorRecord

GROUPS_PER_TURN_MAX = 500


def expire(store: OffsetStore, group: ClassicGroup, now_ms: int, retention_ms: int) -> list[CoordinatorRecord]:
    """Tombstones for the expired offsets of a group, and for the group itself when nothing is left of it."""
    offsets = store.of_group(group.group_id)
    records: list[CoordinatorRecord] = []
    if offsets is not None:
        if not _offsets_expire(group):
            return records
        for (topic, partition), offset in offsets.items():
            if (
                not group.is_subscribed_to(topic)
                and _is_expired(group, offset.value, now_ms, retention_ms)
                and not store.has_pending(group.group_id, topic, partition)
            ):
                records.append(offset_commit_record(group.group_id, topic, partition, None))
        if len(records) < len(offsets):
            return records
    if group.is_empty and not group.pending_join and not store.has_open_transaction(group.group_id):
        records.append(group_metadata_record(group.group_id, None))
    return records


def _offsets_expire(group: ClassicGroup) -> bool:
    if group.protocol_type is None or group.is_empty:
        return True
    return group.is_consumer_group and group.topics is not None and group.state is GroupState.STABLE


def _is_expired(group: ClassicGroup, value: OffsetCommitValue, now_ms: int, retention_ms: int) -> bool:
    if value.expire_timestamp_ms >= 0:
        return now_ms >= value.expire_timestamp_ms
    since_ms = value.commit_timestamp_ms
    if group.protocol_type is not None and group.is_empty and group.state_timestamp_ms >= 0:
        since_ms = group.state_timestamp_ms
    return now_ms - since_ms >= retention_ms
