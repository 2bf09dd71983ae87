"""ListTransactions (66), versions 0-2: the transactional ids this broker coordinates.

Filters by state and producer id; from version 1 on by age, from version 2 on by a pattern for the whole id (KIP-1152).
A state that does not exist is named in the answer and matches nothing.
"""

from __future__ import annotations

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.transaction.operations.looking import TransactionFilter
from penstock.coordinator.transaction.patterns import PatternError, compile_pattern
from penstock.coordinator.transaction.states import STATES_BY_LABEL
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
    TransactionState,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request


def handle(context: Context, request: Request, message: ListTransactionsRequest) -> ListTransactionsResponse:
    try:
        pattern = message.transactional_id_pattern
        matches = compile_pattern(pattern) if pattern else None
        found = context.transactions.coordinator.list_transactions(
            TransactionFilter(
                states=frozenset(STATES_BY_LABEL[each] for each in message.state_filters if each in STATES_BY_LABEL),
                any_state=not message.state_filters,
                producer_ids=frozenset(message.producer_id_filters),
                duration_ms=message.duration_filter,
                id_matches=matches,
            )
        )
    except PatternError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    except KafkaError as error:
        return ListTransactionsResponse(error_code=error.code)
    return ListTransactionsResponse(
        throttle_time_ms=request.throttle_ms,
        unknown_state_filters=[each for each in message.state_filters if each not in STATES_BY_LABEL],
        transaction_states=[
            TransactionState(
                transactional_id=each.transactional_id, producer_id=each.producer_id, transaction_state=each.state
            )
            for each in found
        ],
    )


API = Api(
    key=ApiKey.LIST_TRANSACTIONS,
    versions=range(3),
    requirements=(Requirement(Operation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),),
    handle=handle,
)
