"""Values in `__consumer_offsets` of groups of the newer protocol (KIP-848), as Kafka 4.3 writes them.

They are only shown here: no such group is run by our coordinator. Fields stand in wire order.
"""

from __future__ import annotations

from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.schema import Message, message, wire


@message
class GroupEpochLayout(Message):
    epoch: int = wire("int32", default=0)
    metadata_hash: int = wire("int64", tag=0, default=0)


@message
class ClassicProtocolLayout(Message):
    name: str = wire("string", default="")
    metadata: bytes = wire("bytes", default=b"")


@message
class ClassicMemberLayout(Message):
    """What a member of the older protocol brings into such a group."""

    session_timeout_ms: int = wire("int32", default=0)
    supported_protocols: list[ClassicProtocolLayout] = wire("[]ClassicProtocolLayout", factory=list)


@message
class GroupMemberLayout(Message):
    instance_id: str | None = wire("string", nullable="0-", default=None)
    rack_id: str | None = wire("string", nullable="0-", default=None)
    client_id: str = wire("string", default="")
    client_host: str = wire("string", default="")
    subscribed_topic_names: list[str] = wire("[]string", factory=list)
    subscribed_topic_regex: str | None = wire("string", nullable="0-", default=None)
    rebalance_timeout_ms: int = wire("int32", default=-1)
    server_assignor: str | None = wire("string", nullable="0-", default=None)
    # Kafka takes an empty one for the default, so that a member of the newer protocol has a null here.
    classic_member_metadata: ClassicMemberLayout | None = wire(
        "ClassicMemberLayout", nullable="0-", tag=0, factory=ClassicMemberLayout
    )


@message
class TargetEpochLayout(Message):
    assignment_epoch: int = wire("int32", default=0)
    assignment_timestamp: int = wire("int64", tag=0, default=0)


@message
class TargetPartitionsLayout(Message):
    topic_id: UUID = wire("uuid", default=ZERO_UUID)
    partitions: list[int] = wire("[]int32", factory=list)


@message
class TargetMemberLayout(Message):
    topic_partitions: list[TargetPartitionsLayout] = wire("[]TargetPartitionsLayout", factory=list)


@message
class CurrentPartitionsLayout(Message):
    topic_id: UUID = wire("uuid", default=ZERO_UUID)
    partitions: list[int] = wire("[]int32", factory=list)
    assignment_epochs: list[int] = wire("[]int32", tag=0, factory=list)


@message
class CurrentMemberLayout(Message):
    member_epoch: int = wire("int32", default=0)
    previous_member_epoch: int = wire("int32", default=0)
    state: int = wire("int8", default=0)
    assigned_partitions: list[CurrentPartitionsLayout] = wire("[]CurrentPartitionsLayout", factory=list)
    partitions_pending_revocation: list[CurrentPartitionsLayout] = wire("[]CurrentPartitionsLayout", factory=list)
