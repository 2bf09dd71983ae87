"""A range of a segment's file that is on its way to a consumer.

A slice pins its file: the descriptor stays open until the last slice is released, whatever happens to the segment
meanwhile, so a deleted segment is still sent whole. Truncation is different, since the bytes under the slice go (and
others may come to their place): such a slice turns invalid, and its connection must be closed.
"""

from __future__ import annotations

from penstock.base.ports import File


class FileHandle:
    """An open file shared by its segment and the slices of it; the last one to release it closes it."""

    __slots__ = ("file", "references", "truncated_sizes")

    def __init__(self, file: File) -> None:
        self.file = file
        self.references = 1
        # One entry per truncation: a slice compares those that came after it with its own end.
        self.truncated_sizes: list[int] = []

    def release(self) -> None:
        self.references -= 1
        if self.references == 0:
            self.file.close()

    def truncate(self, size: int) -> None:
        # Before the file changes: a slice must never look valid while its bytes are going.
        self.truncated_sizes.append(size)
        self.file.truncate(size)


class FileSlice:
    """`length` bytes from `position`. `near_end` says that they were written by this process not long ago, so that
    they are almost certainly in the page cache."""

    __slots__ = ("_handle", "_truncations_seen", "base_offset", "file", "length", "near_end", "position")

    def __init__(self, handle: FileHandle, position: int, length: int, near_end: bool, base_offset: int) -> None:
        handle.references += 1
        self._handle: FileHandle | None = handle
        self._truncations_seen = len(handle.truncated_sizes)
        self.file = handle.file
        self.position = position
        self.length = length
        self.near_end = near_end
        self.base_offset = base_offset
        """The base offset of the segment, which with `position` says where in the log this is."""

    @property
    def valid(self) -> bool:
        """False once the file was truncated under the slice, or the slice was released."""
        handle = self._handle
        if handle is None:
            return False
        if len(handle.truncated_sizes) == self._truncations_seen:
            return True
        return min(handle.truncated_sizes[self._truncations_seen :]) >= self.position + self.length

    def read(self) -> bytes:
        return self.file.read_at(self.position, self.length)

    def release(self) -> None:
        """Let go of the file; a second call does nothing."""
        handle = self._handle
        if handle is not None:
            self._handle = None
            handle.release()
