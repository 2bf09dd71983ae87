"""ListPartitionReassignments (46), version 0: what is being moved. Each move is done at once, so nothing is."""

from __future__ import annotations

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(
    context: Context, request: Request, message: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(throttle_time_ms=request.throttle_ms)


API = Api(
    key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    versions=range(1),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.CLUSTER),),
    handle=handle,
)
