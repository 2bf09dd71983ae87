"""AlterPartitionReassignments (45), versions 0-1: other replicas for partitions, or null to cancel (KIP-455).

From version 1 on a request can forbid that the number of replicas changes.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.controller.reassignment import Reassignment, ReassignmentResult
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


async def handle(
    context: Context, request: Request, message: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    wanted = [
        Reassignment(topic=topic.name, partition=each.partition_index, replicas=each.replicas)
        for topic in message.topics
        for each in topic.partitions
    ]
    results = await context.controller.reassign_partitions(
        wanted, may_change_factor=message.allow_replication_factor_change
    )
    by_topic: dict[str, list[ReassignablePartitionResponse]] = {topic.name: [] for topic in message.topics}
    for result in results:
        by_topic[result.topic].append(_partition(result))
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=request.throttle_ms,
        # Kafka repeats the wish, unless there was nothing to do.
        allow_replication_factor_change=message.allow_replication_factor_change or not message.topics,
        responses=[ReassignableTopicResponse(name=name, partitions=parts) for name, parts in by_topic.items()],
    )


def _partition(result: ReassignmentResult) -> ReassignablePartitionResponse:
    return ReassignablePartitionResponse(
        partition_index=result.partition, error_code=result.error, error_message=result.message
    )


def _error_response(code: ErrorCode) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=code)


API = Api(
    key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    versions=range(2),
    requirements=(Requirement(Operation.ALTER, ResourceType.CLUSTER),),
    handle=handle,
    error_response=_error_response,
)
