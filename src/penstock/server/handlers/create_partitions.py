"""CreatePartitions (37), versions 0-3. Answers when every new partition has its log open here."""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.new_partitions import MorePartitions, MorePartitionsResult
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


async def handle(context: Context, request: Request, message: CreatePartitionsRequest) -> CreatePartitionsResponse:
    wanted = [_more_partitions(topic) for topic in message.topics]
    try:
        results = await context.controller.create_partitions(wanted, validate_only=message.validate_only)
    except KafkaError as error:
        results = [MorePartitionsResult(name=each.name, error=error.code, message=error.message) for each in wanted]
    return CreatePartitionsResponse(
        throttle_time_ms=request.throttle_ms,
        results=[
            CreatePartitionsTopicResult(name=each.name, error_code=each.error, error_message=each.message)
            for each in results
        ],
    )


def _more_partitions(topic: CreatePartitionsTopic) -> MorePartitions:
    assignments = None if topic.assignments is None else [each.broker_ids for each in topic.assignments]
    return MorePartitions(name=topic.name, count=topic.count, assignments=assignments)


def _error_response(code: ErrorCode) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(results=[CreatePartitionsTopicResult(error_code=code)])


API = Api(
    key=ApiKey.CREATE_PARTITIONS,
    versions=range(4),
    requirements=(Requirement(Operation.ALTER, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
