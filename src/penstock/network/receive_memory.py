"""Memory for answers that are larger than the base buffer.

A consumer receives one large answer after another, and pages that the system has to give anew for each cost more than
everything else it does. So a few buffers are kept, and one is used again when nobody looks at it any more: each view of
a `bytearray`, however it was sliced, holds one reference to it, so CPython's count of references tells. Where there is
no such count, nothing is used again.

What is larger than `KEPT_BYTES_MAX` is not kept, nor is more than `KEPT_TOTAL_MAX` in all; beyond `HEAP_BYTES_MAX`
memory is mapped, so that the system gives pages as bytes arrive, whatever size was announced.
"""

from __future__ import annotations

import mmap
import sys
from collections.abc import Callable
from typing import Final

HEAP_BYTES_MAX: Final = 32 * 1024 * 1024
KEPT_BYTES_MAX: Final = 8 * 1024 * 1024
"""An answer has up to 1 MiB (`max.partition.fetch.bytes`) of each of some partitions, which one broker leads."""
KEPT_TOTAL_MAX: Final = 3 * KEPT_BYTES_MAX
KEPT_COUNT_MAX: Final = 4
"""Two answers that are being read, one that arrives, and one that may be larger than they."""
_STEP_BYTES: Final = 1024 * 1024
_WASTE_MAX: Final = 4
"""A buffer is used for an answer of a quarter of its size, not for a smaller one, whose records may be kept long."""

_count_references: Callable[[object], int] | None = getattr(sys, "getrefcount", None)
_sample: Final = [bytearray()]
_UNUSED: Final = -1 if _count_references is None else _count_references(_sample[0])
"""The count for a buffer that only a list refers to."""


class ReceiveMemory:
    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: list[bytearray] = []

    def take(self, size: int) -> memoryview:
        """A view of `size` bytes whose content means nothing, and that is the caller's alone."""
        if size > HEAP_BYTES_MAX:
            return memoryview(mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS))
        if size > KEPT_BYTES_MAX or _count_references is None:
            return memoryview(bytearray(size))
        kept = self._kept
        for index in range(len(kept)):
            if _count_references(kept[index]) == _UNUSED and size <= len(kept[index]) <= _WASTE_MAX * size:
                return memoryview(kept[index])[:size]
        buffer = bytearray(_rounded(size))
        self._keep(buffer)
        return memoryview(buffer)[:size]

    def _keep(self, buffer: bytearray) -> None:
        """In place of the oldest, when there is enough."""
        kept = self._kept
        while len(kept) >= KEPT_COUNT_MAX or (kept and sum(map(len, kept)) + len(buffer) > KEPT_TOTAL_MAX):
            del kept[0]
        kept.append(buffer)


def _rounded(size: int) -> int:
    """Sizes vary a little from answer to answer: what fits one should fit the next one too."""
    return 1 << (size - 1).bit_length() if size <= _STEP_BYTES else -(-size // _STEP_BYTES) * _STEP_BYTES
