"""A session's receive buffer: bytes arrive straight from the socket, frames are handed out as slices of it.

`view[start:end]` is what has arrived and not been consumed. The session's loop works on these attributes directly, for
speed; everything that happens less often than once per frame is a method here.

- The buffer has 64 KiB while requests are small. A partial frame stays where it is as long as its end fits behind it;
  otherwise it moves to the front, and if the whole buffer is too small, into a larger one.
- A larger buffer is anonymous mapped memory: the system gives pages only as bytes really arrive, whatever size a frame
  claims, and takes them back at once when the buffer is dropped. Even so only a frame up to `JUMP_BYTES` gets its
  buffer in one step; beyond, the buffer doubles as it fills.
- Inside a large frame the socket is read exactly to the frame's end (`limit`), so a bulk producer's next request starts
  at the front again and nothing is moved.
"""

from __future__ import annotations

import mmap
from typing import Final

BASE_BYTES: Final = 64 * 1024
JUMP_BYTES: Final = 4 * 1024 * 1024
_STEP_BYTES: Final = 64 * 1024


def buffer_bytes_for(frame_bytes: int) -> int:
    """The size of buffer that holds a frame: rounded up, so that frames of about one size share it."""
    if frame_bytes <= BASE_BYTES:
        return BASE_BYTES
    return -(-frame_bytes // _STEP_BYTES) * _STEP_BYTES


class ReceiveBuffer:
    __slots__ = ("_large_used", "capacity", "charge", "end", "limit", "start", "view")

    def __init__(self) -> None:
        self.view = _allocate(BASE_BYTES)
        self.capacity = BASE_BYTES
        self.start = 0
        self.end = 0
        self.limit = BASE_BYTES
        self.charge = 0
        """Bytes charged to the memory budget for this buffer."""
        self._large_used = False

    def fit(self, need: int) -> bool:
        """Make place for the frame of `need` bytes that begins at `start`; False when the buffer has to grow first."""
        start = self.start
        if need > BASE_BYTES:
            self._large_used = True
        if start + need > self.capacity and start:
            self._move_to_front()
            start = 0
        if start + need <= self.capacity:
            self.limit = start + need if need > BASE_BYTES else self.capacity
            return True
        self.limit = self.capacity
        # A buffer that grows by doubling is used up to its end before it grows again.
        return self.capacity >= JUMP_BYTES and self.end < self.capacity

    def grow(self, need: int) -> None:
        """The next larger buffer on the way to `need` bytes. MemoryError or OSError when the system has none."""
        capacity = min(buffer_bytes_for(need), max(JUMP_BYTES, 2 * self.capacity))
        self._replace(capacity)
        self.limit = min(need, capacity)
        self._large_used = True

    def shrink(self) -> bool:
        """Back to the base size, if what has arrived fits in it."""
        if self.capacity == BASE_BYTES or self.end - self.start > BASE_BYTES // 2:
            return False
        self._replace(BASE_BYTES)
        self.limit = BASE_BYTES
        return True

    def drop(self) -> None:
        """Give all memory back; nothing is received any more."""
        self.view = memoryview(b"")
        self.capacity = self.start = self.end = self.limit = 0

    def large_was_used(self) -> bool:
        """Whether a large frame came since the last call."""
        used, self._large_used = self._large_used, False
        return used

    def _move_to_front(self) -> None:
        length = self.end - self.start
        self.view[:length] = self.view[self.start : self.end]
        self.start, self.end = 0, length

    def _replace(self, capacity: int) -> None:
        view = _allocate(capacity)
        length = self.end - self.start
        view[:length] = self.view[self.start : self.end]
        # The old memory is freed with its last slice; nobody may still write to it.
        self.view, self.capacity, self.start, self.end = view, capacity, 0, length


def _allocate(size: int) -> memoryview:
    return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
