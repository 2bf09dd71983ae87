"""The sparse indexes of a segment, memory-mapped, in Kafka's layout (big endian, no checksum).

`.index`: 8-byte entries, i32 (last offset of a batch - base offset) and i32 position of that batch.
`.timeindex`: 12-byte entries, i64 largest timestamp so far and i32 (last offset of its batch - base offset).

The file of an index that is written to is preallocated (`segment.index.bytes`, rounded down to whole entries) and
holds zeros after the last entry; `trim` cuts them off when the segment becomes inactive and at a clean stop. So how
many entries an untrimmed file has is known only to the process that writes it: after a crash it is rebuilt.

The preallocated file has no blocks yet, and a store into a map for which the full disk has none kills the process. So
space is reserved page by page before it is written to, where a full disk is an OSError.

The map is made at the first use and can be dropped at any time (`unmap`): thousands of idle partitions hold none.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Callable
from typing import Any, ClassVar

from penstock.base.ports import Files, MappedFile

_OFFSET_ENTRY = struct.Struct(">ii")
_TIME_ENTRY = struct.Struct(">qi")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_RELATIVE_OFFSET_IN_TIME_ENTRY = 8
_PAGE_BYTES = 4096

NO_TIMESTAMP = -1


class SparseIndex:
    """What both indexes share: the file, its map and the binary search."""

    __slots__ = ("_file_size", "_files", "_map", "_reserved", "_view", "base_offset", "entries", "max_entries", "path")

    entry_size: ClassVar[int]
    reserved_entries: ClassVar[int] = 0

    def __init__(self, path: str, base_offset: int, max_size: int, files: Files) -> None:
        self.path = path
        self.base_offset = base_offset
        self.entries = 0
        self.max_entries = max(max_size // self.entry_size, 1 + self.reserved_entries)
        self._files = files
        self._map: MappedFile | None = None
        self._view: memoryview | None = None
        self._file_size = 0
        # Up to here the file has blocks; 0 when that is not known.
        self._reserved = 0

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries - self.reserved_entries

    @property
    def is_mapped(self) -> bool:
        return self._map is not None

    # -- The file --------------------------------------------------------------------------------------------------

    def create(self) -> None:
        """Make the file of a new segment: preallocated, without entries, not mapped."""
        self._file_size = self.max_entries * self.entry_size
        self._files.map(self.path, size=self._file_size).close()

    def open(self) -> bool:
        """Take a trimmed file as it is; False when there is none or it does not hold whole entries."""
        try:
            self._file_size = self._files.size(self.path)
        except FileNotFoundError:
            return False
        self.entries = self._file_size // self.entry_size
        return self._file_size % self.entry_size == 0

    def _open_view(self) -> memoryview:
        self._map = self._files.map(self.path)
        self._view = self._map.view
        if len(self._view) < self.entries * self.entry_size:
            self.unmap()
            raise OSError(errno.EIO, "the index was cut short by somebody else", self.path)
        return self._view

    def _view_for_append(self) -> memoryview:
        """The map with room for one entry more: preallocated again if it had been trimmed, and with blocks."""
        end = (self.entries + 1) * self.entry_size
        size = max(self.max_entries * self.entry_size, end)
        if self._map is None:
            self._map = self._files.map(self.path, size=size)
            self._file_size = size
        elif len(self._map.view) < size:
            self._resize(size)
        self._view = self._map.view
        page_start = (end - self.entry_size) // _PAGE_BYTES * _PAGE_BYTES
        reserved = min(page_start + 2 * _PAGE_BYTES, size)
        self._map.reserve(page_start, reserved - page_start)
        self._reserved = reserved
        return self._view

    def reset(self) -> None:
        """Drop all entries, for a rebuild. The old content must go: nothing marks where new entries would end."""
        self.entries = 0
        self._resize(0)

    def trim(self) -> None:
        """Cut the file down to its entries."""
        self._resize(self.entries * self.entry_size)

    def _resize(self, size: int) -> None:
        self._reserved = 0
        if self._map is None:
            if self._file_size != size or size == 0:
                self._files.map(self.path, size=size).close()
        else:
            try:
                self._map.resize(size)
            except OSError:
                self._map = self._view = None
                raise
            self._view = self._map.view
        self._file_size = size

    def unmap(self) -> None:
        self._reserved = 0
        if self._map is not None:
            self._map.close()
            self._map = self._view = None

    # -- Search ----------------------------------------------------------------------------------------------------

    def _floor_slot(self, unpack_from: Callable[..., tuple[Any, ...]], field_position: int, target: int) -> int:
        """The last slot whose field is at or below `target`, -1 when there is none. The field never decreases."""
        low, high = 0, self.entries
        if not high:
            return -1
        view = self._view
        if view is None:
            view = self._open_view()
        size = self.entry_size
        while low < high:
            middle = (low + high) >> 1
            if unpack_from(view, middle * size + field_position)[0] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1


class OffsetIndex(SparseIndex):
    """Offset -> position. An entry names the last offset of the batch at its position."""

    __slots__ = ()
    entry_size = _OFFSET_ENTRY.size

    def append(self, offset: int, position: int) -> None:
        end = self.entries * 8
        view = self._view
        if view is None or self._reserved < end + 8:
            view = self._view_for_append()
        _OFFSET_ENTRY.pack_into(view, end, offset - self.base_offset, position)
        self.entries += 1

    def entry(self, slot: int) -> tuple[int, int]:
        view = self._view if self._view is not None else self._open_view()
        relative_offset, position = _OFFSET_ENTRY.unpack_from(view, slot * 8)
        return self.base_offset + relative_offset, position

    def position_at_or_before(self, offset: int) -> int:
        """Where to start scanning for the batch that holds `offset`."""
        slot = self._floor_slot(_INT32.unpack_from, 0, offset - self.base_offset)
        return self.entry(slot)[1] if slot >= 0 else 0

    def offset_at_or_after(self, position: int) -> int | None:
        """The offset of the first entry at `position` or after it: a bound on the offsets before `position`."""
        slot = self._floor_slot(_INT32.unpack_from, 4, position - 1) + 1
        return self.entry(slot)[0] if slot < self.entries else None

    def truncate_to(self, offset: int) -> None:
        """Forget the entries for `offset` and later."""
        self.entries = self._floor_slot(_INT32.unpack_from, 0, offset - self.base_offset - 1) + 1


class TimeIndex(SparseIndex):
    """Timestamp -> offset. An entry says that no batch up to and including its own has a larger timestamp."""

    __slots__ = ("last_offset", "last_timestamp")
    entry_size = _TIME_ENTRY.size
    # The last slot is kept for the entry that closing the segment forces.
    reserved_entries = 1

    def __init__(self, path: str, base_offset: int, max_size: int, files: Files) -> None:
        super().__init__(path, base_offset, max_size, files)
        self.last_timestamp = NO_TIMESTAMP
        self.last_offset = base_offset

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Add an entry if the largest timestamp has grown since the last one."""
        if timestamp <= self.last_timestamp:
            return
        end = self.entries * 12
        view = self._view
        if view is None or self._reserved < end + 12:
            view = self._view_for_append()
        _TIME_ENTRY.pack_into(view, end, timestamp, offset - self.base_offset)
        self.entries += 1
        self.last_timestamp = timestamp
        self.last_offset = offset

    def entry(self, slot: int) -> tuple[int, int]:
        view = self._view if self._view is not None else self._open_view()
        timestamp, relative_offset = _TIME_ENTRY.unpack_from(view, slot * 12)
        return timestamp, self.base_offset + relative_offset

    def first_at_or_after(self, timestamp: int) -> tuple[int, int] | None:
        """The first entry whose timestamp is `timestamp` or later."""
        slot = self._floor_slot(_INT64.unpack_from, 0, timestamp - 1) + 1
        return self.entry(slot) if slot < self.entries else None

    def truncate_to(self, offset: int) -> None:
        relative_offset = offset - self.base_offset - 1
        self.entries = self._floor_slot(_INT32.unpack_from, _RELATIVE_OFFSET_IN_TIME_ENTRY, relative_offset) + 1
        self._load_last_entry()

    def reset(self) -> None:
        super().reset()
        self._load_last_entry()

    def open(self) -> bool:
        whole = super().open()
        if whole:
            self._load_last_entry()
        return whole

    def _load_last_entry(self) -> None:
        if self.entries:
            self.last_timestamp, self.last_offset = self.entry(self.entries - 1)
        else:
            self.last_timestamp, self.last_offset = NO_TIMESTAMP, self.base_offset
