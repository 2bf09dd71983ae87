"""The metadata store of a single broker: the image in memory, its history in one file (see `file`).

Commits are serial. Each is appended and synced in a worker, then applied, then told to the listeners; the next one
starts when they are done. A listener's own failure to follow (a log that cannot be created) does not undo a change
that is durable already: it is logged, and what could not follow answers for itself.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Files, Tasks
from penstock.metadata.deltas import Delta
from penstock.metadata.image import ClusterImage
from penstock.metadata.local.file import REWRITE_BYTES_MIN, MetadataFile, encode_line
from penstock.metadata.serial import SerialQueue
from penstock.metadata.store import Listener, VersionConflictError

FILE_NAME = "metadata.penstock"
_PENDING_MAX = 10_000

log = logging.getLogger(__name__)


class LocalMetadataStore:
    def __init__(self, path: str, *, files: Files, tasks: Tasks, rewrite_bytes_min: int = REWRITE_BYTES_MIN) -> None:
        self._path = path
        self._file = MetadataFile(files, path, rewrite_bytes_min=rewrite_bytes_min)
        self._tasks = tasks
        self._queue = SerialQueue(tasks, name="metadata store", pending_max=_PENDING_MAX)
        self._image = ClusterImage()
        self._listeners: list[Listener] = []

    @property
    def image(self) -> ClusterImage:
        return self._image

    async def load(self) -> ClusterImage:
        self._image = await self._tasks.run_blocking(self._file.open)
        return self._image

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)

    async def commit(self, deltas: Sequence[Delta], *, expected_version: int | None = None) -> ClusterImage:
        return await self._queue.run(lambda: self._commit(deltas, expected_version))

    async def close(self) -> None:
        await self._queue.close()
        await self._tasks.run_blocking(self._file.close)

    async def _commit(self, deltas: Sequence[Delta], expected_version: int | None) -> ClusterImage:
        old = self._image
        if expected_version is not None and expected_version != old.version:
            raise VersionConflictError(expected_version, old.version)
        # Applied before it is written: deltas that do not fit the image must not reach the file.
        new = old.apply(old.version + 1, deltas)
        await self._write(new, deltas)
        self._image = new
        for listener in self._listeners:
            try:
                await listener(old, new, deltas)
            except (KafkaError, OSError):
                log.exception("a part of the broker could not follow metadata version %d", new.version)
        return new

    async def _write(self, image: ClusterImage, deltas: Sequence[Delta]) -> None:
        try:
            await self._tasks.run_blocking(lambda: self._file.append(encode_line(image.version, deltas)))
        except OSError as error:
            log.error("cannot write %s: %s", self._path, error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"Cannot write {self._path}: {error}") from error
        if self._file.needs_rewrite():
            try:
                await self._tasks.run_blocking(lambda: self._file.rewrite(image))
            except OSError as error:
                log.warning("cannot replace %s by a snapshot, it goes on growing: %s", self._path, error)
