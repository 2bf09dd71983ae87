"""All log directories of a broker together: taking them, checking that they belong to it, choosing among them.

A directory whose disk fails goes offline by itself. One that another broker holds, or that belongs to another node or
cluster, is no failure of a disk but a mistake in the set-up, and stops the start.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator

from penstock.base.ports import Files
from penstock.base.types import new_uuid, uuid_to_text
from penstock.storage.directories.log_directory import LogDirectory, LogDirectoryError, MetaProperties

log = logging.getLogger(__name__)


class DirectorySet:
    def __init__(self, paths: Iterable[str], files: Files) -> None:
        self.all = [LogDirectory(path, files) for path in paths]
        self.cluster_id = ""
        if not self.all:
            raise LogDirectoryError("log.dirs names no directory")
        if len({directory.path for directory in self.all}) < len(self.all):
            names = ", ".join(str(directory) for directory in self.all)
            raise LogDirectoryError(f"log.dirs names a directory twice: {names}")

    def __iter__(self) -> Iterator[LogDirectory]:
        """The live ones."""
        return iter([directory for directory in self.all if not directory.is_offline])

    @property
    def offline(self) -> list[LogDirectory]:
        return [directory for directory in self.all if directory.is_offline]

    def take(self, *, node_id: int, cluster_id: str | None, rng: random.Random) -> None:
        """Create, lock and identify every directory. Blocks. LogDirectoryError: none is held any more."""
        try:
            self._each(LogDirectory.create_and_lock)
            found: dict[LogDirectory, MetaProperties | None] = {}
            self._each(lambda directory: found.__setitem__(directory, directory.read_meta()))
            self.cluster_id = cluster_id or _common_cluster_id(found.values()) or uuid_to_text(new_uuid(rng))
            for directory, meta in found.items():
                if meta is not None:
                    directory.check_meta(meta, cluster_id=self.cluster_id, node_id=node_id)
            self._each(
                lambda directory: directory.complete_meta(
                    found[directory], cluster_id=self.cluster_id, node_id=node_id, rng=rng
                )
            )
        except LogDirectoryError:
            self.release()
            raise

    def _each(self, step: Callable[[LogDirectory], None]) -> None:
        for directory in self:
            try:
                step(directory)
            except OSError as error:
                log.error("log directory %s cannot be used: %s", directory, error)
                directory.is_offline = True
                directory.unlock()
        if not list(self):
            raise LogDirectoryError(f"no log directory can be used of {', '.join(map(str, self.all))}")

    def release(self) -> None:
        for directory in self.all:
            directory.unlock()


def _common_cluster_id(metas: Iterable[MetaProperties | None]) -> str | None:
    """The cluster that the directories name; a disagreement among them is found when each is checked against it."""
    return next((meta.cluster_id for meta in metas if meta is not None and meta.cluster_id is not None), None)
