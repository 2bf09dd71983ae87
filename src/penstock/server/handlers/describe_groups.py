"""DescribeGroups (15), versions 0-6: state, members and assignments.

A group that does not exist is shown as dead; from version 6 on it is GROUP_ID_NOT_FOUND as well (KIP-1043).
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: DescribeGroupsRequest) -> DescribeGroupsResponse:
    groups = context.groups.describe_groups(message.groups, request.api_version)
    if message.include_authorized_operations:
        for group in groups:
            if group.error_code == ErrorCode.NONE:
                group.authorized_operations = context.authorizer.authorized_operations(
                    request.session.principal, ResourceType.GROUP, group.group_id
                )
    return DescribeGroupsResponse(throttle_time_ms=request.throttle_ms, groups=groups)


def _error_response(code: ErrorCode) -> DescribeGroupsResponse:
    # Errors are per group, and a request that is refused as a whole has none.
    return DescribeGroupsResponse()


API = Api(
    key=ApiKey.DESCRIBE_GROUPS,
    versions=range(7),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.GROUP),),
    handle=handle,
    error_response=_error_response,
)
