"""The index of aborted transactions."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from penstock.base.system import SystemFiles
from penstock.storage.segments.transaction_index import (
    AbortedTransaction,
    CorruptTransactionIndexError,
    TransactionIndex,
)

FILES = SystemFiles()
FIRST = AbortedTransaction(producer_id=7, first_offset=10, last_offset=20, last_stable_offset=12)
SECOND = AbortedTransaction(producer_id=8, first_offset=12, last_offset=30, last_stable_offset=31)


def new_index(directory: Path, *, exists: bool = False) -> TransactionIndex:
    return TransactionIndex(str(directory / "x.txnindex"), 10, FILES, exists=exists)


def test_the_file_appears_with_the_first_entry(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    assert index.collect(0, 100) == ([], False)
    assert not FILES.exists(index.path)
    index.append(FIRST)
    assert FILES.read(index.path) == struct.pack(">hqqqq", 0, 7, 10, 20, 12)
    assert new_index(tmp_path, exists=True).entries == [FIRST]


def test_collect_returns_what_overlaps_and_says_when_to_stop(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.append(FIRST)
    index.append(SECOND)
    assert index.collect(0, 100) == ([FIRST, SECOND], False)
    assert index.collect(21, 100) == ([SECOND], False)
    assert index.collect(0, 11) == ([FIRST], True)
    assert index.collect(0, 31) == ([FIRST, SECOND], True)


def test_truncation_drops_markers_at_or_after_the_offset(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.append(FIRST)
    index.append(SECOND)
    index.truncate_to(30)
    assert new_index(tmp_path, exists=True).entries == index.entries == [FIRST]


def test_a_torn_entry_is_ignored_and_overwritten(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.append(FIRST)
    FILES.open(index.path).append(b"torn")
    again = new_index(tmp_path, exists=True)
    assert again.entries == [FIRST]
    again.append(SECOND)
    assert new_index(tmp_path, exists=True).entries == [FIRST, SECOND]


@pytest.mark.parametrize(
    "content",
    [
        struct.pack(">hqqqq", 9, 7, 10, 20, 12),
        struct.pack(">hqqqq", 0, 7, 1, 2, 2),
        struct.pack(">hqqqq", 0, 7, 10, 20, 12) * 2,
    ],
    ids=["unknown version", "before the segment", "not growing"],
)
def test_damage_is_noticed(tmp_path: Path, content: bytes) -> None:
    index = new_index(tmp_path, exists=True)
    FILES.open(index.path).append(content)
    with pytest.raises(CorruptTransactionIndexError):
        index.check()
