"""Is a range of a file in the page cache, and bring it there: so that a cold read never stops the loop.

`resident_length` asks on the loop and never blocks: reads of one byte that the kernel refuses (`RWF_NOWAIT`) instead of
waiting for the disk, one at each `SAMPLE_BYTES` of the range. Pages come and go in larger runs than single pages, so
samples are nearly always right; a wrong one costs one short disk read on the loop. Where the file system cannot
answer (tmpfs, macOS), the range counts as cold and takes the way through a worker.

`load` blocks until the range has been read; it runs in a worker.
"""

from __future__ import annotations

import os
from typing import Final, Protocol

SAMPLE_BYTES: Final = 128 * 1024
_LOAD_BYTES: Final = 256 * 1024
_RWF_NOWAIT: Final[int] = getattr(os, "RWF_NOWAIT", 0)


class ReadableFile(Protocol):
    """What a slice needs of `penstock.base.ports.File`."""

    def fileno(self) -> int: ...

    def read_at(self, position: int, length: int, /) -> bytes: ...


class Residency(Protocol):
    def resident_length(self, file: ReadableFile, position: int, length: int) -> int:
        """How many bytes from `position` on can be read without waiting for a disk; does not block."""

    def load(self, file: ReadableFile, position: int, length: int) -> None:
        """Read the range into memory; blocks. Where the file ends earlier, that is all."""


class PageCache:
    """The machine's page cache."""

    __slots__ = ("_byte",)

    def __init__(self) -> None:
        self._byte = bytearray(1)

    def resident_length(self, file: ReadableFile, position: int, length: int) -> int:
        fd = file.fileno()
        if fd < 0:
            return length
        last = position + length - 1
        sample = position
        while sample < last:
            if not self._is_resident(fd, sample):
                return max(0, sample - position)
            sample += SAMPLE_BYTES
        return length if self._is_resident(fd, last) else max(0, sample - SAMPLE_BYTES - position)

    def _is_resident(self, fd: int, position: int) -> bool:
        if not _RWF_NOWAIT:
            return False
        try:
            os.preadv(fd, [self._byte], position, _RWF_NOWAIT)
        except OSError:
            # EAGAIN: it would wait for the disk. Others: the file system cannot tell.
            return False
        # Nothing read is the end of the file: reading there does not wait, and the sender notices.
        return True

    def load(self, file: ReadableFile, position: int, length: int) -> None:
        fd = file.fileno()
        if fd < 0:
            return
        if hasattr(os, "posix_fadvise"):
            # Twice the range: the next one is on its way from the disk while this one is sent.
            os.posix_fadvise(fd, position, 2 * length, os.POSIX_FADV_WILLNEED)
        end = position + length
        while position < end:
            data = os.pread(fd, min(_LOAD_BYTES, end - position), position)
            if not data:
                return
            position += len(data)
