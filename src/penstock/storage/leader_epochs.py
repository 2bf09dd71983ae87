"""Which leader epoch wrote which part of a log: (epoch, start offset) pairs, both strictly growing.

After a failover a follower asks the new leader where its own last epoch ended there, and truncates to that; a
consumer finds out in the same way that what it read was lost. The pairs live in `leader-epoch-checkpoint`.

`assign` is called for every append and is one comparison when nothing is new. A change is not written at once, since
that would sync on the loop: the entries since the last flush are found again by recovery, which reads every batch
after the recovery point. So the file must be durable before the recovery point moves: whoever flushes the log runs
`pending_write()` in the same worker first. `flush()` does both at once where blocking is allowed.
"""

from __future__ import annotations

import logging
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from typing import NamedTuple

from penstock.base.ports import Files
from penstock.base.types import TopicPartition
from penstock.storage.checkpoints import MalformedCheckpointError, decode_epochs, encode_epochs

log = logging.getLogger(__name__)

FILE_NAME = "leader-epoch-checkpoint"
UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEntry(NamedTuple):
    epoch: int
    start_offset: int


class LeaderEpochCache:
    __slots__ = (
        "_epochs",
        "_files",
        "_latest_start",
        "_starts",
        "_topic_partition",
        "_version",
        "_written_version",
        "directory",
        "latest_epoch",
    )

    def __init__(self, topic_partition: TopicPartition, directory: str, files: Files) -> None:
        self._topic_partition = topic_partition
        self._files = files
        self.directory = directory
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest_epoch: int | None = None
        self._latest_start = 0
        # Every change counts up; a write remembers which count it holds.
        self._version = 0
        self._written_version = 0
        self._read()

    def _read(self) -> None:
        try:
            entries = decode_epochs(self._files.read(self.path))
        except FileNotFoundError:
            return
        except MalformedCheckpointError as error:
            log.warning("leader epochs of %s are unusable and start empty: %s", self._topic_partition, error)
            self._version += 1
            return
        for epoch, start_offset in entries:
            if epoch >= 0 and start_offset >= 0:
                self.assign(epoch, start_offset)
        # Repaired by the monotonic rule? Then the file differs and stays pending.
        self._written_version = self._version if entries == self._pairs() else -1

    @property
    def path(self) -> str:
        return f"{self.directory}/{FILE_NAME}"

    @property
    def entries(self) -> list[EpochEntry]:
        return [EpochEntry(epoch, start) for epoch, start in zip(self._epochs, self._starts, strict=True)]

    def _pairs(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def earliest_entry(self) -> EpochEntry | None:
        return EpochEntry(self._epochs[0], self._starts[0]) if self._epochs else None

    # -- Changes ---------------------------------------------------------------------------------------------------

    def assign(self, epoch: int, start_offset: int) -> None:
        """The log's records from `start_offset` on are of `epoch`. Entries that contradict this are dropped."""
        if epoch == self.latest_epoch and start_offset >= self._latest_start:
            return
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"invalid leader epoch {epoch} at offset {start_offset} for {self._topic_partition}")
        keep = len(self._epochs)
        while keep and (self._epochs[keep - 1] >= epoch or self._starts[keep - 1] >= start_offset):
            keep -= 1
        removed = self.entries[keep:]
        if len(removed) > 1 or (removed and removed[0].start_offset != start_offset):
            log.warning("%s: epoch %d at offset %d replaces %s", self._topic_partition, epoch, start_offset, removed)
        self._epochs[keep:] = [epoch]
        self._starts[keep:] = [start_offset]
        self._changed()

    def truncate_from_end(self, end_offset: int) -> None:
        """Drop the entries that start at or after `end_offset`."""
        keep = bisect_left(self._starts, end_offset)
        if end_offset >= 0 and keep < len(self._starts):
            del self._epochs[keep:], self._starts[keep:]
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Drop the entries before `start_offset`; the one that covers it starts there now."""
        covering = bisect_right(self._starts, start_offset) - 1
        if covering < 0 or (covering == 0 and self._starts[0] == start_offset):
            return
        del self._epochs[:covering], self._starts[:covering]
        self._starts[0] = start_offset
        self._changed()

    def clear(self) -> None:
        if self._epochs:
            self._epochs.clear()
            self._starts.clear()
            self._changed()

    def _changed(self) -> None:
        self.latest_epoch = self._epochs[-1] if self._epochs else None
        self._latest_start = self._starts[-1] if self._starts else 0
        self._version += 1

    # -- Questions -------------------------------------------------------------------------------------------------

    def end_offset_for(self, requested_epoch: int, log_end_offset: int) -> tuple[int, int]:
        """The largest epoch at or below the requested one, and the offset where it ends; (-1, -1) when unknown."""
        if requested_epoch == UNDEFINED_EPOCH:
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        if requested_epoch == self.latest_epoch:
            return requested_epoch, log_end_offset
        higher = bisect_right(self._epochs, requested_epoch)
        if higher == len(self._epochs):
            return UNDEFINED_EPOCH, UNDEFINED_OFFSET
        # Below every known epoch its data is gone from the log: the first known start is where to go on from.
        epoch = self._epochs[higher - 1] if higher else requested_epoch
        return epoch, self._starts[higher]

    def next_epoch(self, epoch: int) -> int | None:
        position = bisect_right(self._epochs, epoch)
        return self._epochs[position] if position < len(self._epochs) else None

    # -- The file --------------------------------------------------------------------------------------------------

    @property
    def is_dirty(self) -> bool:
        return self._written_version != self._version

    def pending_write(self) -> Callable[[], None] | None:
        """The blocking write of the present entries, to run in a worker; None when the file has them already."""
        if not self.is_dirty:
            return None
        version, path, data = self._version, self.path, encode_epochs(self._pairs())

        def write() -> None:
            try:
                self._files.write_atomically(path, data)
            except FileNotFoundError:
                # The directory was renamed for deletion meanwhile.
                return
            self._written_version = max(self._written_version, version)

        return write

    def flush(self) -> None:
        """Write now, blocking."""
        if (write := self.pending_write()) is not None:
            write()

    def replace(self, entries: Iterable[tuple[int, int]]) -> None:
        """Take over the entries of another replica's cache."""
        self.clear()
        for epoch, start_offset in entries:
            self.assign(epoch, start_offset)
