"""DescribeTopicPartitions (75), version 0: topics page by page, for clusters with very many partitions.

Topics come in the order of their names. A page ends after `response_partition_limit` partitions (bounded by
`max.request.partition.size.limit`), and its cursor says where the next one starts. No topics asked for means all of
them; the topic of a cursor may then have been deleted meanwhile, otherwise it has to be one of those asked for.
"""

from __future__ import annotations

from penstock.base.config import broker_keys
from penstock.base.errors import ErrorCode
from penstock.base.internal_topics import INTERNAL_TOPICS
from penstock.controller.names import invalid_name_reason
from penstock.metadata.image import ClusterImage, TopicState
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTopicPartitionsResponsePartition,
    DescribeTopicPartitionsResponseTopic,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.topic_view import partition_fields


def handle(
    context: Context, request: Request, message: DescribeTopicPartitionsRequest
) -> DescribeTopicPartitionsResponse:
    image = context.image
    if (cursor := message.cursor) is not None and not _is_usable(cursor, message):
        return DescribeTopicPartitionsResponse(
            topics=[
                DescribeTopicPartitionsResponseTopic(error_code=ErrorCode.INVALID_REQUEST, name=topic.name)
                for topic in message.topics
            ]
        )
    names, first_partition = _names_from_cursor(image, message)
    limit = min(message.response_partition_limit, context.config[broker_keys.MAX_REQUEST_PARTITION_SIZE_LIMIT])
    room = max(limit, 1)
    response = DescribeTopicPartitionsResponse(throttle_time_ms=request.throttle_ms)
    for name in names:
        if room <= 0:
            response.next_cursor = Cursor(topic_name=name, partition_index=0)
            break
        state = image.topics.get(name)
        page = _missing_topic(name) if state is None else _topic_page(image, state, first_partition, room)
        page.topic_authorized_operations = context.authorizer.authorized_operations(
            request.session.principal, ResourceType.TOPIC, name
        )
        response.topics.append(page)
        if state is None:
            continue
        room -= len(page.partitions)
        end = first_partition + len(page.partitions)
        first_partition = 0
        if end < len(state.partitions):
            response.next_cursor = Cursor(topic_name=name, partition_index=end)
            break
    return response


def _names_from_cursor(image: ClusterImage, message: DescribeTopicPartitionsRequest) -> tuple[list[str], int]:
    names = sorted({topic.name for topic in message.topics} or image.topics)
    cursor = message.cursor
    if cursor is None:
        return names, 0
    rest = [name for name in names if name >= cursor.topic_name]
    starts_inside = bool(rest) and rest[0] == cursor.topic_name
    return rest, cursor.partition_index if starts_inside else 0


def _is_usable(cursor: Cursor, message: DescribeTopicPartitionsRequest) -> bool:
    names = [topic.name for topic in message.topics]
    return cursor.partition_index >= 0 and (not names or cursor.topic_name in names)


def _missing_topic(name: str) -> DescribeTopicPartitionsResponseTopic:
    valid = invalid_name_reason(name) is None
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if valid else ErrorCode.INVALID_TOPIC_EXCEPTION
    return DescribeTopicPartitionsResponseTopic(error_code=code, name=name)


def _topic_page(
    image: ClusterImage, state: TopicState, first_partition: int, room: int
) -> DescribeTopicPartitionsResponseTopic:
    indexes = range(first_partition, min(len(state.partitions), first_partition + room))
    return DescribeTopicPartitionsResponseTopic(
        name=state.name,
        topic_id=state.id,
        is_internal=state.name in INTERNAL_TOPICS,
        partitions=[
            DescribeTopicPartitionsResponsePartition(
                eligible_leader_replicas=[], last_known_elr=[], **partition_fields(image, index, partition)
            )
            for index in indexes
            for partition in (state.partitions[index],)
        ],
    )


def _error_response(code: ErrorCode) -> DescribeTopicPartitionsResponse:
    return DescribeTopicPartitionsResponse(topics=[DescribeTopicPartitionsResponseTopic(error_code=code, name=None)])


API = Api(
    key=ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    versions=range(1),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
