"""`__consumer_offsets`: committed offsets and classic groups.

Key types: 0 and 1 are offset commits (0 is what Kafka wrote before 0.8.3; it is read), 2 is a group. Types from 3 on
belong to the newer group protocols and are unknown here.

Offsets are written in version 4 (1 when they expire at a fixed time), groups in version 3, as Kafka 4.3 does.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.coordinator.records.errors import RecordFormatError, UnknownRecordTypeError
from penstock.coordinator.records.layouts import GroupMetadataLayout, MemberLayout, OffsetCommitLayout
from penstock.coordinator.records.values import decode_value, encode_value, read_string, read_type, string
from penstock.coordinator.runtime.shard import CoordinatorRecord
from penstock.protocol.primitives import compact_string

_VERSION_4_HEAD: Final = struct.Struct(">hqi")
_INT64: Final = struct.Struct(">q")
_INT32: Final = struct.Struct(">i")
_NO_TAGS: Final = b"\x00"
_TOPIC_ID_TAG: Final = b"\x01\x00\x10"
"""One tagged field, number 0, of 16 bytes."""
_FLEXIBLE_FROM: Final = 4
_VERSION_MAX: Final = 4
_GROUP_VERSION: Final = 3


class GroupRecordType(IntEnum):
    LEGACY_OFFSET_COMMIT = 0
    OFFSET_COMMIT = 1
    GROUP_METADATA = 2


class OffsetCommitKey(NamedTuple):
    group: str
    topic: str
    partition: int


class GroupMetadataKey(NamedTuple):
    group: str


class OffsetCommitValue(NamedTuple):
    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = 0
    expire_timestamp_ms: int = -1
    """When the offset goes, whatever happens; -1: by `offsets.retention.minutes`. Only older clients set it."""
    topic_id: UUID = ZERO_UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberMetadata:
    member_id: str
    group_instance_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout_ms: int = -1
    session_timeout_ms: int = 0
    subscription: bytes = b""
    assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupMetadataValue:
    protocol_type: str = ""
    generation: int = 0
    protocol: str | None = None
    leader: str | None = None
    current_state_timestamp_ms: int = -1
    members: tuple[MemberMetadata, ...] = ()


def offset_commit_record(group: str, topic: str, partition: int, value: OffsetCommitValue | None) -> CoordinatorRecord:
    """A commit; None is its deletion."""
    key = b"\x00\x01" + string(group) + string(topic) + _INT32.pack(partition)
    return CoordinatorRecord(key, None if value is None else _encode_offset(value))


def group_metadata_record(group: str, value: GroupMetadataValue | None) -> CoordinatorRecord:
    """A classic group's generation; None is its deletion."""
    return CoordinatorRecord(b"\x00\x02" + string(group), None if value is None else _encode_group(value))


def decode_group_key(key: bytes) -> OffsetCommitKey | GroupMetadataKey:
    """KIP-848's and later kinds: UnknownRecordTypeError."""
    record_type = read_type(key)
    if record_type > GroupRecordType.GROUP_METADATA or record_type < 0:
        raise UnknownRecordTypeError(record_type)
    group, position = read_string(key, 2)
    if record_type == GroupRecordType.GROUP_METADATA:
        return GroupMetadataKey(group)
    topic, position = read_string(key, position)
    try:
        return OffsetCommitKey(group, topic, _INT32.unpack_from(key, position)[0])
    except struct.error as error:
        raise RecordFormatError(f"the key of an offset of group {group} is cut off") from error


def _encode_offset(value: OffsetCommitValue) -> bytes:
    """By hand, for it is by far the most frequent record."""
    if value.expire_timestamp_ms != -1:
        return _encode_expiring_offset(value)
    head = _VERSION_4_HEAD.pack(4, value.offset, value.leader_epoch)
    text = compact_string(value.metadata)
    tags = _NO_TAGS if value.topic_id == ZERO_UUID else _TOPIC_ID_TAG + value.topic_id.bytes
    return head + text + _INT64.pack(value.commit_timestamp_ms) + tags


def _encode_expiring_offset(value: OffsetCommitValue) -> bytes:
    layout = OffsetCommitLayout(
        offset=value.offset,
        metadata=value.metadata,
        commit_timestamp=value.commit_timestamp_ms,
        expire_timestamp=value.expire_timestamp_ms,
    )
    return encode_value(layout, 1, _FLEXIBLE_FROM)


def decode_offset_commit_value(value: bytes) -> OffsetCommitValue:
    layout = decode_value(OffsetCommitLayout, value, _VERSION_MAX, _FLEXIBLE_FROM)
    return OffsetCommitValue(
        layout.offset,
        layout.leader_epoch,
        layout.metadata,
        layout.commit_timestamp,
        layout.expire_timestamp,
        layout.topic_id,
    )


def _encode_group(value: GroupMetadataValue) -> bytes:
    layout = GroupMetadataLayout(
        protocol_type=value.protocol_type,
        generation=value.generation,
        protocol=value.protocol,
        leader=value.leader,
        current_state_timestamp=value.current_state_timestamp_ms,
        members=[
            MemberLayout(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for member in value.members
        ],
    )
    return encode_value(layout, _GROUP_VERSION, _FLEXIBLE_FROM)


def decode_group_metadata_value(value: bytes) -> GroupMetadataValue:
    layout = decode_value(GroupMetadataLayout, value, _VERSION_MAX, _FLEXIBLE_FROM)
    return GroupMetadataValue(
        protocol_type=layout.protocol_type,
        generation=layout.generation,
        protocol=layout.protocol,
        leader=layout.leader,
        current_state_timestamp_ms=layout.current_state_timestamp,
        members=tuple(
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                # Version 0 had one time-out for both.
                rebalance_timeout_ms=member.session_timeout
                if member.rebalance_timeout == -1
                else member.rebalance_timeout,
                session_timeout_ms=member.session_timeout,
                subscription=bytes(member.subscription),
                assignment=bytes(member.assignment),
            )
            for member in layout.members
        ),
    )
