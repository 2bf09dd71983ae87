"""DeleteRecords (21), versions 0-2: everything before an offset goes, -1 for all that is committed.

Answers when the new start of the log is durable. Internal topics keep their records, and so do topics that are only
compacted.
"""

from __future__ import annotations

import asyncio

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import INTERNAL_TOPICS
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.delete_records import (
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopicResult,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_NO_LOW_WATERMARK = -1


async def handle(context: Context, request: Request, message: DeleteRecordsRequest) -> DeleteRecordsResponse:
    wanted: dict[str, dict[int, int]] = {}
    for topic in message.topics:
        # A partition that is named twice is deleted up to the offset that was named last, as in Kafka.
        wanted.setdefault(topic.name, {}).update((each.partition_index, each.offset) for each in topic.partitions)
    places = [(topic, index, offset) for topic, offsets in wanted.items() for index, offset in offsets.items()]
    results = await asyncio.gather(*(_delete(context, *place) for place in places))
    answers: dict[str, list[DeleteRecordsPartitionResult]] = {}
    for (topic_name, _, _), result in zip(places, results, strict=True):
        answers.setdefault(topic_name, []).append(result)
    return DeleteRecordsResponse(
        throttle_time_ms=request.throttle_ms,
        topics=[DeleteRecordsTopicResult(name=name, partitions=partitions) for name, partitions in answers.items()],
    )


async def _delete(context: Context, topic: str, index: int, offset: int) -> DeleteRecordsPartitionResult:
    try:
        context.replicas.partition(topic, index)
        if topic in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot delete records of internal topic {topic}")
        low_watermark = await context.replicas.delete_records(topic, index, offset)
    except KafkaError as error:
        return DeleteRecordsPartitionResult(
            partition_index=index, low_watermark=_NO_LOW_WATERMARK, error_code=error.code
        )
    return DeleteRecordsPartitionResult(partition_index=index, low_watermark=low_watermark)


def _error_response(code: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        topics=[DeleteRecordsTopicResult(partitions=[DeleteRecordsPartitionResult(error_code=code)])]
    )


API = Api(
    key=ApiKey.DELETE_RECORDS,
    versions=range(3),
    requirements=(Requirement(Operation.DELETE, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
