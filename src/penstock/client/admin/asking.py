"""Whom to ask: any broker, the controller, one broker, all of them, coordinators, or the leaders of partitions.

Any broker, the controller and one coordinator are the core's own calls. The others are here: `broker` repeats what
failed on the way, `every_broker` asks all and waits for all. Leaders have a module of their own.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.admin.errors import Outcome, failure
from penstock.client.core.client import ClientCore, Codes
from penstock.client.core.rounds import METADATA_VERSION_MIN
from penstock.client.core.types import CoordinatorKind, Node
from penstock.client.core.waiting import Retry, pause
from penstock.client.errors import UnsupportedByBroker, error_for, is_retriable
from penstock.network.errors import UnsupportedVersion
from penstock.network.versions import VERSION_MAX
from penstock.protocol.apis import APIS, ApiKey
from penstock.protocol.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

CONCURRENT_MAX: Final = 32
"""Requests of one call that are under way at the same time."""


class Asker:
    """The core as the administration client uses it. One per client."""

    def __init__(self, core: ClientCore) -> None:
        self.core = core

    # Time.

    def limit_ms(self, timeout_ms: float | None) -> float:
        return float(self.core.default_timeout_ms if timeout_ms is None else timeout_ms)

    def server_ms(self, timeout_ms: float | None) -> int:
        """How long the broker may take, for requests that say so: no longer than the answer is waited for."""
        return max(1, int(min(self.core.request_timeout_ms, self.limit_ms(timeout_ms))))

    def now_ms(self) -> int:
        return self.core.ports.clock.time_ms()

    # One answer.

    async def any(self, api_key: ApiKey, message: object, **options: Any) -> Any:
        """The least loaded broker. Options as of `ClientCore.ask_any`."""
        return await self.core.ask_any(api_key, message, **options)

    async def controller(self, api_key: ApiKey, message: object, **options: Any) -> Any:
        """The controller. Options as of `ClientCore.ask_controller`."""
        return await self.core.ask_controller(api_key, message, **options)

    async def coordinator(
        self, kind: CoordinatorKind, key: str, api_key: ApiKey, message: object, codes: Codes, **options: Any
    ) -> Any:
        return await self.core.ask_coordinator(kind, key, api_key, message, codes=codes, **options)

    async def broker(
        self,
        node_id: int,
        api_key: ApiKey,
        message: object,
        *,
        timeout_ms: float | None = None,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        check: Callable[[Any], int] | None = None,
    ) -> Any:
        """One broker and no other; what fails on the way, or by a retriable code of `check`, is asked again."""
        await self.node(node_id, timeout_ms=timeout_ms)
        async for attempt in self.core.retry(timeout_ms=timeout_ms, what=f"{APIS[api_key].name} of broker {node_id}"):
            try:
                answer = await self.send(node_id, api_key, message, attempt, at_least, at_most)
                code = check(answer) if check is not None else 0
            except KafkaError as error:
                if not is_retriable(error):
                    raise
                attempt.failed(error)
                continue
            if not code:
                return answer
            refused = failure(f"broker {node_id}", code)
            if not refused.retriable:
                raise refused
            attempt.failed(refused)
        raise AssertionError("a retry ends by returning or raising")

    async def send(
        self, node_id: int, api_key: ApiKey, message: object, attempt: Retry, at_least: int, at_most: int
    ) -> Any:
        """One try at one broker."""
        limit_ms = max(1.0, min(self.core.request_timeout_ms, attempt.remaining_ms))
        try:
            return await self.core.send(
                node_id, api_key, message, timeout_ms=limit_ms, at_least=at_least, at_most=at_most
            )
        except UnsupportedVersion as error:
            raise UnsupportedByBroker(str(error)) from error

    # Brokers.

    async def nodes(self, *, timeout_ms: float | None = None) -> Mapping[int, Node]:
        """The brokers that are alive now."""
        return (await self.core.metadata.update(self.limit_ms(timeout_ms))).nodes

    async def node(self, node_id: int, *, timeout_ms: float | None = None) -> Node:
        known = self.core.metadata.snapshot.nodes.get(node_id)
        if known is not None:
            return known
        nodes = await self.nodes(timeout_ms=timeout_ms)
        if node_id not in nodes:
            there = ", ".join(map(str, sorted(nodes)))
            raise error_for(
                ErrorCode.BROKER_NOT_AVAILABLE, f"broker {node_id} is not in the cluster: its brokers are {there}"
            )
        return nodes[node_id]

    async def every_broker(
        self, api_key: ApiKey, message: object, *, brokers: Collection[int] | None = None, **options: Any
    ) -> dict[int, Any]:
        """The answers of all brokers, or of those that are named; the first failure is raised."""
        chosen = brokers
        if chosen is None:
            chosen = sorted(await self.nodes(timeout_ms=options.get("timeout_ms")))

        async def ask(node_id: int) -> Any:
            return await self.broker(node_id, api_key, message, **options)

        answers = await map_bounded(ask, chosen)
        return dict(zip(chosen, answers, strict=True))

    # Coordinators of many.

    async def each_coordinator(
        self,
        kind: CoordinatorKind,
        keys: list[str],
        ask: Callable[[str], Awaitable[V]],
        *,
        timeout_ms: float | None = None,
    ) -> Outcome[str, V]:
        """`ask` for each key, several at a time; their coordinators are looked up together first."""
        outcome: Outcome[str, V] = Outcome()
        try:
            await self.core.coordinators(kind, keys, timeout_ms=timeout_ms)
        except KafkaError:
            pass  # Each key is asked for by itself, and has an error of its own.

        async def one(key: str) -> None:
            try:
                outcome.done[key] = await ask(key)
            except UnsupportedByBroker:
                raise
            except KafkaError as error:
                outcome.failed[key] = error

        await map_bounded(one, keys)
        return outcome

    # Topics.

    async def metadata(self, topics: Collection[str] | None, *, timeout_ms: float | None = None) -> MetadataResponse:
        """Metadata of some topics, or of all, as one broker has it now. No topic is created by asking."""
        named = None if topics is None else [MetadataRequestTopic(name=name) for name in topics]
        request = MetadataRequest(topics=named, allow_auto_topic_creation=False)
        answer: MetadataResponse = await self.any(
            ApiKey.METADATA, request, timeout_ms=timeout_ms, at_least=METADATA_VERSION_MIN
        )
        return answer


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Partition numbers by topic, as most requests want them."""
    found: dict[str, list[int]] = defaultdict(list)
    for tp in partitions:
        found[tp[0]].append(tp[1])
    return dict(found)


