"""Heartbeat (12), versions 0-4: a member is alive, and hears when it has to join again."""

from __future__ import annotations

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: HeartbeatRequest) -> HeartbeatResponse:
    return HeartbeatResponse(throttle_time_ms=request.throttle_ms, error_code=context.groups.heartbeat(message))


API = Api(
    key=ApiKey.HEARTBEAT,
    versions=range(5),
    requirements=(Requirement(Operation.READ, ResourceType.GROUP),),
    handle=handle,
)
