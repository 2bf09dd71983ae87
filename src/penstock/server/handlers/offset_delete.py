"""OffsetDelete (47), version 0: forget how far a group has come, in topics that it does not read."""

from __future__ import annotations

from penstock.coordinator.group.later import MaybeLater, then
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: OffsetDeleteRequest) -> MaybeLater[OffsetDeleteResponse]:
    def throttled(response: OffsetDeleteResponse) -> OffsetDeleteResponse:
        response.throttle_time_ms = request.throttle_ms
        return response

    return then(context.groups.offsets.delete(message), throttled)


API = Api(
    key=ApiKey.OFFSET_DELETE,
    versions=range(1),
    requirements=(
        Requirement(Operation.DELETE, ResourceType.GROUP),
        Requirement(Operation.READ, ResourceType.TOPIC),
    ),
    handle=handle,
)
