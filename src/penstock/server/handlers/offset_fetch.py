"""OffsetFetch (9), versions 1-10: how far groups have come.

- 1: errors are per partition; from 2 on the group has its own, and null topics ask for all.
- 7: `require_stable` waits out open transactions (KIP-447).
- 8: several groups in one request. Older versions are answered from the same shape with one group.
- 9: a member of the newer protocol may say who it is; classic groups do not ask.
- 10: topics by id (KIP-848).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.coordinator.group.fetching import INVALID_OFFSET
from penstock.coordinator.group.later import MaybeLater
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_GROUPS_FROM = 8
_GROUP_ERRORS_FROM = 2


def handle(context: Context, request: Request, message: OffsetFetchRequest) -> MaybeLater[OffsetFetchResponse]:
    groups = message.groups if request.api_version >= _GROUPS_FROM else [_single_group(message)]
    answers = [
        context.groups.offsets.fetch(group, require_stable=message.require_stable, api_version=request.api_version)
        for group in groups
    ]
    ready = [answer for answer in answers if isinstance(answer, OffsetFetchResponseGroup)]
    if len(ready) < len(answers):
        return _gather(request, message, answers)
    return _response(request, message, ready)


async def _gather(
    request: Request,
    message: OffsetFetchRequest,
    answers: list[OffsetFetchResponseGroup | Coroutine[Any, Any, OffsetFetchResponseGroup]],
) -> OffsetFetchResponse:
    waiting = [answer for answer in answers if not isinstance(answer, OffsetFetchResponseGroup)]
    found = iter(await asyncio.gather(*waiting))
    groups = [answer if isinstance(answer, OffsetFetchResponseGroup) else next(found) for answer in answers]
    return _response(request, message, groups)


def _single_group(message: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id=message.group_id,
        topics=None
        if message.topics is None
        else [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in message.topics
        ],
    )


def _response(
    request: Request, message: OffsetFetchRequest, groups: list[OffsetFetchResponseGroup]
) -> OffsetFetchResponse:
    if request.api_version >= _GROUPS_FROM:
        return OffsetFetchResponse(throttle_time_ms=request.throttle_ms, groups=groups)
    (group,) = groups
    if request.api_version < _GROUP_ERRORS_FROM and group.error_code != ErrorCode.NONE:
        return OffsetFetchResponse(topics=_failed_topics(message, group.error_code))
    return OffsetFetchResponse(
        throttle_time_ms=request.throttle_ms,
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in group.topics
        ],
    )


def _failed_topics(message: OffsetFetchRequest, code: int) -> list[OffsetFetchResponseTopic]:
    return [
        OffsetFetchResponseTopic(
            name=topic.name,
            partitions=[
                OffsetFetchResponsePartition(
                    partition_index=partition, committed_offset=INVALID_OFFSET, metadata="", error_code=code
                )
                for partition in topic.partition_indexes
            ],
        )
        for topic in message.topics or ()
    ]


API = Api(
    key=ApiKey.OFFSET_FETCH,
    versions=range(1, 11),
    requirements=(
        Requirement(Operation.DESCRIBE, ResourceType.GROUP),
        Requirement(Operation.DESCRIBE, ResourceType.TOPIC),
    ),
    handle=handle,
)
