"""ListOffsets (2), versions 1-11: the first and last offsets of a partition, the newest timestamp, an offset by time.

Isolation level read_committed makes "latest" the last stable offset. The leader epoch of the answer (from version 4 on)
lets a consumer notice that its position was truncated away. Negative timestamps have special meanings, each from some
version on; there is no tiered storage, so what asks for a tiered offset finds none. A partition that is asked for more
than once is refused, and answered once.
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
_SPECIAL_FROM = {-1: 1, -2: 1, -3: 7, -4: 8, -5: 9, -6: 11}
"""Which version brought a special timestamp: latest, earliest, maximum, earliest local, latest tiered, and the earliest
that waits for its upload to tiered storage."""
_EARLIEST_PENDING_UPLOAD = -6


def handle(context: Context, request: Request, message: ListOffsetsRequest) -> ListOffsetsResponse:
    isolation = _isolation(message)
    asked_times = Counter((topic.name, asked.partition_index) for topic in message.topics for asked in topic.partitions)

    def answer(topic: str, asked: ListOffsetsPartition) -> ListOffsetsPartitionResponse:
        if asked_times[topic, asked.partition_index] > 1:
            return _failure(asked, ErrorCode.INVALID_REQUEST)
        if asked.timestamp < 0 and request.api_version < _SPECIAL_FROM.get(asked.timestamp, 2**15):
            return _failure(asked, ErrorCode.UNSUPPORTED_VERSION)
        return _list(context, topic, asked, isolation)

    return ListOffsetsResponse(
        throttle_time_ms=request.throttle_ms,
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    answer(topic.name, asked)
                    for asked in {asked.partition_index: asked for asked in topic.partitions}.values()
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
        if asked.timestamp == _EARLIEST_PENDING_UPLOAD:
            partition.check_leader_epoch(asked.current_leader_epoch)
            return ListOffsetsPartitionResponse(partition_index=asked.partition_index)
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
