"""The `.txnindex` of a segment: the transactions whose abort marker is in it.

34-byte entries: i16 version 0, i64 producer id, i64 first offset, i64 last offset (of the marker), i64 last stable
offset as it was after the abort. A reader of committed records gets those that overlap what it fetched. The file is
made with its first entry; aborts are rare, so it is opened for each one and no descriptor is kept.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from penstock.base.ports import Files

_ENTRY = struct.Struct(">hqqqq")
_VERSION = 0

_last_offset_of = attrgetter("last_offset")


class CorruptTransactionIndexError(Exception):
    """The file cannot be what was written; it is rebuilt from the log."""


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    __slots__ = ("_entries", "_files", "base_offset", "exists", "path")

    def __init__(self, path: str, base_offset: int, files: Files, *, exists: bool) -> None:
        self.path = path
        self.base_offset = base_offset
        self.exists = exists
        self._files = files
        self._entries: list[AbortedTransaction] | None = None

    @property
    def entries(self) -> list[AbortedTransaction]:
        """All entries, by growing last offset; read at the first use."""
        if self._entries is None:
            self._entries = _decode(self._files.read(self.path)) if self.exists else []
        return self._entries

    def forget(self) -> None:
        """Drop the entries from memory."""
        self._entries = None

    def check(self) -> None:
        """CorruptTransactionIndexError when the file cannot belong to this segment."""
        previous = self.base_offset - 1
        for entry in self.entries:
            if entry.last_offset <= previous:
                raise CorruptTransactionIndexError(f"{self.path}: offset {entry.last_offset} follows {previous}")
            previous = entry.last_offset

    def append(self, transaction: AbortedTransaction) -> None:
        entries = self.entries
        file = self._files.open(self.path)
        try:
            # A torn entry of an earlier failure must not shift the ones after it.
            if file.size() != len(entries) * _ENTRY.size:
                file.truncate(len(entries) * _ENTRY.size)
            file.append(_ENTRY.pack(_VERSION, *transaction))
        finally:
            file.close()
        self.exists = True
        entries.append(transaction)

    def collect(self, fetch_offset: int, upper_bound_offset: int) -> tuple[list[AbortedTransaction], bool]:
        """The aborted transactions that overlap the range, and whether later segments can have no more of them."""
        found: list[AbortedTransaction] = []
        if not self.exists:
            return found, False
        entries = self.entries
        for entry in entries[bisect_left(entries, fetch_offset, key=_last_offset_of) :]:
            if entry.first_offset < upper_bound_offset:
                found.append(entry)
            if entry.last_stable_offset >= upper_bound_offset:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Forget the transactions whose marker is at `offset` or later."""
        if not self.exists:
            return
        entries = self.entries
        keep = bisect_left(entries, offset, key=_last_offset_of)
        if keep < len(entries):
            del entries[keep:]
            file = self._files.open(self.path)
            try:
                file.truncate(keep * _ENTRY.size)
            finally:
                file.close()

    def reset(self) -> None:
        """Remove the file, for a rebuild."""
        if self.exists:
            self._files.remove(self.path)
            self.exists = False
        self._entries = []


def _decode(data: bytes) -> list[AbortedTransaction]:
    entries: list[AbortedTransaction] = []
    for version, *fields in _ENTRY.iter_unpack(data[: len(data) // _ENTRY.size * _ENTRY.size]):
        if version > _VERSION:
            raise CorruptTransactionIndexError(f"unknown version {version}")
        entries.append(AbortedTransaction(*fields))
    return entries
