"""Control records: the ends of transactions, and what the voters of Apache Kafka's controllers leave in their log."""

from __future__ import annotations

import struct
from typing import Final, NamedTuple
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.cli.kafka import record_json
from penstock.protocol.codec import decode
from penstock.protocol.errors import DecodeError
from penstock.protocol.schema import Message, message, wire

_KEY: Final = struct.Struct(">hh")
_END_MARKER: Final = struct.Struct(">hi")
_VERSION: Final = struct.Struct(">h")


@message
class VoterLayout(Message):
    voter_id: int = wire("int32", default=0)
    voter_directory_id: UUID = wire("uuid", "1-", default=ZERO_UUID)


@message
class LeaderChangeLayout(Message):
    """Version 1 adds the directories of the voters (KIP-853)."""

    version: int = wire("int16", default=0)
    leader_id: int = wire("int32", default=0)
    voters: list[VoterLayout] = wire("[]VoterLayout", factory=list)
    granting_voters: list[VoterLayout] = wire("[]VoterLayout", factory=list)


@message
class SnapshotHeaderLayout(Message):
    version: int = wire("int16", default=0)
    last_contained_log_timestamp: int = wire("int64", default=0)


@message
class SnapshotFooterLayout(Message):
    version: int = wire("int16", default=0)


@message
class KRaftVersionLayout(Message):
    version: int = wire("int16", default=0)
    k_raft_version: int = wire("int16", default=0)


@message
class VoterEndpointLayout(Message):
    name: str = wire("string", default="")
    host: str = wire("string", default="")
    port: int = wire("uint16", default=0)


@message
class KRaftVersionFeatureLayout(Message):
    min_supported_version: int = wire("int16", default=0)
    max_supported_version: int = wire("int16", default=0)


@message
class RegisteredVoterLayout(Message):
    voter_id: int = wire("int32", default=0)
    voter_directory_id: UUID = wire("uuid", default=ZERO_UUID)
    endpoints: list[VoterEndpointLayout] = wire("[]VoterEndpointLayout", factory=list)
    k_raft_version_feature: KRaftVersionFeatureLayout = wire(
        "KRaftVersionFeatureLayout", factory=KRaftVersionFeatureLayout
    )


@message
class VotersLayout(Message):
    version: int = wire("int16", default=0)
    voters: list[RegisteredVoterLayout] = wire("[]RegisteredVoterLayout", factory=list)


class _Kind(NamedTuple):
    label: str
    layout: type[Message]
    version_max: int = 0


_END_KINDS: Final = {0: "ABORT", 1: "COMMIT"}
_KINDS: Final = {
    # Kafka's tool has a colon behind this one alone.
    2: _Kind("LeaderChange:", LeaderChangeLayout, 1),
    3: _Kind("SnapshotHeader", SnapshotHeaderLayout),
    4: _Kind("SnapshotFooter", SnapshotFooterLayout),
    5: _Kind("KRaftVersion", KRaftVersionLayout),
    6: _Kind("KRaftVoters", VotersLayout),
}


def show_control_record(offset: int, key: bytes, value: bytes) -> str:
    number = _KEY.unpack_from(key)[1] if len(key) >= _KEY.size else -1
    if number in _END_KINDS and len(value) >= _END_MARKER.size:
        return f"endTxnMarker: {_END_KINDS[number]} coordinatorEpoch: {_END_MARKER.unpack_from(value)[1]}"
    kind = _KINDS.get(number)
    if kind is None:
        return f"controlType: UNKNOWN({number})"
    try:
        return f"{kind.label} {record_json.dumps(_fields(kind, value))}"
    except DecodeError as error:
        return f"{kind.label} Error at {offset}, skipping. {error}"


def _fields(kind: _Kind, value: bytes) -> dict[str, object]:
    """A message that says its version itself; newer ones than are known begin as the newest known one does."""
    if len(value) < _VERSION.size:
        raise DecodeError("the record is shorter than its version")
    version = max(0, min(_VERSION.unpack_from(value)[0], kind.version_max))
    return record_json.fields(decode(kind.layout, version, True, value), version)
