"""ListOffsets (2), versions 1-11: the first and last offsets of a partition, the newest timestamp, an offset by time.

Isolation level read_committed makes "latest" the last stable offset. The leader epoch of the answer (from version 4 on)
lets a consumer notice that its position was truncated away.
"""

from __future__ import annotations

from collections import Counter

from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from penstock.replication.fetching import FetchIsolation
from penstock.replication.offsets import list_offset
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_DEBUGGING_REPLICA = -2
_READ_COMMITTED = 1


def handle(context: Context, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
    isolation = _isolation(message)
    asked_times = Counter((topic.name, asked.partition_index) for topic in message.topics for asked in topic.partitions)
    return ListOffsetsResponse(
        throttle_time_ms=request.throttle_ms,
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    _list(context, topic.name, asked, isolation)
                    if asked_times[topic.name, asked.partition_index] == 1
                    else _failure(asked, ErrorCode.INVALID_REQUEST)
                    for asked in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )


def _isolation(message: ListOffsetsRequest) -> FetchIsolation:
    if message.replica_id >= 0 or message.replica_id == _DEBUGGING_REPLICA:
        return FetchIsolation.LOG_END
    if message.isolation_level == _READ_COMMITTED:
        return FetchIsolation.COMMITTED
    return FetchIsolation.HIGH_WATERMARK


def _list(
    context: Context, topic: str, asked: ListOffsetsPartition, isolation: FetchIsolation
) -> ListOffsetsPartitionResponse:
    try:
        partition = context.replicas.partition(topic, asked.partition_index)
        found = list_offset(
            partition, asked.timestamp, isolation=isolation, current_leader_epoch=asked.current_leader_epoch
        )
    except KafkaError as error:
        return _failure(asked, error.code)
    return ListOffsetsPartitionResponse(
        partition_index=asked.partition_index,
        timestamp=found.timestamp,
        offset=found.offset,
        leader_epoch=found.leader_epoch,
    )


def _failure(asked: ListOffsetsPartition, code: ErrorCode) -> ListOffsetsPartitionResponse:
    return ListOffsetsPartitionResponse(partition_index=asked.partition_index, error_code=code)


def _error_response(code: ErrorCode) -> ListOffsetsResponse:
    return ListOffsetsResponse()


API = Api(
    key=ApiKey.LIST_OFFSETS,
    versions=range(1, 12),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
