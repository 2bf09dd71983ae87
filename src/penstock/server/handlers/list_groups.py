"""ListGroups (16), versions 0-5: the groups this broker coordinates; by state from 4 on, by type from 5 on."""

from __future__ import annotations

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: ListGroupsRequest) -> ListGroupsResponse:
    response = context.groups.list_groups(message)
    response.throttle_time_ms = request.throttle_ms
    return response


API = Api(
    key=ApiKey.LIST_GROUPS,
    versions=range(6),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.GROUP),),
    handle=handle,
)
