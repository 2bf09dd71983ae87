"""The port to wherever the cluster's metadata lives.

A change is a list of deltas that becomes the next version. `commit` is serial and durable: it checks the expected
version, makes the change durable, applies it to `image`, calls every listener in the order of subscription and
returns when the last one has applied it. So whoever awaited a commit may rely on its effects (a created topic has its
logs), and listeners see every version once and in order.

A listener must not await a commit itself: it would wait for its own end.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from penstock.metadata.deltas import Delta
from penstock.metadata.image import ClusterImage

Listener = Callable[[ClusterImage, ClusterImage, Sequence[Delta]], Awaitable[None]]
"""Called with the old image, the new image and the deltas between them."""


class VersionConflictError(Exception):
    """The image has moved on since the change was planned: plan it again."""

    def __init__(self, expected: int, actual: int) -> None:
        super().__init__(f"metadata is at version {actual}, not {expected}")
        self.expected = expected
        self.actual = actual


class MetadataCorruptError(Exception):
    """The stored metadata cannot be read, and not because its last change was cut off."""


class MetadataStore(Protocol):
    @property
    def image(self) -> ClusterImage:
        """The newest image applied here; empty before `load`."""

    async def load(self) -> ClusterImage: ...

    async def commit(self, deltas: Sequence[Delta], *, expected_version: int | None = None) -> ClusterImage:
        """VersionConflictError, or KafkaError(KAFKA_STORAGE_ERROR) with the image unchanged."""

    def subscribe(self, listener: Listener) -> None: ...

    async def close(self) -> None: ...
