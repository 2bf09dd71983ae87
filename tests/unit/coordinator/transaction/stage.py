"""A transaction coordinator on the fake log, and brokers in the same process that take its markers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.transaction.answers import Answer
from penstock.coordinator.transaction.coordinator import TransactionCoordinator
from penstock.coordinator.transaction.metadata import Producer, TransactionMetadata
from penstock.coordinator.transaction.operations.ending import EndTransaction
from penstock.coordinator.transaction.operations.owning import InitProducerId
from penstock.coordinator.transaction.operations.partitions import PartitionsOfTransaction
from penstock.coordinator.transaction.settings import TransactionSettings
from penstock.coordinator.transaction.shard import TransactionShard
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from tests.unit.coordinator.runtime.fakes import FakeLog, FakeWorld

ORDERS_0 = TopicPartition("orders", 0)
ORDERS_1 = TopicPartition("orders", 1)
PAYMENTS_0 = TopicPartition("payments", 0)
TIMEOUT_MS = 60_000


@dataclass(frozen=True)
class WrittenMarker:
    place: TopicPartition
    producer: Producer
    commit: bool
    coordinator_epoch: int
    version: int


@dataclass
class FakePeers:
    """Every broker at once. `codes` are answered in turn instead of success; `down` brokers answer nothing."""

    world: FakeWorld
    leaders: dict[TopicPartition, int] = field(default_factory=lambda: {ORDERS_0: 1, ORDERS_1: 2, PAYMENTS_0: 1})
    codes: dict[TopicPartition, list[ErrorCode]] = field(default_factory=dict)
    down: set[int] = field(default_factory=set)
    is_holding: bool = False
    written: list[WrittenMarker] = field(default_factory=list)
    requests: list[tuple[int, WriteTxnMarkersRequest]] = field(default_factory=list)
    _held: list[tuple[int, WriteTxnMarkersRequest, asyncio.Future[Any]]] = field(default_factory=list)

    def leader_of(self, place: TopicPartition) -> int | None:
        return self.leaders.get(place)

    def send(
        self, node_id: int, api_key: int, message: object, *, timeout_ms: float | None = None, at_least: int = 0
    ) -> asyncio.Future[Any]:
        assert api_key == ApiKey.WRITE_TXN_MARKERS
        assert isinstance(message, WriteTxnMarkersRequest)
        future = self.world.future()
        self.requests.append((node_id, message))
        if self.is_holding:
            self._held.append((node_id, message, future))
        else:
            self._answer(node_id, message, future)
        return future

    def release(self) -> None:
        self.is_holding = False
        held, self._held = self._held, []
        for each in held:
            self._answer(*each)

    def _answer(self, node_id: int, message: WriteTxnMarkersRequest, future: asyncio.Future[Any]) -> None:
        if node_id in self.down:
            future.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, f"node {node_id} is down"))
            return
        results = []
        for marker in message.markers:
            topics = []
            for topic in marker.topics:
                partitions = []
                for index in topic.partition_indexes:
                    place = TopicPartition(topic.name, index)
                    code = self._code(node_id, place)
                    if code is ErrorCode.NONE:
                        self.written.append(
                            WrittenMarker(
                                place,
                                Producer(marker.producer_id, marker.producer_epoch),
                                marker.transaction_result,
                                marker.coordinator_epoch,
                                marker.transaction_version,
                            )
                        )
                    partitions.append(WritableTxnMarkerPartitionResult(partition_index=index, error_code=code))
                topics.append(WritableTxnMarkerTopicResult(name=topic.name, partitions=partitions))
            results.append(WritableTxnMarkerResult(producer_id=marker.producer_id, topics=topics))
        future.set_result(WriteTxnMarkersResponse(markers=results))

    def _code(self, node_id: int, place: TopicPartition) -> ErrorCode:
        if self.leaders.get(place) != node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        planned = self.codes.get(place)
        return planned.pop(0) if planned else ErrorCode.NONE


class TransactionStage:
    """One partition of the coordinator's topic."""

    def __init__(self, *, commits_at_once: bool = True, **settings: Any) -> None:
        self.world = FakeWorld()
        self.log = FakeLog(commits_at_once=commits_at_once)
        self.peers = FakePeers(self.world)
        self.settings = replace(TransactionSettings(completion_wait_ms=0), **settings)
        self.next_id = 1000
        self.no_ids = False
        self.shards: list[TransactionShard] = []
        self._asked: list[asyncio.Future[Any]] = []
        self.start()

    def start(self) -> None:
        """A broker process on the log, as it is."""
        self.coordinator = TransactionCoordinator(
            settings=lambda: self.settings,
            next_producer_id=self._next_producer_id,
            peers=self.peers,
            leader_of=self.peers.leader_of,
            tasks=self.world,
        )
        self.runtime: CoordinatorRuntime[TransactionShard] = CoordinatorRuntime(
            "__transaction_state",
            self.log,
            clock=self.world,
            tasks=self.world,
            make_shard=self._make_shard,
            partition_count=lambda: 1,
            checks_invariants=True,
        )
        self.coordinator.attach(self.runtime)
        self.load()

    def load(self) -> None:
        self.log.leader_epoch = 0 if self.log.leader_epoch is None else self.log.leader_epoch
        self.runtime.load(0, self.log.leader_epoch)
        self.world.settle()

    def crash(self) -> None:
        """Kill the process and start another; the log has what it had."""
        self.coordinator.close()
        self.runtime.close()
        self.log.leader_epoch = (self.log.leader_epoch or 0) + 1
        self.log.hw = self.log.end
        self.start()

    def _make_shard(self, context: Any) -> TransactionShard:
        self.shards.append(self.coordinator.make_shard(context))
        return self.shards[-1]

    async def _next_producer_id(self) -> int:
        if self.no_ids:
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "nobody gives ids")
        self.next_id += 1
        return self.next_id

    @property
    def shard(self) -> TransactionShard:
        return self.shards[-1]

    def close(self) -> None:
        self.coordinator.close()
        self.runtime.close()
        for each in self._asked:
            if each.done() and not each.cancelled():
                each.exception()
        self.world.close()

    # -- Requests ------------------------------------------------------------------------------------------------------

    def begin(self, work: Coroutine[Any, Any, Any]) -> asyncio.Future[Any]:
        """Start a request and let everything happen that can happen without time."""
        future = self.world.spawn(work, name="request")
        self._asked.append(future)
        self.world.settle(20)
        return future

    def ask(self, work: Coroutine[Any, Any, Any]) -> Any:
        future = self.begin(work)
        assert future.done(), "the request waits"
        return future.result()

    def init(
        self, transactional_id: str = "a", expected: Producer | None = None, timeout_ms: int = TIMEOUT_MS
    ) -> Answer:
        request = InitProducerId(transactional_id=transactional_id, timeout_ms=timeout_ms, expected=expected)
        answer: Answer = self.ask(self.coordinator.init_producer_id(request))
        return answer

    def owner(self, transactional_id: str = "a") -> Producer:
        answer = self.init(transactional_id)
        assert answer.code is ErrorCode.NONE, answer
        return answer.producer

    def add(self, producer: Producer, *places: TopicPartition, transactional_id: str = "a") -> ErrorCode:
        answer: Answer = self.ask(self.coordinator.add_partitions(self._partitions(producer, places, transactional_id)))
        return answer.code

    def verify(
        self, producer: Producer, *places: TopicPartition, transactional_id: str = "a"
    ) -> dict[TopicPartition, ErrorCode]:
        return dict(self.coordinator.verify_partitions(self._partitions(producer, places, transactional_id)))

    def _partitions(
        self, producer: Producer, places: tuple[TopicPartition, ...], transactional_id: str
    ) -> PartitionsOfTransaction:
        return PartitionsOfTransaction(
            transactional_id=transactional_id, producer=producer, partitions=frozenset(places or (ORDERS_0,))
        )

    def end(self, producer: Producer, *, commit: bool = True, version: int = 2, transactional_id: str = "a") -> Answer:
        answer: Answer = self.ask(
            self.ending(producer, commit=commit, version=version, transactional_id=transactional_id)
        )
        return answer

    def ending(
        self, producer: Producer, *, commit: bool = True, version: int = 2, transactional_id: str = "a"
    ) -> Coroutine[Any, Any, Answer]:
        return self.coordinator.end_transaction(
            EndTransaction(transactional_id=transactional_id, producer=producer, commit=commit, client_version=version)
        )

    # -- What there is -------------------------------------------------------------------------------------------------

    def state(self, transactional_id: str = "a") -> str:
        return self.coordinator.describe_transaction(transactional_id).state

    def metadata(self, transactional_id: str = "a") -> TransactionMetadata:
        found = self.shard.transactions.get(transactional_id)
        assert found is not None
        return found

    def put(self, metadata: TransactionMetadata) -> None:
        """As if it had come so far."""
        self.runtime.write(0, "test", lambda shard: Result([shard.record(metadata)], None))
        self.world.settle(5)
