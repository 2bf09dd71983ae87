"""The questions of partition leaders to transaction coordinators, put together per broker: AddPartitionsToTxn v4+.

Questions of one turn of the loop about the same transaction are one entry of the request, and all entries for one
coordinator are one request. A coordinator that is still busy with the transaction before (its markers) is asked again
for a short while on behalf of clients that cannot do that themselves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock, Tasks
from penstock.base.types import TopicPartition
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)

_FROM_BROKERS: Final = 4
"""The first version with several transactions and `verify_only`."""

Answered = Callable[[ErrorCode], None]


class ClientSupport(IntEnum):
    """What the producer behind a batch understands, by the version of its request (KIP-890)."""

    OLD_ERRORS = 0
    """INVALID_TXN_STATE when the partition is not in the transaction."""
    ABORTABLE_ERROR = 1
    """TRANSACTION_ABORTABLE instead."""
    ADDS_PARTITIONS = 2
    """The second protocol: the partition is added with its first batch."""

    @classmethod
    def of_produce(cls, version: int) -> ClientSupport:
        return cls.ADDS_PARTITIONS if version > 11 else cls.ABORTABLE_ERROR if version > 10 else cls.OLD_ERRORS

    @classmethod
    def of_offset_commit(cls, version: int) -> ClientSupport:
        return cls.ADDS_PARTITIONS if version > 4 else cls.ABORTABLE_ERROR if version > 3 else cls.OLD_ERRORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """About which transaction; equal ones travel together."""

    transactional_id: str
    producer_id: int
    producer_epoch: int
    support: ClientSupport

    @property
    def verify_only(self) -> bool:
        return self.support is not ClientSupport.ADDS_PARTITIONS


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionSettings:
    request_timeout_ms: int = 30_000
    retry_backoff_ms: int = 20
    retry_max_ms: int = 100


class Peers(Protocol):
    """Requests to brokers; `penstock.network.pool.ChannelPool` is one."""

    def send(
        self, node_id: int, api_key: int, message: object, *, timeout_ms: float | None = None, at_least: int = 0
    ) -> asyncio.Future[Any]: ...


class AskCoordinators(Protocol):
    def ask(self, question: Question, place: TopicPartition, answered: Answered) -> None:
        """`answered` is called once, later: NONE when `place` is in the transaction."""


class _Asked(NamedTuple):
    place: TopicPartition
    answered: Answered
    asked_at: float


_Entries = dict[Question, list[_Asked]]


class CoordinatorQuestions:
    """`coordinator_of` gives the node that coordinates a transactional id, None when there is none at present."""

    def __init__(
        self,
        *,
        peers: Peers,
        coordinator_of: Callable[[str], int | None],
        tasks: Tasks,
        clock: Clock,
        settings: Callable[[], QuestionSettings] = QuestionSettings,
    ) -> None:
        self._peers = peers
        self._coordinator_of = coordinator_of
        self._tasks = tasks
        self._clock = clock
        self._settings = settings
        self._entries: _Entries = {}

    def ask(self, question: Question, place: TopicPartition, answered: Answered) -> None:
        self._put(question, _Asked(place, answered, self._clock.monotonic()))

    def _put(self, question: Question, asked: _Asked) -> None:
        if not self._entries:
            self._tasks.call_soon(self._send_all)
        self._entries.setdefault(question, []).append(asked)

    def _send_all(self) -> None:
        entries, self._entries = self._entries, {}
        by_node: dict[int | None, list[_Entries]] = {}
        used: dict[str, int] = {}
        for question, asked in entries.items():
            requests = by_node.setdefault(self._coordinator_of(question.transactional_id), [])
            # A transactional id may stand in a request only once: its next producer goes into the next request.
            place = used.get(question.transactional_id, 0)
            used[question.transactional_id] = place + 1
            if place >= len(requests):
                requests.append({})
            requests[place][question] = asked
        for node, requests in by_node.items():
            for each in requests:
                self._tasks.spawn(self._send(node, each), name=f"transaction coordinator {node}")

    async def _send(self, node: int | None, entries: _Entries) -> None:
        failure = ErrorCode.COORDINATOR_NOT_AVAILABLE
        codes: Mapping[tuple[str, TopicPartition], ErrorCode] = {}
        if node is not None:
            failure, codes = await self._request(node, entries)
        for question, asked in entries.items():
            for each in asked:
                self._answer(question, each, codes.get((question.transactional_id, each.place), failure))

    async def _request(
        self, node: int, entries: _Entries
    ) -> tuple[ErrorCode, Mapping[tuple[str, TopicPartition], ErrorCode]]:
        """What holds for partitions that the answer does not name, and what it says of the others."""
        try:
            response: AddPartitionsToTxnResponse = await self._peers.send(
                node,
                ApiKey.ADD_PARTITIONS_TO_TXN,
                _request(entries),
                timeout_ms=self._settings().request_timeout_ms,
                at_least=_FROM_BROKERS,
            )
        except KafkaError:
            return ErrorCode.NETWORK_EXCEPTION, {}
        if response.error_code:
            code = ErrorCode.of(response.error_code)
            # A client must not learn that this broker may not ask.
            return (ErrorCode.INVALID_TXN_STATE if code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED else code), {}
        return ErrorCode.UNKNOWN_SERVER_ERROR, _codes(response)

    def _answer(self, question: Question, asked: _Asked, code: ErrorCode) -> None:
        settings = self._settings()
        if code is ErrorCode.CONCURRENT_TRANSACTIONS and not question.verify_only:
            waited_ms = (self._clock.monotonic() - asked.asked_at) * 1000
            if waited_ms + settings.retry_backoff_ms <= settings.retry_max_ms:
                self._tasks.call_later(settings.retry_backoff_ms / 1000, lambda: self._put(question, asked))
                return
        asked.answered(_for_client(code, question.support))


def _for_client(code: ErrorCode, support: ClientSupport) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and support is ClientSupport.OLD_ERRORS:
        return ErrorCode.INVALID_TXN_STATE
    return code


def _request(entries: _Entries) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        transactions=[
            AddPartitionsToTxnTransaction(
                transactional_id=question.transactional_id,
                producer_id=question.producer_id,
                producer_epoch=question.producer_epoch,
                verify_only=question.verify_only,
                topics=_topics(asked),
            )
            for question, asked in entries.items()
        ]
    )


def _topics(asked: Sequence[_Asked]) -> list[AddPartitionsToTxnTopic]:
    topics: dict[str, list[int]] = {}
    for topic, partition in sorted({each.place for each in asked}):
        topics.setdefault(topic, []).append(partition)
    return [AddPartitionsToTxnTopic(name=name, partitions=partitions) for name, partitions in topics.items()]


def _codes(response: AddPartitionsToTxnResponse) -> dict[tuple[str, TopicPartition], ErrorCode]:
    return {
        (transaction.transactional_id, TopicPartition(topic.name, each.partition_index)): ErrorCode.of(
            each.partition_error_code
        )
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for each in topic.results_by_partition
    }
