"""Helpers of the clients' live tests: topics made over a plain core, records counted by hand."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.client.config import ClientConfig, ClientKind
from penstock.client.core.client import ClientCore
from penstock.client.core.loop_thread import LoopThread
from penstock.client.errors import error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from penstock.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState

CALL_TIMEOUT_MS = 60_000
_numbers = itertools.count()


def core_config(bootstrap: str, kind: ClientKind = ClientKind.ADMIN, **options: object) -> ClientConfig:
    return ClientConfig(kind, {"bootstrap.servers": bootstrap}, options)


class TopicMaker:
    """Makes topics over the raw protocol, so that no client's own administration is needed for its tests."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._bootstrap = bootstrap
        self._prefix = "".join(letter if letter.isalnum() else "-" for letter in prefix)[:80].strip("-")

    def name(self) -> str:
        """A name that no topic has."""
        return f"{self._prefix}-{next(_numbers)}"

    def __call__(self, partitions: int = 1, config: Mapping[str, str] | None = None, name: str | None = None) -> str:
        """Records stay whatever their time is: many tests write with the times of 1970."""
        chosen = name or self.name()
        _in_own_loop(self._create(chosen, partitions, {"retention.ms": "-1", **(config or {})}))
        return chosen

    def grow(self, name: str, partitions: int) -> None:
        """More partitions for a topic."""
        _in_own_loop(self._grow(name, partitions))

    def delete(self, name: str) -> None:
        _in_own_loop(self._delete(name))

    async def _create(self, name: str, partitions: int, config: Mapping[str, str]) -> None:
        configs = [CreatableTopicConfig(name=key, value=value) for key, value in config.items()]
        creatable = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=configs)
        request = CreateTopicsRequest(topics=[creatable], timeout_ms=CALL_TIMEOUT_MS)
        async with _Core(self._bootstrap) as core:
            answer = await core.ask_controller(ApiKey.CREATE_TOPICS, request, timeout_ms=CALL_TIMEOUT_MS)
            _check(answer.topics[0])
            await _ready(core, name, partitions)

    async def _grow(self, name: str, partitions: int) -> None:
        grown = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        request = CreatePartitionsRequest(topics=[grown], timeout_ms=CALL_TIMEOUT_MS)
        async with _Core(self._bootstrap) as core:
            answer = await core.ask_controller(ApiKey.CREATE_PARTITIONS, request, timeout_ms=CALL_TIMEOUT_MS)
            _check(answer.results[0])
            await _ready(core, name, partitions)

    async def _delete(self, name: str) -> None:
        def request(version: int) -> DeleteTopicsRequest:
            if version >= 6:
                return DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=CALL_TIMEOUT_MS)
            return DeleteTopicsRequest(topic_names=[name], timeout_ms=CALL_TIMEOUT_MS)

        async with _Core(self._bootstrap) as core:
            answer = await core.ask_controller(ApiKey.DELETE_TOPICS, request, timeout_ms=CALL_TIMEOUT_MS)
            _check(answer.responses[0])


class _Core:
    def __init__(self, bootstrap: str) -> None:
        self._core = ClientCore(core_config(bootstrap))

    async def __aenter__(self) -> ClientCore:
        await self._core.start()
        return self._core

    async def __aexit__(self, *_: object) -> None:
        await self._core.close()


async def _ready(core: ClientCore, name: str, partitions: int) -> None:
    """Until every partition has a leader that metadata names."""
    core.metadata.want([name])
    async for attempt in core.retry(timeout_ms=CALL_TIMEOUT_MS, what=f"creating {name}"):
        snapshot = await core.metadata.update(attempt.remaining_ms)
        if len(snapshot.available_partitions(name)) >= partitions:
            return


def _check(answer: Any) -> None:
    if answer.error_code != ErrorCode.NONE:
        raise error_for(answer.error_code, answer.error_message)


def _in_own_loop(work: Any) -> None:
    """Works in a test with a running loop too, and leaves that loop alone."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
        return
    thread = LoopThread("test-topics")
    try:
        thread.run(work, CALL_TIMEOUT_MS / 1000)
    finally:
        thread.close()
