"""Transactions as their coordinators know them: list, describe, fence. Every broker lists what it coordinates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.enums import TransactionState, worded
from penstock.client.admin.errors import failure
from penstock.client.core.nodes import broker_id
from penstock.client.core.types import CoordinatorKind
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_transactions import ListTransactionsRequest

_TRANSACTION: Final = CoordinatorKind.TRANSACTION
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionListing:
    """One line of `list_transactions`."""

    transactional_id: str
    producer_id: int
    state: TransactionState
    coordinator: int
    """The broker that coordinates it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionDescription:
    """A transaction as its coordinator knows it."""

    transactional_id: str
    coordinator: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    start_time_ms: int | None
    """None while no transaction is under way."""
    partitions: frozenset[TopicPartition]


@dataclass(frozen=True, slots=True, kw_only=True)
class FencedProducer:
    """What the next producer with the transactional id would have got; the last one can write no more."""

    producer_id: int
    producer_epoch: int


async def list_transactions(
    asker: Asker,
    *,
    states: Iterable[TransactionState | str] = (),
    producer_ids: Iterable[int] = (),
    running_longer_than_ms: int | None = None,
    transactional_id_pattern: str | None = None,
    timeout_ms: float | None = None,
) -> dict[str, TransactionListing]:
    """The transactional ids of the cluster, with the states of their transactions.

    `running_longer_than_ms` and `transactional_id_pattern` (a regular expression) need newer brokers.
    """
    wanted = [checks.member(each, TransactionState, "a state of transactions").value for each in states]
    at_least = 2 if transactional_id_pattern else 1 if running_longer_than_ms is not None else 0
    request = ListTransactionsRequest(
        state_filters=wanted,
        producer_id_filters=[checks.number(each, "a producer id", at_most=_INT64_MAX) for each in producer_ids],
        duration_filter=-1 if running_longer_than_ms is None else running_longer_than_ms,
        transactional_id_pattern=transactional_id_pattern,
    )
    answers = await asker.every_broker(
        ApiKey.LIST_TRANSACTIONS,
        request,
        timeout_ms=timeout_ms,
        at_least=at_least,
        check=lambda it: int(it.error_code),
    )
    found = {
        each.transactional_id: TransactionListing(
            transactional_id=each.transactional_id,
            producer_id=each.producer_id,
            state=worded(TransactionState, each.transaction_state),
            coordinator=node_id,
        )
        for node_id, answer in answers.items()
        for each in answer.transaction_states
    }
    return dict(sorted(found.items()))


async def describe_transactions(
    asker: Asker, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
) -> dict[str, TransactionDescription]:
    """Transactions by transactional id: state, partitions, and since when."""

    async def one(name: str) -> TransactionDescription:
        answer = await asker.coordinator(
            _TRANSACTION,
            name,
            ApiKey.DESCRIBE_TRANSACTIONS,
            DescribeTransactionsRequest(transactional_ids=[name]),
            lambda it: (each.error_code for each in it.transaction_states),
            timeout_ms=timeout_ms,
        )
        found = answer.transaction_states[0]
        if found.error_code:
            raise failure(f"transactional id {name}", found.error_code)
        node_id = await asker.core.coordinator(_TRANSACTION, name, timeout_ms=timeout_ms)
        return _described(found, broker_id(node_id))

    wanted = checks.names(transactional_ids, "transactional ids")
    return (await asker.each_coordinator(_TRANSACTION, wanted, one, timeout_ms=timeout_ms)).result()


def _described(found: Any, coordinator: int) -> TransactionDescription:
    return TransactionDescription(
        transactional_id=found.transactional_id,
        coordinator=coordinator,
        state=worded(TransactionState, found.transaction_state),
        producer_id=found.producer_id,
        producer_epoch=found.producer_epoch,
        timeout_ms=found.transaction_timeout_ms,
        start_time_ms=found.transaction_start_time_ms if found.transaction_start_time_ms >= 0 else None,
        partitions=frozenset(TopicPartition(topic.topic, each) for topic in found.topics for each in topic.partitions),
    )


async def fence_producers(
    asker: Asker, transactional_ids: Iterable[str], *, timeout_ms: float | None = None
) -> dict[str, FencedProducer]:
    """Put the producers of transactional ids out of action; their open transactions are aborted."""

    async def one(name: str) -> FencedProducer:
        # The time-out of the transaction that will never be: the shortest.
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=1)
        async for attempt in asker.core.retry(timeout_ms=timeout_ms, what=f"fencing the producers of {name}"):
            answer = await asker.coordinator(
                _TRANSACTION,
                name,
                ApiKey.INIT_PRODUCER_ID,
                request,
                lambda it: (it.error_code,),
                timeout_ms=attempt.remaining_ms,
                at_most=5,
            )
            if not answer.error_code:
                return FencedProducer(producer_id=answer.producer_id, producer_epoch=answer.producer_epoch)
            error = failure(f"transactional id {name}", answer.error_code)
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                raise error
            attempt.failed(error)
        raise AssertionError("a retry ends by returning or raising")

    wanted = checks.names(transactional_ids, "transactional ids")
    return (await asker.each_coordinator(_TRANSACTION, wanted, one, timeout_ms=timeout_ms)).result()