async def map_bounded(function: Callable[[K], Awaitable[T]], values: Iterable[K]) -> list[T]:
    """The results in order, with a bound on what is under way; the first failure cancels the rest."""
    gate = asyncio.Semaphore(CONCURRENT_MAX)

    async def one(value: K) -> T:
        async with gate:
            return await function(value)

    tasks = [asyncio.ensure_future(one(each)) for each in values]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


async def while_throttled(
    asker: Asker,
    names: list[str],
    ask: Callable[[list[str], float], Awaitable[tuple[Outcome[str, V], float]]],
    timeout_ms: float | None,
) -> Outcome[str, V]:
    """Ask again for what a quota on changes refused (KIP-599), after the pause that the broker names."""
    clock = asker.core.ports.clock
    deadline = clock.monotonic() + asker.limit_ms(timeout_ms) / 1000
    outcome: Outcome[str, V] = Outcome()
    while True:
        answered, throttle_ms = await ask(names, max(1.0, (deadline - clock.monotonic()) * 1000))
        outcome.failed = {}
        outcome.join(answered)
        names = [
            key for key, error in outcome.failed.items() if error.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        ]  # fmt: skip
        pause_s = max(throttle_ms, 100.0) / 1000
        if not names or clock.monotonic() + pause_s >= deadline:
            return outcome
        await pause(asker.core.ports, pause_s)
