"""DescribeTransactions (65), version 0: the committed state of transactional ids this broker coordinates."""

from __future__ import annotations

from penstock.coordinator.transaction.answers import DescribedTransaction
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
    TransactionState,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: DescribeTransactionsRequest) -> DescribeTransactionsResponse:
    coordinator = context.transactions.coordinator
    return DescribeTransactionsResponse(
        throttle_time_ms=request.throttle_ms,
        transaction_states=[_state(coordinator.describe_transaction(each)) for each in message.transactional_ids],
    )


def _state(found: DescribedTransaction) -> TransactionState:
    return TransactionState(
        error_code=found.code,
        transactional_id=found.transactional_id,
        transaction_state=found.state,
        transaction_timeout_ms=found.timeout_ms,
        transaction_start_time_ms=found.start_ms,
        producer_id=found.producer.id,
        producer_epoch=found.producer.epoch,
        topics=[TopicData(topic=topic, partitions=list(indexes)) for topic, indexes in found.topics.items()],
    )


API = Api(
    key=ApiKey.DESCRIBE_TRANSACTIONS,
    versions=range(1),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),),
    handle=handle,
)
