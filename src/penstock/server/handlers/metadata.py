"""Metadata (3), versions 0-13: brokers, topics and partition leaders; creates missing topics when asked and allowed.

- Version 0 has no way to say "no topics", so an empty list means all of them; from 1 on null means all.
- Topic ids are answered from version 10 on and may be asked for from 12 on; 10 and 11 have the field, but refuse it.
- Where Kafka creates a topic in the background and lets the client ask again, the answer here waits for the few
  milliseconds that creating takes, and has the topic.
"""

from __future__ import annotations

import contextlib
from collections.abc import Coroutine, Iterable
from typing import Any

from penstock.base.config import broker_keys
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import INTERNAL_TOPICS
from penstock.base.types import ZERO_UUID
from penstock.controller.names import invalid_name_reason
from penstock.metadata.image import ClusterImage, TopicState
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from penstock.security.authorizer import OPERATIONS_NOT_ASKED, Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.topic_view import endpoints_of, partition_fields


def handle(
    context: Context, request: Request, message: MetadataRequest
) -> MetadataResponse | Coroutine[Any, Any, MetadataResponse]:
    if request.api_version < 12 and not all(_is_named(topic) for topic in message.topics or ()):
        return _refusal(message, ErrorCode.INVALID_REQUEST)
    if missing := _topics_to_create(context, request, message):
        return _create_and_answer(context, request, message, missing)
    return _answer(context, request, message)


def _is_named(topic: MetadataRequestTopic) -> bool:
    return topic.name is not None and topic.topic_id == ZERO_UUID


def _refusal(message: MetadataRequest, code: ErrorCode) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(error_code=code, name=topic.name or "", topic_id=topic.topic_id)
            for topic in message.topics or ()
        ],
        error_code=code,
    )


def _asks_for_all(message: MetadataRequest, version: int) -> bool:
    return message.topics is None or (version == 0 and not message.topics)


def _topics_to_create(context: Context, request: Request, message: MetadataRequest) -> list[str]:
    if _asks_for_all(message, request.api_version) or not message.topics:
        return []
    # Versions below 4 have no field for the wish and always create.
    wished = message.allow_auto_topic_creation or request.api_version < 4
    if not (wished and context.config[broker_keys.AUTO_CREATE_TOPICS_ENABLE]):
        return []
    topics = context.image.topics
    names = {topic.name for topic in message.topics if topic.name is not None and topic.topic_id == ZERO_UUID}
    return [name for name in names if name not in topics and _is_valid(name)]


async def _create_and_answer(
    context: Context, request: Request, message: MetadataRequest, names: Iterable[str]
) -> MetadataResponse:
    # A failure (a name that collides, another request that was first) shows in the answer, as the topic's state.
    with contextlib.suppress(KafkaError):
        await context.controller.create_topics([context.coordinators.topics.new_topic(name) for name in names])
    return _answer(context, request, message)


def _answer(context: Context, request: Request, message: MetadataRequest) -> MetadataResponse:
    image = context.image
    version = request.api_version
    if _asks_for_all(message, version):
        topics = [_known_topic(image, state) for state in image.topics.values()]
    else:
        asked = dict.fromkeys((topic.name, topic.topic_id) for topic in message.topics or ())
        topics = [_asked_topic(image, name, topic_id) for name, topic_id in asked]
    if message.include_topic_authorized_operations:
        _fill_operations(context, request, topics)
    cluster_operations = OPERATIONS_NOT_ASKED
    if message.include_cluster_authorized_operations:
        cluster_operations = context.authorizer.authorized_operations(
            request.session.principal, ResourceType.CLUSTER, "kafka-cluster"
        )
    return MetadataResponse(
        throttle_time_ms=request.throttle_ms,
        brokers=[
            MetadataResponseBroker(node_id=broker_id, host=host, port=port, rack=rack)
            for broker_id, host, port, rack in endpoints_of(image, request.session.listener_name)
        ],
        cluster_id=image.cluster_id,
        controller_id=image.controller_id,
        topics=topics,
        cluster_authorized_operations=cluster_operations,
    )


def _asked_topic(image: ClusterImage, name: str | None, topic_id: Any) -> MetadataResponseTopic:
    if topic_id != ZERO_UUID:
        known = image.topic_names.get(topic_id)
        if known is None:
            return MetadataResponseTopic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
        return _known_topic(image, image.topics[known])
    state = image.topics.get(name or "")
    if state is not None:
        return _known_topic(image, state)
    code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if _is_valid(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
    return MetadataResponseTopic(error_code=code, name=name or "", topic_id=ZERO_UUID)


def _is_valid(name: str | None) -> bool:
    return invalid_name_reason(name or "") is None


def _known_topic(image: ClusterImage, state: TopicState) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=state.name,
        topic_id=state.id,
        is_internal=state.name in INTERNAL_TOPICS,
        partitions=[
            MetadataResponsePartition(**partition_fields(image, index, partition))
            for index, partition in enumerate(state.partitions)
        ],
    )


def _fill_operations(context: Context, request: Request, topics: Iterable[MetadataResponseTopic]) -> None:
    for topic in topics:
        topic.topic_authorized_operations = context.authorizer.authorized_operations(
            request.session.principal, ResourceType.TOPIC, topic.name or ""
        )


API = Api(
    key=ApiKey.METADATA,
    versions=range(14),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.TOPIC),),
    handle=handle,
)
