"""Values in `__share_group_state`, what Apache Kafka 4.3 keeps of share groups (KIP-932).

They are only shown here: share groups are not run by our coordinator. Fields stand in wire order.
"""

from __future__ import annotations

from penstock.protocol.schema import Message, message, wire


@message
class StateBatchLayout(Message):
    first_offset: int = wire("int64", default=0)
    last_offset: int = wire("int64", default=0)
    delivery_state: int = wire("int8", default=0)
    delivery_count: int = wire("int16", default=0)


@message
class ShareSnapshotLayout(Message):
    snapshot_epoch: int = wire("int32", default=0)
    state_epoch: int = wire("int32", default=0)
    leader_epoch: int = wire("int32", default=0)
    start_offset: int = wire("int64", default=0)
    delivery_complete_count: int = wire("int32", tag=0, default=-1)
    create_timestamp: int = wire("int64", default=0)
    write_timestamp: int = wire("int64", default=0)
    state_batches: list[StateBatchLayout] = wire("[]StateBatchLayout", factory=list)


@message
class ShareUpdateLayout(Message):
    snapshot_epoch: int = wire("int32", default=0)
    leader_epoch: int = wire("int32", default=0)
    start_offset: int = wire("int64", default=0)
    delivery_complete_count: int = wire("int32", tag=0, default=-1)
    state_batches: list[StateBatchLayout] = wire("[]StateBatchLayout", factory=list)
