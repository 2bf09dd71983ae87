"""OffsetCommit (8), versions 2-10: remember how far a group has come.

- 2-4: the client may say how long the offsets are to be kept.
- 6: the leader epoch of the last record read (KIP-320).
- 7: static members. From 9 on a group that does not exist is GROUP_ID_NOT_FOUND instead of ILLEGAL_GENERATION.
- 10: topics by id (KIP-848).
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.coordinator.group.later import MaybeLater, then
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: OffsetCommitRequest) -> MaybeLater[OffsetCommitResponse]:
    def throttled(response: OffsetCommitResponse) -> OffsetCommitResponse:
        response.throttle_time_ms = request.throttle_ms
        return response

    return then(context.groups.offsets.commit(message, request.api_version), throttled)


def _error_response(code: ErrorCode) -> OffsetCommitResponse:
    # Errors are per partition, and a request that is refused as a whole has none.
    return OffsetCommitResponse()


API = Api(
    key=ApiKey.OFFSET_COMMIT,
    versions=range(2, 11),
    requirements=(
        Requirement(Operation.READ, ResourceType.GROUP),
        Requirement(Operation.READ, ResourceType.TOPIC),
    ),
    handle=handle,
    error_response=_error_response,
)
