"""Offsets in Kafka itself, the default. As an object of its own it reads and writes a group's offsets from outside.

`Consumer(offset_store=KafkaOffsetStore())` is the same as giving no store. With a configuration it connects by itself
and may be used without a consumer, to move a group from another store for instance; Kafka refuses to save while the
group has members.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.config import ClientConfig, ClientKind
from penstock.client.consumer.group.offsets_wire import (
    VERSION_BY_NAME,
    commit_codes,
    commit_request,
    fetch_code,
    fetch_request,
    fetched_offsets,
)
from penstock.client.core.client import ClientCore
from penstock.client.core.loop_thread import LoopThread
from penstock.client.core.types import ConsumerGroupMetadata, CoordinatorKind, OffsetAndMetadata
from penstock.client.errors import InvalidState, error_for
from penstock.protocol.apis import ApiKey

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


class KafkaOffsetStore:
    """Blocking. Connects at the first use; `close` it, or use it as a context manager."""

    def __init__(self, config: Mapping[str, object] | None = None, /, **options: Any) -> None:
        given = bool(config or options)
        self._config = ClientConfig(ClientKind.CONSUMER, config, options) if given else None
        self._thread: LoopThread | None = None
        self._core: ClientCore | None = None

    def load(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        """What the group committed."""
        wanted = [TopicPartition(*each) for each in partitions]
        return self._connected().run(self._load(group, wanted)) if wanted else {}

    def save(self, group: str, offsets: Offsets) -> None:
        """Commit for the group."""
        if offsets:
            self._connected().run(self._save(group, offsets))

    def close(self) -> None:
        """End its connections."""
        if self._thread is not None and self._core is not None:
            self._thread.run(self._core.close())
            self._thread.close()
            self._thread = self._core = None

    def __enter__(self) -> KafkaOffsetStore:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _connected(self) -> LoopThread:
        if self._config is None:
            raise InvalidState(
                "this KafkaOffsetStore only says that a consumer keeps its offsets in Kafka; "
                "give it bootstrap_servers to use it by itself"
            )
        if self._thread is None:
            thread, core = LoopThread("penstock offset store"), ClientCore(self._config)
            thread.run(core.start())
            self._thread, self._core = thread, core
        return self._thread

    async def _load(self, group: str, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        assert self._core is not None
        # Not by topic ids: a topic that is gone may have offsets.
        answer = await self._core.ask_coordinator(
            CoordinatorKind.GROUP,
            group,
            ApiKey.OFFSET_FETCH,
            fetch_request(group, partitions, {}),
            at_most=VERSION_BY_NAME,
            codes=lambda response: [fetch_code(response)],
        )
        _check(fetch_code(answer), group)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for partition, code, offset in fetched_offsets(answer, {}):
            _check(code, group, partition)
            if offset.offset >= 0:
                found[partition] = offset
        return found

    async def _save(self, group: str, offsets: Offsets) -> None:
        assert self._core is not None
        answer = await self._core.ask_coordinator(
            CoordinatorKind.GROUP,
            group,
            ApiKey.OFFSET_COMMIT,
            commit_request(ConsumerGroupMetadata(group), offsets, {}),
            at_most=VERSION_BY_NAME,
            codes=lambda response: commit_codes(response, {}).values(),
        )
        for partition, code in commit_codes(answer, {}).items():
            _check(code, group, partition)


def _check(code: int, group: str, partition: TopicPartition | None = None) -> None:
    if code == ErrorCode.UNKNOWN_MEMBER_ID:
        raise InvalidState(f"group {group!r} has members: stop them before its offsets are set from outside")
    if code:
        raise error_for(code, f"offsets of group {group!r}{f', {partition}' if partition else ''}: code {code}")
