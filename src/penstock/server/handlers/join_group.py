"""JoinGroup (11), versions 0-9: become a member, and wait for the group's next generation.

- 0: the session time-out is the rebalance time-out too.
- 4: a client without an id is given one first, and told to join with it (KIP-394).
- 5: static members, by `group.instance.id` (KIP-345).
- 7: the protocol's name may be null, where older versions have an empty one.
- 9: `skip_assignment` tells a static leader that came back to leave the assignment as it is (KIP-814).

An answer may take as long as the rebalance time-out. If the client goes away meanwhile, its session ends by itself.
"""

from __future__ import annotations

from penstock.coordinator.group.answers import Caller
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_NULL_PROTOCOL_FROM = 7


async def handle(context: Context, request: Request, message: JoinGroupRequest) -> JoinGroupResponse:
    # Kafka shows addresses as Java prints them, and tools have got used to it.
    caller = Caller(request.client_id or "", f"/{request.session.peer[0]}", request.api_version)
    response = await context.groups.join_group(caller, message)
    response.throttle_time_ms = request.throttle_ms
    response.protocol_name = response.protocol_name or ("" if request.api_version < _NULL_PROTOCOL_FROM else None)
    return response


API = Api(
    key=ApiKey.JOIN_GROUP,
    versions=range(10),
    requirements=(Requirement(Operation.READ, ResourceType.GROUP),),
    handle=handle,
)
