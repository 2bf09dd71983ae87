"""A cluster of the test's own: brokers by address that answer at once by handlers, on time that the test moves."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any

from penstock.base.types import ZERO_UUID
from penstock.client.config import ClientConfig, ClientKind
from penstock.client.core.client import ClientCore
from penstock.network.address import Address
from penstock.network.settings import NetworkPorts
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersion
from penstock.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.unit.network.fakes import EVERY_API, Asked, FakeBroker, FakeTime, FakeTransport, settle

Handler = Callable[[Any], Any]


class AnsweringBroker(FakeBroker):
    """Answers by its handlers; an API without one is never answered."""

    def __init__(self, served: tuple[ApiVersion, ...] = EVERY_API) -> None:
        super().__init__(served)
        self.is_up = True
        self.handlers: dict[int, Handler] = {}
        self.transports: list[FakeTransport] = []

    def _take(self, transport: FakeTransport, frame: bytes) -> None:
        before = len(self.asked)
        super()._take(transport, frame)
        if len(self.asked) > before:
            asked = self.asked[-1]
            handler = self.handlers.get(asked.api_key)
            if handler is not None:
                asyncio.get_running_loop().call_soon(self._answer, asked, handler)

    def _answer(self, asked: Asked, handler: Handler) -> None:
        response = handler(asked.message)
        if response is not None and self.is_up:
            asked.answer(response)

    def count(self, api_key: int) -> int:
        return sum(asked.api_key == api_key for asked in self.asked)

    def kill(self) -> None:
        self.is_up = False
        for transport in self.transports:
            transport.lose(ConnectionResetError("gone"))
        self.transports.clear()


class Cluster:
    """Brokers 1, 2, ... at `broker-<id>:9092`; the first is the only bootstrap server."""

    def __init__(self, count: int = 1) -> None:
        self.time = FakeTime()
        self.brokers = {number: AnsweringBroker() for number in range(1, count + 1)}
        self.cluster_id = "test"
        self.controller_id = 1
        self.topics: dict[str, MetadataResponseTopic] = {}
        self.attempts: list[str] = []
        self.ports = NetworkPorts(network=self, clock=self.time, tasks=self.time, rng=random.Random(1))
        for broker in self.brokers.values():
            broker.handlers[ApiKey.METADATA] = self.metadata

    def core(self, kind: ClientKind = ClientKind.CONSUMER, **options: object) -> ClientCore:
        options = {"bootstrap_servers": "broker-1", **options}
        return ClientCore(ClientConfig(kind, None, options), ports=self.ports)

    def add_topic(self, name: str, leaders: list[int], *, epoch: int = 0, topic_id: Any = ZERO_UUID) -> None:
        partitions = [
            MetadataResponsePartition(
                partition_index=index, leader_id=leader, leader_epoch=epoch, replica_nodes=[leader], isr_nodes=[leader]
            )
            for index, leader in enumerate(leaders)
        ]
        self.topics[name] = MetadataResponseTopic(name=name, topic_id=topic_id, partitions=partitions)

    def metadata(self, request: Any) -> MetadataResponse:
        names = list(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=number, host=f"broker-{number}", port=9092)
                for number, broker in self.brokers.items()
                if broker.is_up
            ],
            cluster_id=self.cluster_id,
            controller_id=self.controller_id,
            topics=[self.topics.get(name, MetadataResponseTopic(name=name, error_code=3)) for name in names],
        )

    def asked(self, api_key: int) -> list[Any]:
        return [each.message for broker in self.brokers.values() for each in broker.asked if each.api_key == api_key]

    # The network port.

    async def connect(
        self, host: str, port: int, protocol_factory: Callable[[], asyncio.BaseProtocol], **_: Any
    ) -> tuple[Any, Any]:
        self.attempts.append(str(Address(host, port)))
        broker = self.brokers.get(int(host.removeprefix("broker-")))
        if broker is None or not broker.is_up:
            raise ConnectionRefusedError("refused")
        protocol: Any = protocol_factory()
        transport = FakeTransport(protocol, broker)
        broker.transports.append(transport)
        protocol.connection_made(transport)
        return transport, protocol

    async def listen(self, *_: Any, **__: Any) -> Any:
        raise AssertionError("nobody listens here")

    async def run(self, work: Any, *, seconds: float = 100.0) -> Any:
        """The result of `work`, time moving as far as it needs."""
        task = asyncio.ensure_future(work)
        end = self.time.now + seconds
        while not task.done() and self.time.now < end:
            await self.time.advance(0.05)
        await settle()
        assert task.done(), "still not done"
        return task.result()
