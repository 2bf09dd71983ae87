"""DeleteGroups (42), versions 0-2: groups without members, with all their offsets."""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


async def handle(context: Context, request: Request, message: DeleteGroupsRequest) -> DeleteGroupsResponse:
    response = await context.groups.delete_groups(message.groups_names)
    response.throttle_time_ms = request.throttle_ms
    return response


def _error_response(code: ErrorCode) -> DeleteGroupsResponse:
    # Errors are per group, and a request that is refused as a whole has none.
    return DeleteGroupsResponse()


API = Api(
    key=ApiKey.DELETE_GROUPS,
    versions=range(3),
    requirements=(Requirement(Operation.DELETE, ResourceType.GROUP),),
    handle=handle,
    error_response=_error_response,
)
