"""The records of the coordinators' topics as JSON, in the shape of Kafka's own dump tool.

The topics are `__consumer_offsets`, `__transaction_state` and `__share_group_state`.

A record is a key and a value that begin with a number of 16 bits: which layout the key has, and which version of its
layout the value has. Records of kinds that are not known here are said to be, and skipped.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from penstock.base.errors import KafkaError
from penstock.base.types import uuid_to_text
from penstock.cli.failures import Failed
from penstock.cli.kafka import newer_group_layouts as newer
from penstock.cli.kafka import record_json, share_group_layouts
from penstock.cli.kafka.record_json import dumps, fields
from penstock.coordinator.records.errors import RecordFormatError
from penstock.coordinator.records.layouts import (
    GroupMetadataLayout,
    MemberLayout,
    OffsetCommitLayout,
    TransactionLayout,
)
from penstock.coordinator.records.values import decode_value, read_string, read_type
from penstock.protocol.codec import decode
from penstock.protocol.errors import DecodeError
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from penstock.protocol.schema import Message

_INT16: Final = struct.Struct(">h")
_FIXED_KEYS: Final = {"partition": struct.Struct(">i"), "topicId": struct.Struct(">16s")}
"""The parts of keys that are no text."""
_CONSUMER_PROTOCOL_VERSION_MAX: Final = 3
_DELETED: Final = "<DELETE>"


class Kind(NamedTuple):
    """What a kind of record has in its key, and the layout of its value."""

    key: tuple[str, ...]
    value: type[Message]
    version_max: int
    flexible_from: int


_OFFSET: Final = Kind(("group", "topic", "partition"), OffsetCommitLayout, 4, 4)
OFFSETS: Final[Mapping[int, Kind]] = {
    0: _OFFSET,
    1: _OFFSET,
    2: Kind(("group",), GroupMetadataLayout, 4, 4),
    3: Kind(("groupId",), newer.GroupEpochLayout, 0, 0),
    5: Kind(("groupId", "memberId"), newer.GroupMemberLayout, 0, 0),
    6: Kind(("groupId",), newer.TargetEpochLayout, 0, 0),
    7: Kind(("groupId", "memberId"), newer.TargetMemberLayout, 0, 0),
    8: Kind(("groupId", "memberId"), newer.CurrentMemberLayout, 0, 0),
}
TRANSACTIONS: Final[Mapping[int, Kind]] = {0: Kind(("transactionalId",), TransactionLayout, 1, 1)}
SHARES: Final[Mapping[int, Kind]] = {
    0: Kind(("groupId", "topicId", "partition"), share_group_layouts.ShareSnapshotLayout, 0, 0),
    1: Kind(("groupId", "topicId", "partition"), share_group_layouts.ShareUpdateLayout, 0, 0),
}


def decode_offsets_record(offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    """A record of `__consumer_offsets`."""
    return _decode(OFFSETS, offset, key, value)


def decode_transaction_record(offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    """A record of `__transaction_state`."""
    return _decode(TRANSACTIONS, offset, key, value)


def decode_share_record(offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    """A record of `__share_group_state`."""
    return _decode(SHARES, offset, key, value)


def _decode(kinds: Mapping[int, Kind], offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    if key is None:
        raise Failed(
            f"the record at offset {offset} has no key, so it is none of this topic: --offsets-decoder is for "
            "__consumer_offsets, --transaction-log-decoder for __transaction_state, --share-group-state-decoder for "
            "__share_group_state"
        )
    try:
        number = read_type(key)
        kind = kinds.get(number)
        if kind is None:
            return f"Unknown record type {number} at offset {offset}, skipping.", None
        shown_key = {"type": str(number), "data": key_fields(kind, key)}
        if value is None:
            return dumps(shown_key), _DELETED
        return dumps(shown_key), dumps(_value(kind, value))
    except (RecordFormatError, DecodeError, KafkaError) as error:
        return f"Error at offset {offset}, skipping. {error}", None


def key_fields(kind: Kind, key: bytes) -> dict[str, object]:
    found: dict[str, object] = {}
    position = _INT16.size
    for name in kind.key:
        fixed = _FIXED_KEYS.get(name)
        if fixed is None:
            found[name], position = read_string(key, position)
        elif len(key) < position + fixed.size:
            raise RecordFormatError(f"the key is cut off in its {name}")
        else:
            (value,) = fixed.unpack_from(key, position)
            found[name] = uuid_to_text(UUID(bytes=value)) if name == "topicId" else value
            position += fixed.size
    return found


def _value(kind: Kind, value: bytes) -> dict[str, object]:
    layout = decode_value(kind.value, value, kind.version_max, kind.flexible_from)
    (version,) = _INT16.unpack_from(value)
    shown = fields(layout, version)
    if isinstance(layout, GroupMetadataLayout) and layout.protocol_type == "consumer":
        shown["members"] = [_member(each, version) for each in layout.members]
    return {"version": str(version), "data": shown}


def _member(member: MemberLayout, version: int) -> dict[str, Any]:
    """What a consumer subscribes to and was assigned, where it can be read; else its bytes."""
    shown = fields(member, version)
    shown["subscription"] = _embedded(ConsumerProtocolSubscription, member.subscription)
    shown["assignment"] = _embedded(ConsumerProtocolAssignment, member.assignment)
    return shown


def _embedded(layout: type[Message], data: bytes) -> object:
    if len(data) < _INT16.size:
        return record_json.shown(data, 0)
    version = min(_INT16.unpack_from(data)[0], _CONSUMER_PROTOCOL_VERSION_MAX)
    try:
        return fields(decode(layout, version, False, bytes(data[_INT16.size :])), version)
    except DecodeError:
        return record_json.shown(data, 0)
