"""EndTxn (26), versions 0-5: commit or abort.

The answer comes when the decision is durable; the markers follow. Version 5 is the second protocol (KIP-890): the
epoch is raised, and the answer says who the producer is from now on. PRODUCER_FENCED is INVALID_PRODUCER_EPOCH below
version 2.
"""

from __future__ import annotations

from penstock.coordinator.transaction.metadata import EPOCH_BUMP_VERSION, Producer
from penstock.coordinator.transaction.operations.ending import EndTransaction
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.transactions import fencing_code

_FENCED_FROM = 2
_SECOND_PROTOCOL_FROM = 5


async def handle(context: Context, request: Request, message: EndTxnRequest) -> EndTxnResponse:
    answer = await context.transactions.coordinator.end_transaction(
        EndTransaction(
            transactional_id=message.transactional_id,
            producer=Producer(message.producer_id, message.producer_epoch),
            commit=message.committed,
            client_version=EPOCH_BUMP_VERSION if request.api_version >= _SECOND_PROTOCOL_FROM else 0,
        )
    )
    return EndTxnResponse(
        throttle_time_ms=request.throttle_ms,
        error_code=fencing_code(answer.code, request.api_version >= _FENCED_FROM),
        producer_id=answer.producer.id,
        producer_epoch=answer.producer.epoch,
    )


API = Api(
    key=ApiKey.END_TXN,
    versions=range(6),
    requirements=(Requirement(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),),
    handle=handle,
)
