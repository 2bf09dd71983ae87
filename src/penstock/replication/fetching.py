"""What a fetch asks of a partition, and what it gets."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.storage.segments.slices import FileSlice

if TYPE_CHECKING:
    from penstock.replication.partition import Partition

CONSUMER = -1
"""The replica id of everybody who is not a follower."""


class FetchIsolation(IntEnum):
    """How far a reader sees."""

    LOG_END = 0
    """Followers: everything, since they are what makes it committed."""
    HIGH_WATERMARK = 1
    """Consumers that read uncommitted: what every in-sync replica has."""
    COMMITTED = 2
    """Consumers that read committed: up to the first open transaction."""


class FetchPartition(NamedTuple):
    """One partition of a fetch, named by topic, by topic id or by both (then they must belong together).

    `current_leader_epoch` and `last_fetched_epoch` are -1 when the request has none; `log_start_offset` is a
    follower's own.
    """

    topic: str | None
    topic_id: UUID | None
    partition: int
    fetch_offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    log_start_offset: int = -1


class DivergingEpoch(NamedTuple):
    """The leader's log parted from the reader's: the largest common epoch, and where it ends here (KIP-595)."""

    epoch: int
    end_offset: int


class FetchResult:
    """The answer for one partition. Whoever holds it owns `records` and must send or release it."""

    __slots__ = (
        "aborted",
        "diverging_epoch",
        "error",
        "high_watermark",
        "last_stable_offset",
        "log_start_offset",
        "message",
        "partition",
        "records",
        "request",
    )

    def __init__(
        self,
        request: FetchPartition,
        error: ErrorCode = ErrorCode.NONE,
        high_watermark: int = -1,
        last_stable_offset: int = -1,
        log_start_offset: int = -1,
        records: FileSlice | None = None,
        aborted: list[Any] | None = None,
        diverging_epoch: DivergingEpoch | None = None,
        message: str = "",
        partition: Partition | None = None,
    ) -> None:
        self.request = request
        self.error = error
        self.high_watermark = high_watermark
        self.last_stable_offset = last_stable_offset
        self.log_start_offset = log_start_offset
        self.records = records
        self.aborted = aborted
        """Aborted transactions in the range, for readers of committed records; None for others."""
        self.diverging_epoch = diverging_epoch
        self.message = message
        self.partition = partition
        """The partition that was read; None when it was not found."""

    @property
    def size(self) -> int:
        records = self.records
        return 0 if records is None else records.length


def release_results(results: Iterable[FetchResult]) -> None:
    """Let go of the records of an answer that will not be sent."""
    for result in results:
        if result.records is not None:
            result.records.release()
            result.records = None
