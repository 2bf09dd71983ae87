"""CreateTopics (19), versions 2-7. Answers when every partition of the new topics has its log open here.

From version 5 on the answer tells the settings the topic has, from 7 on its id. Counts may be -1 for the broker's
defaults from version 4 on; in 2 and 3 the controller refuses that like any other bad number, as Kafka does.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.base.config.describe import describe_topic
from penstock.base.config.topic import TopicConfig
from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.topics import NewTopic, NewTopicResult
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

log = logging.getLogger(__name__)


async def handle(context: Context, request: Request, message: CreateTopicsRequest) -> CreateTopicsResponse:
    wanted = [_new_topic(topic) for topic in message.topics]
    try:
        results = await context.controller.create_topics(wanted, validate_only=message.validate_only)
    except KafkaError as error:
        # Clients look for their topics by name, also when the metadata cannot be written at all.
        results = [NewTopicResult(name=each.name, error=error.code, message=error.message) for each in wanted]
    _log_refusals(request, results)
    return CreateTopicsResponse(
        throttle_time_ms=request.throttle_ms, topics=[_result(context, result) for result in results]
    )


def _log_refusals(request: Request, results: Sequence[NewTopicResult]) -> None:
    refused = [
        f"{result.name!r}: {result.message}"
        for result in results
        if result.error not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
    ]
    if refused:
        log.info("topics refused: %s", "; ".join(refused), extra=request.log_fields())


def _new_topic(topic: CreatableTopic) -> NewTopic:
    return NewTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[(each.partition_index, each.broker_ids) for each in topic.assignments],
        configs=[(each.name, each.value) for each in topic.configs],
    )


def _result(context: Context, result: NewTopicResult) -> CreatableTopicResult:
    if result.error is not ErrorCode.NONE:
        return CreatableTopicResult(name=result.name, error_code=result.error, error_message=result.message, configs=[])
    rows = sorted(describe_topic(TopicConfig(context.config, result.configs)), key=lambda row: row.name)
    return CreatableTopicResult(
        name=result.name,
        topic_id=result.topic_id,
        num_partitions=result.num_partitions,
        replication_factor=result.replication_factor,
        configs=[
            CreatableTopicConfigs(
                name=row.name,
                value=row.value,
                read_only=row.read_only,
                config_source=row.source,
                is_sensitive=row.is_sensitive,
            )
            for row in rows
        ],
    )


def _error_response(code: ErrorCode) -> CreateTopicsResponse:
    return CreateTopicsResponse(topics=[CreatableTopicResult(error_code=code)])


API = Api(
    key=ApiKey.CREATE_TOPICS,
    versions=range(2, 8),
    requirements=(Requirement(Operation.CREATE, ResourceType.TOPIC),),
    handle=handle,
    error_response=_error_response,
)
