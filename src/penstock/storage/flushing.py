"""Making a log durable: what to sync is decided on the loop, the syncing happens in a worker.

A plan is a list of paths, so it shares nothing with the loop: a sync of any descriptor of a file covers all that was
written to it, through a map too. A file that is gone by then was deleted, and needs no sync.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from penstock.base.ports import Files


@dataclass(frozen=True, slots=True, kw_only=True)
class FlushPlan:
    """Call it in a worker; it returns the offset up to which the log is durable then. OSError: the disk failed."""

    files: Files
    directory: str
    paths: Sequence[str]
    write_epochs: Callable[[], None] | None
    up_to_offset: int

    def write_only(self) -> int:
        """For a caller that syncs the whole file system at once: only what is not in a file yet is written."""
        if self.write_epochs is not None:
            self.write_epochs()
        return self.up_to_offset

    def __call__(self) -> int:
        # First: recovery finds epochs again only in batches after the recovery point, which is about to move.
        self.write_only()
        for path in self.paths:
            self._sync(path)
        try:
            self.files.sync_directory(self.directory)
        except FileNotFoundError:
            pass
        return self.up_to_offset

    def _sync(self, path: str) -> None:
        try:
            file = self.files.open(path, create=False)
        except FileNotFoundError:
            return
        try:
            file.sync()
        finally:
            file.close()
