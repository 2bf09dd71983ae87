"""The cases of Kafka's own leader-epoch cache, and the file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.system import SystemFiles
from penstock.base.types import TopicPartition
from penstock.storage.leader_epochs import FILE_NAME, LeaderEpochCache

TP = TopicPartition("orders", 0)
UNDEFINED = (-1, -1)


def make_cache(directory: Path, *entries: tuple[int, int]) -> LeaderEpochCache:
    cache = LeaderEpochCache(TP, str(directory), SystemFiles())
    for epoch, start_offset in entries:
        cache.assign(epoch, start_offset)
    return cache


def test_the_latest_epoch_ends_at_the_log_end(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (2, 0))
    assert cache.latest_epoch == 2
    assert cache.end_offset_for(2, 10) == (2, 10)


def test_an_empty_cache_knows_nothing(tmp_path: Path) -> None:
    cache = make_cache(tmp_path)
    assert cache.latest_epoch is None
    assert cache.end_offset_for(0, 10) == UNDEFINED
    assert cache.earliest_entry is None


def test_an_undefined_epoch_is_answered_as_undefined(tmp_path: Path) -> None:
    assert make_cache(tmp_path, (2, 5)).end_offset_for(-1, 10) == UNDEFINED


def test_an_epoch_above_all_is_undefined(tmp_path: Path) -> None:
    assert make_cache(tmp_path, (2, 5), (3, 8)).end_offset_for(4, 10) == UNDEFINED


def test_an_epoch_below_all_gets_itself_and_the_first_start(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (5, 11), (6, 12), (7, 13))
    assert cache.end_offset_for(4, 20) == (4, 11)


def test_an_epoch_ends_where_the_next_one_starts(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (2, 11), (5, 14), (7, 20))
    assert cache.end_offset_for(2, 30) == (2, 14)
    assert cache.end_offset_for(5, 30) == (5, 20)


def test_a_missing_epoch_gets_the_one_before_it(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (2, 11), (5, 14), (7, 20))
    assert cache.end_offset_for(4, 30) == (2, 14)
    assert cache.end_offset_for(6, 30) == (5, 20)


def test_a_known_epoch_is_not_moved_by_later_offsets(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (2, 6), (2, 7), (2, 8))
    assert cache.entries == [(2, 6)]


def test_an_earlier_start_of_the_latest_epoch_moves_it(tmp_path: Path) -> None:
    assert make_cache(tmp_path, (2, 6), (2, 4)).entries == [(2, 4)]


def test_an_epoch_without_records_gives_way_to_the_next(tmp_path: Path) -> None:
    assert make_cache(tmp_path, (1, 0), (2, 6), (3, 6)).entries == [(1, 0), (3, 6)]


def test_entries_stay_monotonic_when_epochs_go_back(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (1, 5), (2, 6), (3, 7))
    cache.assign(2, 8)
    assert cache.entries == [(1, 5), (2, 8)]
    cache.assign(3, 6)
    assert cache.entries == [(1, 5), (3, 6)]


@pytest.mark.parametrize(("epoch", "start_offset"), [(-1, 0), (0, -1)])
def test_invalid_entries_are_refused(tmp_path: Path, epoch: int, start_offset: int) -> None:
    with pytest.raises(ValueError, match="orders-0"):
        make_cache(tmp_path).assign(epoch, start_offset)


@pytest.mark.parametrize(
    ("end_offset", "kept"),
    [(12, [(2, 6), (3, 8), (4, 11)]), (11, [(2, 6), (3, 8)]), (9, [(2, 6), (3, 8)]), (8, [(2, 6)]), (0, [])],
)
def test_truncation_from_the_end(tmp_path: Path, end_offset: int, kept: list[tuple[int, int]]) -> None:
    cache = make_cache(tmp_path, (2, 6), (3, 8), (4, 11))
    cache.truncate_from_end(end_offset)
    assert cache.entries == kept
    assert cache.latest_epoch == (kept[-1][0] if kept else None)


def test_truncation_to_an_undefined_offset_does_nothing(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (2, 6))
    cache.truncate_from_end(-1)
    assert cache.entries == [(2, 6)]


@pytest.mark.parametrize(
    ("start_offset", "kept"),
    [
        (5, [(2, 6), (3, 8), (4, 11)]),
        (6, [(2, 6), (3, 8), (4, 11)]),
        (7, [(2, 7), (3, 8), (4, 11)]),
        (8, [(3, 8), (4, 11)]),
        (9, [(3, 9), (4, 11)]),
        (11, [(4, 11)]),
        (20, [(4, 20)]),
    ],
)
def test_truncation_from_the_start(tmp_path: Path, start_offset: int, kept: list[tuple[int, int]]) -> None:
    cache = make_cache(tmp_path, (2, 6), (3, 8), (4, 11))
    cache.truncate_from_start(start_offset)
    assert cache.entries == kept


def test_neighbours(tmp_path: Path) -> None:
    cache = make_cache(tmp_path, (2, 6), (4, 8))
    assert [cache.next_epoch(epoch) for epoch in (0, 2, 3, 4)] == [2, 4, 4, None]


def test_changes_are_pending_until_written(tmp_path: Path) -> None:
    cache = make_cache(tmp_path)
    assert not cache.is_dirty
    assert cache.pending_write() is None
    cache.assign(1, 0)
    write = cache.pending_write()
    assert write is not None
    cache.assign(2, 9)
    write()
    assert (tmp_path / FILE_NAME).read_bytes() == b"0\n1\n1 0\n"
    assert cache.is_dirty
    cache.flush()
    assert not cache.is_dirty
    assert make_cache(tmp_path).entries == [(1, 0), (2, 9)]


def test_a_write_into_a_directory_that_went_away_is_dropped(tmp_path: Path) -> None:
    directory = tmp_path / "orders-0"
    directory.mkdir()
    cache = make_cache(directory, (1, 0))
    directory.rename(tmp_path / "orders-0.x-delete")
    cache.flush()
    assert cache.is_dirty


@pytest.mark.parametrize("content", [b"torn", b"0\n5\n1 2\n", b"\0" * 30])
def test_a_malformed_file_starts_empty_and_is_replaced(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    cache = make_cache(tmp_path)
    assert cache.entries == []
    cache.flush()
    assert (tmp_path / FILE_NAME).read_bytes() == b"0\n0\n"


def test_a_file_that_is_not_monotonic_is_repaired(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).write_bytes(b"0\n3\n1 0\n2 20\n3 10\n")
    cache = make_cache(tmp_path)
    assert cache.entries == [(1, 0), (3, 10)]
    assert cache.is_dirty


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 30)), max_size=12), st.integers(0, 9))
def test_any_assignments_leave_both_columns_growing(
    tmp_path_factory: pytest.TempPathFactory, entries: list[tuple[int, int]], asked: int
) -> None:
    cache = make_cache(tmp_path_factory.mktemp("epochs"), *entries)
    kept = cache.entries
    assert all(a.epoch < b.epoch and a.start_offset < b.start_offset for a, b in pairwise(kept))
    epoch, end = cache.end_offset_for(asked, 40)
    assert (epoch, end) == UNDEFINED or epoch <= asked
