"""InitProducerId (22), versions 0-5: an id for an idempotent producer.

A producer that had to bump its epoch (KIP-360, from version 3 on) sends the id it has and gets a new one: the broker
keeps no state for plain idempotent producers, and a new id with epoch 0 is always right. Transactional ids belong to a
transaction coordinator.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_NONE = -1


async def handle(context: Context, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    # An id and its epoch come together or not at all.
    if (message.producer_id == _NONE) != (message.producer_epoch == _NONE) or message.transactional_id == "":
        return _failure(ErrorCode.INVALID_REQUEST)
    if message.transactional_id is not None:
        return _failure(ErrorCode.NOT_COORDINATOR)
    return InitProducerIdResponse(
        throttle_time_ms=request.throttle_ms, producer_id=await context.producer_ids.next_id(), producer_epoch=0
    )


def _failure(code: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(error_code=code, producer_id=_NONE, producer_epoch=_NONE)


API = Api(
    key=ApiKey.INIT_PRODUCER_ID,
    versions=range(6),
    requirements=(Requirement(Operation.IDEMPOTENT_WRITE, ResourceType.CLUSTER),),
    handle=handle,
    error_response=_failure,
)
