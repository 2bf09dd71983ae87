"""SyncGroup (14), versions 0-5: the leader brings the assignment, everybody gets theirs.

From version 5 on a member says which protocol it believes to be in use, and is refused when it is another.
"""

from __future__ import annotations

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


async def handle(context: Context, request: Request, message: SyncGroupRequest) -> SyncGroupResponse:
    response = await context.groups.sync_group(message, request.api_version)
    response.throttle_time_ms = request.throttle_ms
    return response


API = Api(
    key=ApiKey.SYNC_GROUP,
    versions=range(6),
    requirements=(Requirement(Operation.READ, ResourceType.GROUP),),
    handle=handle,
)
