"""What an offset store is, and how a consumer calls one."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

from penstock.base.types import TopicPartition
from penstock.client.core.client import ClientCore
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import InvalidState
from penstock.records.record import ConsumerRecord

Offsets = Mapping[TopicPartition, OffsetAndMetadata]


@runtime_checkable
class OffsetStore(Protocol):
    """Both may be coroutine functions. What they raise goes to whoever polls or commits."""

    def load(self, group: str, partitions: Iterable[TopicPartition]) -> Any:
        """A mapping of partition to `OffsetAndMetadata`; partitions without an offset are left out."""

    def save(self, group: str, offsets: Offsets) -> Any:
        """Keep these for good before returning."""


class StoreCaller:
    """Calls a store from the consumer's loop: where the user's functions run, or in a worker thread if it says so."""

    def __init__(self, core: ClientCore, store: OffsetStore) -> None:
        self._core = core
        self._store = store
        self._in_worker = getattr(store, "may_use_threads", False)

    async def load(self, group: str, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        wanted = list(partitions)
        found = await self._call(self._store.load, group, wanted)
        if not isinstance(found, Mapping):
            raise InvalidState(
                f"load() of the offset store {self._store!r} gave {found!r}: it is to give a dict of partition to "
                "OffsetAndMetadata, an empty one when it has no offsets"
            )
        return {tp: _as_offset(found[tp]) for tp in wanted if found.get(tp) is not None}

    async def save(self, group: str, offsets: Offsets) -> None:
        if offsets:
            await self._call(self._store.save, group, dict(offsets))

    async def _call(self, function: Any, *args: Any) -> Any:
        if self._in_worker and not inspect.iscoroutinefunction(function):
            return await self._core.ports.tasks.run_blocking(lambda: function(*args))
        return await self._core.call_user(function, *args)


def offsets_after(records: Iterable[ConsumerRecord]) -> dict[TopicPartition, OffsetAndMetadata]:
    """The offsets to save when all of these records are dealt with."""
    after: dict[TopicPartition, OffsetAndMetadata] = {}
    for record in records:
        after[TopicPartition(record.topic, record.partition)] = OffsetAndMetadata(
            record.offset + 1, leader_epoch=record.leader_epoch
        )
    return after


def copy_offsets(
    source: Any, target: Any, group: str, partitions: Iterable[TopicPartition]
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Move a group from one (blocking) store to another; gives what was copied. Nobody may consume meanwhile."""
    offsets: dict[TopicPartition, OffsetAndMetadata] = dict(source.load(group, list(partitions)))
    if offsets:
        target.save(group, offsets)
    return offsets


def _as_offset(value: OffsetAndMetadata | int) -> OffsetAndMetadata:
    if isinstance(value, int):
        return OffsetAndMetadata(value)
    if isinstance(value, tuple | list) and value and isinstance(value[0], int):
        return OffsetAndMetadata(*value)
    raise InvalidState(f"an offset store gave {value!r} as an offset: give OffsetAndMetadata, or a number")
