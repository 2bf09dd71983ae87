"""AddOffsetsToTxn (25), versions 0-4: a transaction of the first protocol is going to commit a group's offsets.

The partition of `__consumer_offsets` that holds the group becomes a partition of the transaction. PRODUCER_FENCED is
INVALID_PRODUCER_EPOCH below version 2.
"""

from __future__ import annotations

from penstock.base.internal_topics import CONSUMER_OFFSETS
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.metadata import Producer
from penstock.coordinator.transaction.operations.partitions import PartitionsOfTransaction
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.transactions import fencing_code

_FENCED_FROM = 2


async def handle(context: Context, request: Request, message: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    place = TopicPartition(CONSUMER_OFFSETS, context.groups.partition_for(message.group_id))
    answer = await context.transactions.coordinator.add_partitions(
        PartitionsOfTransaction(
            transactional_id=message.transactional_id,
            producer=Producer(message.producer_id, message.producer_epoch),
            partitions=frozenset({place}),
        )
    )
    code = fencing_code(answer.code, request.api_version >= _FENCED_FROM)
    return AddOffsetsToTxnResponse(throttle_time_ms=request.throttle_ms, error_code=code)


API = Api(
    key=ApiKey.ADD_OFFSETS_TO_TXN,
    versions=range(5),
    requirements=(
        Requirement(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        Requirement(Operation.READ, ResourceType.GROUP),
    ),
    handle=handle,
)
