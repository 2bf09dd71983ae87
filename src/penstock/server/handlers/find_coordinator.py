"""FindCoordinator (10), versions 0-6: which broker coordinates a group (key type 0) or a transactional id (1).

- The topic behind a coordinator is made when it is missing, and the answer waits until it is served.
- From version 4 on a request has many keys and every key its own answer; before that one key and one answer.
- Share groups (key type 2, from version 6 on) are not served and refused like a type that does not exist.
"""

from __future__ import annotations

from collections.abc import Coroutine, Mapping
from typing import Any, Final

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import CONSUMER_OFFSETS, TRANSACTION_STATE
from penstock.coordinator.placement import partition_for
from penstock.metadata.image import TopicState
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.topic_view import endpoints_of

_BATCHED_FROM: Final = 4
_NO_NODE: Final = -1
_TOPICS: Final[Mapping[int, str]] = {0: CONSUMER_OFFSETS, 1: TRANSACTION_STATE}


def handle(
    context: Context, request: Request, message: FindCoordinatorRequest
) -> FindCoordinatorResponse | Coroutine[Any, Any, FindCoordinatorResponse]:
    keys = message.coordinator_keys if request.api_version >= _BATCHED_FROM else [message.key]
    topic = _TOPICS.get(message.key_type)
    if topic is None:
        reason = f"There is no coordinator for keys of type {message.key_type}."
        return _answer(request, [_failure(key, ErrorCode.INVALID_REQUEST, reason) for key in keys])
    state = context.coordinators.ready_topic(topic)
    if state is None:
        return _create_and_answer(context, request, topic, keys)
    return _answer(request, [_find(context, request, state, key) for key in keys])


async def _create_and_answer(
    context: Context, request: Request, topic: str, keys: list[str]
) -> FindCoordinatorResponse:
    try:
        state = await context.coordinators.wait_for_topic(topic)
    except KafkaError as error:
        return _answer(request, [_failure(key, error.code, error.message) for key in keys])
    return _answer(request, [_find(context, request, state, key) for key in keys])


def _find(context: Context, request: Request, state: TopicState, key: str) -> Coordinator:
    """The leader of the key's partition, at the address it advertises on the listener that was asked."""
    leader = state.partitions[partition_for(key, len(state.partitions))].leader
    for endpoint in endpoints_of(context.image, request.session.listener_name):
        if endpoint.broker_id == leader:
            return Coordinator(key=key, node_id=leader, host=endpoint.host, port=endpoint.port, error_message="")
    return _failure(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, "The coordinator is not available.")


def _failure(key: str, code: ErrorCode, reason: str) -> Coordinator:
    return Coordinator(key=key, error_code=code, error_message=reason, node_id=_NO_NODE, host="", port=-1)


def _answer(request: Request, found: list[Coordinator]) -> FindCoordinatorResponse:
    if request.api_version >= _BATCHED_FROM:
        return FindCoordinatorResponse(throttle_time_ms=request.throttle_ms, coordinators=found)
    (only,) = found
    return FindCoordinatorResponse(
        throttle_time_ms=request.throttle_ms,
        error_code=only.error_code,
        # Kafka says so in words here, and only here.
        error_message=only.error_message if only.error_code else "NONE",
        node_id=only.node_id,
        host=only.host,
        port=only.port,
    )


def _error_response(code: ErrorCode) -> FindCoordinatorResponse:
    """Seen by both forms: the old fields, and one key without a name."""
    return FindCoordinatorResponse(
        error_code=code,
        node_id=_NO_NODE,
        port=-1,
        coordinators=[Coordinator(error_code=code, node_id=_NO_NODE, port=-1)],
    )


API = Api(
    key=ApiKey.FIND_COORDINATOR,
    versions=range(7),
    requirements=(
        Requirement(Operation.DESCRIBE, ResourceType.GROUP),
        Requirement(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    ),
    handle=handle,
    error_response=_error_response,
)
