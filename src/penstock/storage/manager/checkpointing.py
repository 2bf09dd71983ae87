"""Writing the offset checkpoints of the log directories.

What to write is gathered on the loop, the file is written in a worker, and only when its content has changed: an idle
broker leaves the disk alone. A log that could not be opened keeps the entries it had, since they still hold.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from penstock.base.ports import Tasks
from penstock.base.types import TopicPartition
from penstock.storage.checkpoints import OffsetCheckpoint
from penstock.storage.directories.directory_set import DirectorySet
from penstock.storage.directories.log_directory import LogDirectory
from penstock.storage.log import Log
from penstock.storage.manager.loading import DirectoryContents
from penstock.storage.manager.registry import LogRegistry
from penstock.storage.manager.shared_runs import SharedRuns

Offsets = dict[TopicPartition, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointKind:
    name: str
    file: Callable[[LogDirectory], OffsetCheckpoint]
    offset: Callable[[Log], int | None]
    """None leaves the log out."""
    found: Callable[[DirectoryContents], Offsets]


def _log_start_offset(of: Log) -> int | None:
    # Where the log starts with its first segment there is nothing to remember.
    return of.log_start_offset if of.log_start_offset > of.segments[0].base_offset else None


RECOVERY_POINTS = CheckpointKind(
    name="recovery points",
    file=lambda directory: directory.recovery_points,
    offset=lambda of: of.recovery_point,
    found=lambda contents: contents.recovery_points,
)
START_OFFSETS = CheckpointKind(
    name="start offsets",
    file=lambda directory: directory.log_start_offsets,
    offset=_log_start_offset,
    found=lambda contents: contents.log_start_offsets,
)
HIGH_WATERMARKS = CheckpointKind(
    name="high watermarks",
    file=lambda directory: directory.high_watermarks,
    offset=lambda of: of.high_watermark,
    found=lambda contents: contents.high_watermarks,
)
ALL_KINDS = (RECOVERY_POINTS, START_OFFSETS, HIGH_WATERMARKS)


class Checkpointer:
    def __init__(self, directories: DirectorySet, registry: LogRegistry, runs: SharedRuns, tasks: Tasks) -> None:
        self._directories = directories
        self._registry = registry
        self._runs = runs
        self._tasks = tasks
        self._unopened: dict[LogDirectory, DirectoryContents] = {}

    def keep_entries(self, directory: LogDirectory, unopened: DirectoryContents) -> None:
        """`unopened.partitions` are in the directory but could not be opened."""
        self._unopened[directory] = unopened

    async def write(self, *kinds: CheckpointKind) -> None:
        """Write these checkpoints of every live directory; one that cannot be written takes its directory offline."""
        await asyncio.gather(*(self.write_directory(directory, *kinds) for directory in self._directories))

    async def write_directory(self, directory: LogDirectory, *kinds: CheckpointKind) -> None:
        for kind in kinds:
            await self._runs.run((directory, kind.name), lambda kind=kind: self._write_once(directory, kind))  # type: ignore[misc]

    async def _write_once(self, directory: LogDirectory, kind: CheckpointKind) -> None:
        if directory.is_offline:
            return
        offsets = self._gather(directory, kind)
        try:
            await self._tasks.run_blocking(lambda: kind.file(directory).write(offsets))
        except OSError as error:
            self._registry.fail_directory(directory, f"its {kind.name} cannot be written: {error}")

    def _gather(self, directory: LogDirectory, kind: CheckpointKind) -> Offsets:
        offsets: Offsets = {}
        unopened = self._unopened.get(directory)
        if unopened is not None:
            found = kind.found(unopened)
            offsets.update((tp, found[tp]) for tp in unopened.partitions if tp in found)
        for opened in self._registry.in_directory(directory):
            offset = kind.offset(opened)
            if offset is not None:
                offsets[opened.topic_partition] = offset
        return offsets
