"""A coordinator that answers from a script, and a producer that only counts."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from typing import Any

from penstock.base.errors import KafkaError
from penstock.client.core.ports import system_ports
from penstock.client.core.types import CoordinatorKind
from penstock.client.producer.transactions.manager import TransactionManager
from penstock.network.address import Address
from penstock.network.errors import ConnectFailed
from penstock.network.versions import VersionTable
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnResponse
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopicResult,
)
from penstock.protocol.messages.api_versions import ApiVersion
from penstock.protocol.messages.end_txn import EndTxnResponse
from penstock.protocol.messages.init_producer_id import InitProducerIdResponse
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)


class Config(dict[Any, Any]):
    def __missing__(self, key: Any) -> Any:
        return {"retry.backoff.ms": 1, "retry.backoff.max.ms": 2, "max.block.ms": 5_000}.get(key.name, key.default)


class FakeCore:
    """`script[api]` holds codes, exceptions or futures to wait for, in turn; when it is empty, all is well."""

    def __init__(self, version: int) -> None:
        self.config = Config()
        self.script: defaultdict[ApiKey, deque[Any]] = defaultdict(deque)
        self.asked: list[tuple[ApiKey, Any, int]] = []
        self.lost: list[CoordinatorKind] = []
        self.epoch = -1
        self.version = version
        self.is_away = False

    async def start(self) -> None:
        self.ports, self.tasks = system_ports()

    async def coordinator(self, kind: CoordinatorKind, key: str) -> int:
        return 1

    def coordinator_lost(self, kind: CoordinatorKind, key: str) -> None:
        self.lost.append(kind)

    def why_late(self) -> str:
        return ""

    def known_coordinator(self, kind: CoordinatorKind, key: str) -> int | None:
        return 1

    async def versions(self, node_id: int, *, timeout_ms: float | None = None) -> VersionTable:
        if self.is_away:
            raise ConnectFailed(None, "nobody is there")
        served = [ApiVersion(api_key=each.key, min_version=0, max_version=99) for each in APIS.values()]
        return VersionTable(Address("x", 1), served, {"transaction.version": self.version})

    async def send(self, node_id: int, api_key: ApiKey, message: Any, *, at_least: int, at_most: int) -> Any:
        version = min(APIS[api_key].highest_version, at_most)
        assert version >= at_least
        self.asked.append((api_key, message, version))
        step = self.script[api_key].popleft() if self.script[api_key] else 0
        if isinstance(step, asyncio.Future):
            step = await step
        if isinstance(step, KafkaError):
            raise step
        return getattr(self, f"_{api_key.name.lower()}")(message, int(step), version)

    def names(self) -> list[str]:
        return [api.name for api, _, _ in self.asked]

    def _init_producer_id(self, message: Any, code: int, version: int) -> Any:
        self.epoch += not code
        return InitProducerIdResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def _add_partitions_to_txn(self, message: Any, code: int, version: int) -> Any:
        topics = [
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(partition_index=each, partition_error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in message.v3_and_below_topics
        ]
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=topics)

    def _add_offsets_to_txn(self, message: Any, code: int, version: int) -> Any:
        return AddOffsetsToTxnResponse(error_code=code)

    def _end_txn(self, message: Any, code: int, version: int) -> Any:
        if version < 5:
            return EndTxnResponse(error_code=code)
        self.epoch += not code
        return EndTxnResponse(error_code=code, producer_id=7, producer_epoch=self.epoch)

    def _txn_offset_commit(self, message: Any, code: int, version: int) -> Any:
        topics = [
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ]
        return TxnOffsetCommitResponse(topics=topics)


class FakeProducer:
    """Identity and hooks in one."""

    def __init__(self) -> None:
        self.producer_id = -1
        self.producer_epoch = -1
        self.dropped: list[KafkaError] = []
        self.flushing: asyncio.Event | None = None
        self.manager: TransactionManager | None = None

    def assign(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id, self.producer_epoch = producer_id, producer_epoch

    async def flush(self) -> None:
        if self.flushing is not None:
            await self.flushing.wait()

    def abort_unsent(self, error: KafkaError) -> None:
        self.dropped.append(error)

    def wake_sender(self) -> None:
        assert self.manager is not None
        self.manager.prepare()


async def made(version: int, *, initialized: bool = True) -> tuple[TransactionManager, FakeCore, FakeProducer]:
    core, producer = FakeCore(version), FakeProducer()
    await core.start()
    manager = TransactionManager(core, transactional_id="orders", identity=producer, hooks=producer)
    producer.manager = manager
    if initialized:
        await manager.init()
    return manager, core, producer
