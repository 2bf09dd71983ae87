"""LeaveGroup (13), versions 0-5: one member, and from version 3 on several, also by instance id (KIP-345)."""

from __future__ import annotations

from penstock.coordinator.group.later import MaybeLater, then
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: LeaveGroupRequest) -> MaybeLater[LeaveGroupResponse]:
    def throttled(response: LeaveGroupResponse) -> LeaveGroupResponse:
        response.throttle_time_ms = request.throttle_ms
        return response

    return then(context.groups.leave_group(message, request.api_version), throttled)


API = Api(
    key=ApiKey.LEAVE_GROUP,
    versions=range(6),
    requirements=(Requirement(Operation.READ, ResourceType.GROUP),),
    handle=handle,
)
