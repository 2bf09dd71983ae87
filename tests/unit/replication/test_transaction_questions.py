"""Questions to coordinators: put together, asked again, and turned into what the client behind them understands."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from penstock.replication.transaction_questions import ClientSupport, CoordinatorQuestions, Question, QuestionSettings
from tests.unit.coordinator.runtime.fakes import FakeWorld

E = ErrorCode
ORDERS_0, ORDERS_1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
OLD, ABORTABLE, SECOND = ClientSupport


class Brokers:
    """`plan` holds the codes of the next answers; without one everything is fine. None is a broken connection."""

    def __init__(self, world: FakeWorld) -> None:
        self.world = world
        self.requests: list[tuple[int, AddPartitionsToTxnRequest]] = []
        self.plan: list[ErrorCode | None] = []
        self.whole_code = E.NONE

    def send(
        self, node_id: int, api_key: int, message: Any, *, timeout_ms: float | None = None, at_least: int = 0
    ) -> asyncio.Future[Any]:
        assert (api_key, at_least) == (ApiKey.ADD_PARTITIONS_TO_TXN, 4)
        self.requests.append((node_id, message))
        future = self.world.future()
        code = self.plan.pop(0) if self.plan else E.NONE
        if code is None:
            future.set_exception(KafkaError(E.NETWORK_EXCEPTION))
        else:
            future.set_result(self._response(message, code))
        return future

    def _response(self, message: AddPartitionsToTxnRequest, code: ErrorCode) -> AddPartitionsToTxnResponse:
        if self.whole_code is not E.NONE:
            return AddPartitionsToTxnResponse(error_code=self.whole_code)
        return AddPartitionsToTxnResponse(
            results_by_transaction=[
                AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id,
                    topic_results=[
                        AddPartitionsToTxnTopicResult(
                            name=topic.name,
                            results_by_partition=[
                                AddPartitionsToTxnPartitionResult(partition_index=index, partition_error_code=code)
                                for index in topic.partitions
                            ],
                        )
                        for topic in each.topics
                    ],
                )
                for each in message.transactions
            ]
        )


class Stage:
    def __init__(self) -> None:
        self.world = FakeWorld()
        self.brokers = Brokers(self.world)
        self.coordinators: dict[str, int] = {"a": 1, "b": 1, "c": 2}
        self.questions = CoordinatorQuestions(
            peers=self.brokers,
            coordinator_of=self.coordinators.get,
            tasks=self.world,
            clock=self.world,
            settings=lambda: QuestionSettings(retry_backoff_ms=20, retry_max_ms=100),
        )
        self.answers: list[ErrorCode] = []

    def ask(
        self, name: str = "a", place: TopicPartition = ORDERS_0, *, epoch: int = 0, support: ClientSupport = OLD
    ) -> None:
        question = Question(transactional_id=name, producer_id=7, producer_epoch=epoch, support=support)
        self.questions.ask(question, place, self.answers.append)


@pytest.fixture
def stage() -> Any:
    stage = Stage()
    yield stage
    stage.world.close()


def test_questions_of_one_turn_travel_together(stage: Stage) -> None:
    stage.ask("a", ORDERS_0)
    stage.ask("a", ORDERS_1)
    stage.ask("b", ORDERS_0)
    stage.ask("c", ORDERS_0)
    stage.world.settle()
    assert stage.answers == [E.NONE] * 4
    assert [(node, len(message.transactions)) for node, message in stage.brokers.requests] == [(1, 2), (2, 1)]
    assert [topic.partitions for topic in stage.brokers.requests[0][1].transactions[0].topics] == [[0, 1]]


def test_an_id_stands_in_a_request_once(stage: Stage) -> None:
    stage.ask("a", epoch=0)
    stage.ask("a", epoch=1)
    stage.ask("b")
    stage.world.settle()
    asked = [
        [(each.transactional_id, each.producer_epoch) for each in message.transactions]
        for _, message in stage.brokers.requests
    ]
    assert asked == [[("a", 0), ("b", 0)], [("a", 1)]]


@pytest.mark.parametrize(("support", "verify_only"), [(OLD, True), (ABORTABLE, True), (SECOND, False)])
def test_the_second_protocol_adds(stage: Stage, support: ClientSupport, verify_only: bool) -> None:
    stage.ask(support=support)
    stage.world.settle()
    assert stage.brokers.requests[0][1].transactions[0].verify_only is verify_only


@pytest.mark.parametrize(
    ("code", "support", "told"),
    [
        (E.PRODUCER_FENCED, OLD, E.INVALID_PRODUCER_EPOCH),
        (E.PRODUCER_FENCED, SECOND, E.INVALID_PRODUCER_EPOCH),
        (E.TRANSACTION_ABORTABLE, OLD, E.INVALID_TXN_STATE),
        (E.TRANSACTION_ABORTABLE, ABORTABLE, E.TRANSACTION_ABORTABLE),
        (E.CONCURRENT_TRANSACTIONS, OLD, E.CONCURRENT_TRANSACTIONS),
        (E.INVALID_PRODUCER_ID_MAPPING, SECOND, E.INVALID_PRODUCER_ID_MAPPING),
        (None, OLD, E.NETWORK_EXCEPTION),
    ],
)
def test_codes(stage: Stage, code: ErrorCode | None, support: ClientSupport, told: ErrorCode) -> None:
    stage.brokers.plan = [code]
    stage.ask(support=support)
    stage.world.settle()
    assert stage.answers == [told]


@pytest.mark.parametrize(
    ("code", "told"), [(E.CLUSTER_AUTHORIZATION_FAILED, E.INVALID_TXN_STATE), (E.NOT_COORDINATOR, E.NOT_COORDINATOR)]
)
def test_an_error_of_the_whole_request(stage: Stage, code: ErrorCode, told: ErrorCode) -> None:
    stage.brokers.whole_code = code
    stage.ask()
    stage.world.settle()
    assert stage.answers == [told]


def test_without_a_coordinator(stage: Stage) -> None:
    stage.ask("nobody")
    stage.world.settle()
    assert stage.answers == [E.COORDINATOR_NOT_AVAILABLE]
    assert stage.brokers.requests == []


def test_the_second_protocol_is_asked_about_again_for_a_while(stage: Stage) -> None:
    stage.brokers.plan = [E.CONCURRENT_TRANSACTIONS] * 3
    stage.ask(support=SECOND)
    stage.world.settle()
    assert stage.answers == []
    stage.world.advance(0.07)
    stage.world.settle()
    assert stage.answers == [E.NONE]
    assert len(stage.brokers.requests) == 4


def test_but_not_for_ever(stage: Stage) -> None:
    stage.brokers.plan = [E.CONCURRENT_TRANSACTIONS] * 50
    stage.ask(support=SECOND)
    stage.world.settle()
    stage.world.advance(0.2)
    stage.world.settle()
    assert stage.answers == [E.CONCURRENT_TRANSACTIONS]
    assert len(stage.brokers.requests) <= 6


@pytest.mark.parametrize(("version", "support"), [(3, OLD), (10, OLD), (11, ABORTABLE), (12, SECOND), (13, SECOND)])
def test_what_a_produce_version_says_of_its_client(version: int, support: ClientSupport) -> None:
    assert ClientSupport.of_produce(version) is support


@pytest.mark.parametrize(("version", "support"), [(0, OLD), (3, OLD), (4, ABORTABLE), (5, SECOND)])
def test_what_an_offset_commit_version_says_of_its_client(version: int, support: ClientSupport) -> None:
    assert ClientSupport.of_offset_commit(version) is support
