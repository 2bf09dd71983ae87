"""The real world with a disk that can be full.

A full disk refuses appends and the reservation of index pages with ENOSPC; what is there can be read, cut and removed.
Checkpoints, which replace a small file by another, still find room: without them a broker gives its log directory up
for good, as Kafka does, and there would be nothing to heal.
"""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from penstock.base.ports import Buffer, File, MappedFile
from penstock.base.system import SystemClock, SystemFile, SystemFiles, SystemMappedFile, SystemNetwork, SystemTasks
from penstock.testing.logs import BrokerLog

T = TypeVar("T")


class Disk:
    """Set from the test's thread, read by every thread of the broker."""

    def __init__(self) -> None:
        self.is_full = False

    def check_room(self, path: str) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)


class _File(SystemFile):
    __slots__ = ("_disk",)

    def __init__(self, path: str, flags: int, disk: Disk) -> None:
        super().__init__(path, flags)
        self._disk = disk

    def append(self, data: Buffer) -> None:
        self._disk.check_room(self.path)
        super().append(data)


class _MappedFile(SystemMappedFile):
    __slots__ = ("_disk",)

    def __init__(self, path: str, size: int | None, disk: Disk) -> None:
        super().__init__(path, size)
        self._disk = disk

    def reserve(self, position: int, length: int) -> None:
        self._disk.check_room(self.path)
        super().reserve(position, length)


class _Files(SystemFiles):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk

    def open(self, path: str, *, create: bool = True) -> File:
        return _File(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0), self._disk)

    def map(self, path: str, *, size: int | None = None) -> MappedFile:
        return _MappedFile(path, size, self._disk)


class _Tasks(SystemTasks):
    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int, log: BrokerLog) -> None:
        super().__init__(loop, threads=threads)
        self._log = log

    def run_blocking(self, work: Callable[[], T]) -> Awaitable[T]:
        return super().run_blocking(self._log.claiming(work))


class EphemeralWorld:
    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int, disk: Disk, log: BrokerLog) -> None:
        self.clock = SystemClock()
        self.files = _Files(disk)
        self.tasks = _Tasks(loop, threads=threads, log=log)
        self.network = SystemNetwork(loop)

    async def close(self) -> None:
        await self.tasks.close()
