"""A disk that runs full, or fails, when a test says so."""

from __future__ import annotations

import errno
from typing import Any, cast

from penstock.base.ports import Buffer, File, MappedFile
from penstock.base.system import SystemFiles


class FaultyFile:
    """A real file whose appends stop in the middle once the disk is full."""

    def __init__(self, file: File, disk: FaultyFiles) -> None:
        self._file = file
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def append(self, data: Buffer) -> None:
        if self._disk.room is None:
            self._file.append(data)
            return
        fitting = memoryview(data)[: self._disk.room]
        self._file.append(fitting)
        self._disk.room -= len(fitting)
        if len(fitting) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def truncate(self, size: int) -> None:
        if self._disk.truncation_fails:
            raise OSError(errno.EIO, "Input/output error")
        self._file.truncate(size)


class FaultyMappedFile:
    """A real map that gets no blocks once the disk is full."""

    def __init__(self, mapped: MappedFile, disk: FaultyFiles) -> None:
        self._mapped = mapped
        self._disk = disk

    def __getattr__(self, name: str) -> Any:
        return getattr(self._mapped, name)

    def reserve(self, position: int, length: int) -> None:
        if self._disk.maps_are_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        self._mapped.reserve(position, length)


class FaultyFiles(SystemFiles):
    def __init__(self) -> None:
        self.room: int | None = None
        """Bytes that still fit; None for no limit."""
        self.truncation_fails = False
        self.maps_are_full = False

    def open(self, path: str, *, create: bool = True) -> File:
        return cast("File", FaultyFile(super().open(path, create=create), self))

    def map(self, path: str, *, size: int | None = None) -> MappedFile:
        return cast("MappedFile", FaultyMappedFile(super().map(path, size=size), self))
