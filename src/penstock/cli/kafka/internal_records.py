"""The records of `__consumer_offsets` and `__transaction_state` as JSON, in the shape of Kafka's own dump tool.

A record is a key and a value that begin with a number of 16 bits: which layout the key has, and which version of its
layout the value has. Records of kinds that are not known here are said to be, and skipped.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from uuid import UUID

from penstock.base.errors import KafkaError
from penstock.cli.failures import Failed
from penstock.cli.kafka import newer_group_layouts as newer
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
from penstock.protocol.schema import Message, Wire, wire_fields

_INT16: Final = struct.Struct(">h")
_INT32: Final = struct.Struct(">i")
_CONSUMER_PROTOCOL_VERSION_MAX: Final = 3
_DELETED: Final = "<DELETE>"


class _Kind(NamedTuple):
    """What a kind of record has in its key, and the layout of its value."""

    key: tuple[str, ...]
    value: type[Message]
    version_max: int
    flexible_from: int


_OFFSET: Final = _Kind(("group", "topic", "partition"), OffsetCommitLayout, 4, 4)
_OFFSETS: Final[Mapping[int, _Kind]] = {
    0: _OFFSET,
    1: _OFFSET,
    2: _Kind(("group",), GroupMetadataLayout, 4, 4),
    3: _Kind(("groupId",), newer.GroupEpochLayout, 0, 0),
    5: _Kind(("groupId", "memberId"), newer.GroupMemberLayout, 0, 0),
    6: _Kind(("groupId",), newer.TargetEpochLayout, 0, 0),
    7: _Kind(("groupId", "memberId"), newer.TargetMemberLayout, 0, 0),
    8: _Kind(("groupId", "memberId"), newer.CurrentMemberLayout, 0, 0),
}
_TRANSACTIONS: Final[Mapping[int, _Kind]] = {0: _Kind(("transactionalId",), TransactionLayout, 1, 1)}


def decode_offsets_record(offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    """A record of `__consumer_offsets`."""
    return _decode(_OFFSETS, offset, key, value)


def decode_transaction_record(offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    """A record of `__transaction_state`."""
    return _decode(_TRANSACTIONS, offset, key, value)


def _decode(kinds: Mapping[int, _Kind], offset: int, key: bytes | None, value: bytes | None) -> tuple[str, str | None]:
    if key is None:
        raise Failed(
            f"the record at offset {offset} has no key, so it is none of this topic: --offsets-decoder is for "
            "__consumer_offsets, --transaction-log-decoder for __transaction_state"
        )
    try:
        number = read_type(key)
        kind = kinds.get(number)
        if kind is None:
            return f"Unknown record type {number} at offset {offset}, skipping.", None
        shown_key = {"type": str(number), "data": _key(kind, key)}
        if value is None:
            return _json(shown_key), _DELETED
        return _json(shown_key), _json(_value(kind, value))
    except (RecordFormatError, DecodeError, KafkaError) as error:
        return f"Error at offset {offset}, skipping. {error}", None


def _json(document: object) -> str:
    return json.dumps(document, separators=(",", ":"), ensure_ascii=False)


def _key(kind: _Kind, key: bytes) -> dict[str, object]:
    found: dict[str, object] = {}
    position = _INT16.size
    for name in kind.key:
        if name != "partition":
            found[name], position = read_string(key, position)
        elif len(key) < position + _INT32.size:
            raise RecordFormatError("the key of an offset is cut off")
        else:
            (found[name],) = _INT32.unpack_from(key, position)
    return found


def _value(kind: _Kind, value: bytes) -> dict[str, object]:
    layout = decode_value(kind.value, value, kind.version_max, kind.flexible_from)
    (version,) = _INT16.unpack_from(value)
    shown = _fields(layout, version)
    if isinstance(layout, GroupMetadataLayout) and layout.protocol_type == "consumer":
        shown["members"] = [_member(each, version) for each in layout.members]
    return {"version": str(version), "data": shown}


def _member(member: MemberLayout, version: int) -> dict[str, Any]:
    """What a consumer subscribes to and was assigned, where it can be read; else its bytes."""
    shown = _fields(member, version)
    shown["subscription"] = _embedded(ConsumerProtocolSubscription, member.subscription)
    shown["assignment"] = _embedded(ConsumerProtocolAssignment, member.assignment)
    return shown


def _embedded(layout: type[Message], data: bytes) -> object:
    if len(data) < _INT16.size:
        return _shown(data, 0)
    version = min(_INT16.unpack_from(data)[0], _CONSUMER_PROTOCOL_VERSION_MAX)
    try:
        return _fields(decode(layout, version, False, bytes(data[_INT16.size :])), version)
    except DecodeError:
        return _shown(data, 0)


def _fields(message: Message, version: int) -> dict[str, Any]:
    """The fields that a version has, by Kafka's names; tagged ones only if they say something."""
    found = {}
    for field, wire in wire_fields(type(message)):
        value = getattr(message, field.name)
        if wire.exists_in(version) and not _is_left_out(wire, value, field.default):
            first, *rest = field.name.split("_")
            found[first + "".join(part.capitalize() for part in rest)] = _shown(value, version)
    return found


def _is_left_out(wire: Wire, value: object, default: object) -> bool:
    return wire.tag is not None and (value == default or value == [])


def _shown(value: Any, version: int) -> Any:
    if isinstance(value, Message):
        return _fields(value, version)
    if isinstance(value, list):
        return [_shown(each, version) for each in value]
    if isinstance(value, UUID):
        return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(value).decode()
    return value
