"""DeleteTopics (20), versions 1-6: by name, from version 6 on also by id.

Parked fetches of a deleted topic are answered at once; its files are renamed before the answer and unlinked later.
`delete.topic.enable=false` refuses the whole request, with code 41 up to version 2 and 73 from 3 on.
"""

from __future__ import annotations

from collections.abc import Sequence

from penstock.base.config import broker_keys
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.topics import TopicReference
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsRequest, DeleteTopicsResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


async def handle(context: Context, request: Request, message: DeleteTopicsRequest) -> DeleteTopicsResponse:
    references = _references(request.api_version, message)
    if not context.config[broker_keys.DELETE_TOPIC_ENABLE]:
        code = ErrorCode.INVALID_REQUEST if request.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        return _refusal(references, code, "Topic deletion is disabled.")
    try:
        results = await context.controller.delete_topics(references)
    except KafkaError as error:
        return _refusal(references, error.code, error.message)
    return DeleteTopicsResponse(
        throttle_time_ms=request.throttle_ms,
        responses=[
            DeletableTopicResult(
                name=result.name, topic_id=result.topic_id, error_code=result.error, error_message=result.message
            )
            for result in results
        ],
    )


def _references(version: int, message: DeleteTopicsRequest) -> list[TopicReference]:
    if version < 6:
        return [TopicReference(name) for name in message.topic_names]
    return [TopicReference(topic.name, topic.topic_id) for topic in message.topics]


def _refusal(references: Sequence[TopicReference], code: ErrorCode, message: str) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(
        responses=[
            DeletableTopicResult(name=name, topic_id=topic_id, error_code=code, error_message=message)
            for name, topic_id in references
        ]
    )


def _error_response(code: ErrorCode) -> DeleteTopicsResponse:
    return DeleteTopicsResponse(responses=[DeletableTopicResult(name="", error_code=code)])


API = Api(
    key=ApiKey.DELETE_TOPICS,
    versions=range(1, 7),
    requirements=(Requirement(Operation.DELETE, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
