"""OffsetForLeaderEpoch (23), versions 2-4: where an epoch ends in the log, so that readers notice a truncation
(KIP-320).
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)
from penstock.replication.offsets import end_offset_for_leader_epoch
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse(
        throttle_time_ms=request.throttle_ms,
        topics=[
            OffsetForLeaderTopicResult(
                topic=topic.topic, partitions=[_end_offset(context, topic.topic, asked) for asked in topic.partitions]
            )
            for topic in message.topics
        ],
    )


def _end_offset(context: Context, topic: str, asked: OffsetForLeaderPartition) -> EpochEndOffset:
    try:
        partition = context.replicas.partition(topic, asked.partition)
        epoch, offset = end_offset_for_leader_epoch(
            partition, asked.leader_epoch, current_leader_epoch=asked.current_leader_epoch
        )
    except KafkaError as error:
        return EpochEndOffset(error_code=error.code, partition=asked.partition)
    return EpochEndOffset(partition=asked.partition, leader_epoch=epoch, end_offset=offset)


def _error_response(code: ErrorCode) -> OffsetForLeaderEpochResponse:
    return OffsetForLeaderEpochResponse()


API = Api(
    key=ApiKey.OFFSET_FOR_LEADER_EPOCH,
    versions=range(2, 5),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
