"""Records of `__remote_log_metadata`, where Apache Kafka keeps what it knows of tiered storage, as Kafka 4.3 has them.

They are only shown here, in the words of Kafka's own classes. Fields stand in wire order; all versions are flexible.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from uuid import UUID

from penstock.base.types import ZERO_UUID, uuid_to_text
from penstock.cli.kafka.cluster_metadata_layouts import MetadataKind
from penstock.protocol.errors import DecodeError
from penstock.protocol.schema import Message, message, wire


@message
class TopicIdPartitionLayout(Message):
    name: str = wire("string", default="")
    id: UUID = wire("uuid", default=ZERO_UUID)
    partition: int = wire("int32", default=0)


@message
class SegmentIdLayout(Message):
    topic_id_partition: TopicIdPartitionLayout = wire("TopicIdPartitionLayout", factory=TopicIdPartitionLayout)
    id: UUID = wire("uuid", default=ZERO_UUID)


@message
class LeaderEpochLayout(Message):
    leader_epoch: int = wire("int32", default=0)
    offset: int = wire("int64", default=0)


@message
class SegmentLayout(Message):
    remote_log_segment_id: SegmentIdLayout = wire("SegmentIdLayout", factory=SegmentIdLayout)
    start_offset: int = wire("int64", default=0)
    end_offset: int = wire("int64", default=0)
    broker_id: int = wire("int32", default=0)
    max_timestamp_ms: int = wire("int64", default=0)
    event_timestamp_ms: int = wire("int64", default=0)
    segment_leader_epochs: list[LeaderEpochLayout] = wire("[]LeaderEpochLayout", factory=list)
    segment_size_in_bytes: int = wire("int32", default=0)
    custom_metadata: bytes | None = wire("bytes", nullable="0-", default=None)
    remote_log_segment_state: int = wire("int8", default=0)
    txn_index_empty: bool = wire("bool", tag=0, default=False)


@message
class SegmentUpdateLayout(Message):
    remote_log_segment_id: SegmentIdLayout = wire("SegmentIdLayout", factory=SegmentIdLayout)
    broker_id: int = wire("int32", default=0)
    event_timestamp_ms: int = wire("int64", default=0)
    custom_metadata: bytes | None = wire("bytes", nullable="0-", default=None)
    remote_log_segment_state: int = wire("int8", default=0)


@message
class PartitionDeleteLayout(Message):
    topic_id_partition: TopicIdPartitionLayout = wire("TopicIdPartitionLayout", factory=TopicIdPartitionLayout)
    broker_id: int = wire("int32", default=0)
    event_timestamp_ms: int = wire("int64", default=0)
    remote_partition_delete_state: int = wire("int8", default=0)


@message
class SegmentSnapshotLayout(Message):
    segment_id: UUID = wire("uuid", default=ZERO_UUID)
    start_offset: int = wire("int64", default=0)
    end_offset: int = wire("int64", default=0)
    broker_id: int = wire("int32", default=0)
    max_timestamp_ms: int = wire("int64", default=0)
    event_timestamp_ms: int = wire("int64", default=0)
    segment_leader_epochs: list[LeaderEpochLayout] = wire("[]LeaderEpochLayout", factory=list)
    segment_size_in_bytes: int = wire("int32", default=0)
    custom_metadata: bytes | None = wire("bytes", nullable="0-", default=None)
    remote_log_segment_state: int = wire("int8", default=0)
    txn_index_empty: bool = wire("bool", tag=0, default=False)


KINDS: Final = {
    0: MetadataKind("RemoteLogSegmentMetadata", SegmentLayout),
    1: MetadataKind("RemoteLogSegmentMetadataUpdate", SegmentUpdateLayout),
    2: MetadataKind("RemotePartitionDeleteMetadata", PartitionDeleteLayout),
    3: MetadataKind("RemoteLogSegmentMetadataSnapshot", SegmentSnapshotLayout),
}
"""By the number that a record begins with."""

_SEGMENT_STATES: Final = {
    0: "COPY_SEGMENT_STARTED",
    1: "COPY_SEGMENT_FINISHED",
    2: "DELETE_SEGMENT_STARTED",
    3: "DELETE_SEGMENT_FINISHED",
}
_DELETE_STATES: Final = {0: "DELETE_PARTITION_MARKED", 1: "DELETE_PARTITION_STARTED", 2: "DELETE_PARTITION_FINISHED"}


def text_of(record: Message) -> str:
    """A record in the words of Kafka's class."""
    match record:
        case SegmentLayout():
            return (
                f"RemoteLogSegmentMetadata{{remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}, "
                f"startOffset={record.start_offset}, endOffset={record.end_offset}, brokerId={record.broker_id}, "
                f"maxTimestampMs={record.max_timestamp_ms}, eventTimestampMs={record.event_timestamp_ms}, "
                f"{_common(record)}}}"
            )
        case SegmentUpdateLayout():
            return (
                f"RemoteLogSegmentMetadataUpdate{{remoteLogSegmentId={_segment_id(record.remote_log_segment_id)}, "
                f"customMetadata={_custom(record.custom_metadata)}, "
                f"state={_state(_SEGMENT_STATES, record.remote_log_segment_state)}, "
                f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
            )
        case PartitionDeleteLayout():
            return (
                f"RemotePartitionDeleteMetadata{{topicPartition={_partition(record.topic_id_partition)}, "
                f"state={_state(_DELETE_STATES, record.remote_partition_delete_state)}, "
                f"eventTimestampMs={record.event_timestamp_ms}, brokerId={record.broker_id}}}"
            )
        case SegmentSnapshotLayout():
            return (
                f"RemoteLogSegmentMetadataSnapshot{{segmentId={uuid_to_text(record.segment_id)}, "
                f"startOffset={record.start_offset}, endOffset={record.end_offset}, "
                f"maxTimestampMs={record.max_timestamp_ms}, {_common(record)}}}"
            )
    raise AssertionError(f"{record!r} is no record of remote logs")


def _common(record: SegmentLayout | SegmentSnapshotLayout) -> str:
    """How the texts of a segment and of its snapshot end."""
    epochs = sorted((each.leader_epoch, each.offset) for each in record.segment_leader_epochs)
    return (
        f"segmentLeaderEpochs={{{', '.join(f'{epoch}={offset}' for epoch, offset in epochs)}}}, "
        f"segmentSizeInBytes={record.segment_size_in_bytes}, customMetadata={_custom(record.custom_metadata)}, "
        f"state={_state(_SEGMENT_STATES, record.remote_log_segment_state)}, "
        f"txnIdxEmpty={'true' if record.txn_index_empty else 'false'}"
    )


def _segment_id(segment: SegmentIdLayout) -> str:
    partition = _partition(segment.topic_id_partition)
    return f"RemoteLogSegmentId{{topicIdPartition={partition}, id={uuid_to_text(segment.id)}}}"


def _partition(place: TopicIdPartitionLayout) -> str:
    return f"{uuid_to_text(place.id)}:{place.name}-{place.partition}"


def _custom(data: bytes | None) -> str:
    return "Optional.empty" if data is None else f"Optional[CustomMetadata{{{len(data)} bytes}}]"


def _state(names: Mapping[int, str], state: int) -> str:
    if state not in names:
        raise DecodeError(f"state {state} is unknown")
    return names[state]
