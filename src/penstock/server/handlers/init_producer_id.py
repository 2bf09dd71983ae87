"""InitProducerId (22), versions 0-5: an id for a producer.

An idempotent producer that had to bump its epoch (KIP-360, from version 3 on) sends the id it has and gets a new one:
the broker keeps no state for plain idempotent producers, and a new id with epoch 0 is always right.

With a transactional id the producer becomes its owner, and whoever owned it before is fenced; a producer that names
its id and epoch asks for the next epoch only. PRODUCER_FENCED is INVALID_PRODUCER_EPOCH below version 4.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode
from penstock.coordinator.transaction.metadata import Producer
from penstock.coordinator.transaction.operations.owning import InitProducerId
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.transactions import fencing_code

_NONE = -1
_FENCED_FROM = 4


async def handle(context: Context, request: Request, message: InitProducerIdRequest) -> InitProducerIdResponse:
    # An id and its epoch come together or not at all.
    if (message.producer_id == _NONE) != (message.producer_epoch == _NONE) or message.transactional_id == "":
        return _failure(ErrorCode.INVALID_REQUEST)
    if message.transactional_id is not None:
        return await _own(context, request, message, message.transactional_id)
    return InitProducerIdResponse(
        throttle_time_ms=request.throttle_ms, producer_id=await context.producer_ids.next_id(), producer_epoch=0
    )


async def _own(
    context: Context, request: Request, message: InitProducerIdRequest, transactional_id: str
) -> InitProducerIdResponse:
    names_itself = message.producer_id != _NONE
    answer = await context.transactions.coordinator.init_producer_id(
        InitProducerId(
            transactional_id=transactional_id,
            timeout_ms=message.transaction_timeout_ms,
            expected=Producer(message.producer_id, message.producer_epoch) if names_itself else None,
        )
    )
    return InitProducerIdResponse(
        throttle_time_ms=request.throttle_ms,
        error_code=fencing_code(answer.code, request.api_version >= _FENCED_FROM),
        producer_id=answer.producer.id,
        producer_epoch=answer.producer.epoch,
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
