"""DescribeProducers (61), version 0: the producers that a partition led here remembers, and their open transactions."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.names import invalid_name_reason
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: DescribeProducersRequest) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        throttle_time_ms=request.throttle_ms,
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[_describe(context, topic.name, index) for index in topic.partition_indexes],
            )
            for topic in message.topics
        ],
    )


def _describe(context: Context, topic: str, index: int) -> PartitionResponse:
    reason = invalid_name_reason(topic)
    if reason is not None:
        code = ErrorCode.INVALID_TOPIC_EXCEPTION
        return PartitionResponse(partition_index=index, error_code=code, error_message=reason)
    try:
        partition = context.replicas.partition(topic, index)
    except KafkaError as error:
        return PartitionResponse(partition_index=index, error_code=error.code)
    return PartitionResponse(
        partition_index=index,
        active_producers=[
            ProducerState(
                producer_id=each.producer_id,
                producer_epoch=each.producer_epoch,
                last_sequence=each.last_sequence,
                last_timestamp=each.last_timestamp,
                coordinator_epoch=each.coordinator_epoch,
                current_txn_start_offset=each.current_txn_first_offset,
            )
            for each in partition.log.producers.producers.values()
        ],
    )


API = Api(
    key=ApiKey.DESCRIBE_PRODUCERS,
    versions=range(1),
    requirements=(Requirement(Operation.READ, ResourceType.TOPIC),),
    handle=handle,
)
