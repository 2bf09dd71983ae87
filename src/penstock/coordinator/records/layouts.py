"""The schemas of the values, for the compiled codec. Fields stand in wire order, as in Kafka's own files."""

from __future__ import annotations

from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.schema import Message, message, wire


@message
class OffsetCommitLayout(Message):
    """Versions 0-4, flexible from 4 on."""

    offset: int = wire("int64", "0-", default=0)
    leader_epoch: int = wire("int32", "3-", default=-1)
    metadata: str = wire("string", "0-", default="")
    commit_timestamp: int = wire("int64", "0-", default=0)
    expire_timestamp: int = wire("int64", "1", default=-1)
    topic_id: UUID = wire("uuid", "4-", tag=0, default=ZERO_UUID)


@message
class MemberLayout(Message):
    member_id: str = wire("string", "0-", default="")
    group_instance_id: str | None = wire("string", "3-", nullable="3-", default=None)
    client_id: str = wire("string", "0-", default="")
    client_host: str = wire("string", "0-", default="")
    rebalance_timeout: int = wire("int32", "1-", default=-1)
    session_timeout: int = wire("int32", "0-", default=0)
    subscription: bytes = wire("bytes", "0-", default=b"")
    assignment: bytes = wire("bytes", "0-", default=b"")


@message
class GroupMetadataLayout(Message):
    """Versions 0-4, flexible from 4 on."""

    protocol_type: str = wire("string", "0-", default="")
    generation: int = wire("int32", "0-", default=0)
    protocol: str | None = wire("string", "0-", nullable="0-", default=None)
    leader: str | None = wire("string", "0-", nullable="0-", default=None)
    current_state_timestamp: int = wire("int64", "2-", default=-1)
    members: list[MemberLayout] = wire("[]MemberLayout", "0-", factory=list)


@message
class TransactionPartitionsLayout(Message):
    topic: str = wire("string", "0-", default="")
    partition_ids: list[int] = wire("[]int32", "0-", factory=list)


@message
class TransactionLayout(Message):
    """Versions 0-1, flexible from 1 on."""

    producer_id: int = wire("int64", "0-", default=0)
    previous_producer_id: int = wire("int64", "1-", tag=0, default=-1)
    next_producer_id: int = wire("int64", "1-", tag=1, default=-1)
    producer_epoch: int = wire("int16", "0-", default=0)
    next_producer_epoch: int = wire("int16", "1-", tag=3, default=-1)
    transaction_timeout_ms: int = wire("int32", "0-", default=0)
    transaction_status: int = wire("int8", "0-", default=0)
    transaction_partitions: list[TransactionPartitionsLayout] | None = wire(
        "[]TransactionPartitionsLayout", "0-", nullable="0-", default=None
    )
    transaction_last_update_timestamp_ms: int = wire("int64", "0-", default=0)
    transaction_start_timestamp_ms: int = wire("int64", "0-", default=0)
    client_transaction_version: int = wire("int16", "1-", tag=2, default=0)
