"""The sparse indexes: their bytes, their search, their files."""

from __future__ import annotations

import struct
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.base.system import SystemFiles
from penstock.storage.segments.index import OffsetIndex, TimeIndex
from tests.unit.storage.core.building import scratch_directory

FILES = SystemFiles()


def new_offset_index(directory: Path, max_size: int = 1024) -> OffsetIndex:
    index = OffsetIndex(str(directory / "x.index"), 100, max_size, FILES)
    index.create()
    return index


def new_time_index(directory: Path, max_size: int = 1024) -> TimeIndex:
    index = TimeIndex(str(directory / "x.timeindex"), 100, max_size, FILES)
    index.create()
    return index


def test_files_are_preallocated_to_whole_entries_and_trimmed(tmp_path: Path) -> None:
    offset_index, time_index = new_offset_index(tmp_path, 1000), new_time_index(tmp_path, 1000)
    assert FILES.size(offset_index.path) == 1000
    assert FILES.size(time_index.path) == 996
    offset_index.append(105, 0)
    offset_index.append(110, 4200)
    time_index.maybe_append(7, 110)
    offset_index.trim()
    time_index.trim()
    assert FILES.read(offset_index.path) == struct.pack(">iiii", 5, 0, 10, 4200)
    assert FILES.read(time_index.path) == struct.pack(">qi", 7, 10)


def test_an_index_grows_again_after_it_was_trimmed(tmp_path: Path) -> None:
    index = new_offset_index(tmp_path)
    index.append(105, 0)
    index.trim()
    index.unmap()
    index.append(110, 50)
    assert [index.entry(0), index.entry(1)] == [(105, 0), (110, 50)]
    assert FILES.size(index.path) == 1024


def test_an_index_grows_again_after_it_was_trimmed_and_truncated(tmp_path: Path) -> None:
    """The next entry fits into the trimmed map, the one after it does not."""
    index = new_offset_index(tmp_path)
    for number in range(1, 4):
        index.append(100 + number, number)
    index.trim()
    index.truncate_to(103)
    for number in range(3, 9):
        index.append(100 + number, number)
    assert [index.entry(slot) for slot in range(8)] == [(100 + number, number) for number in range(1, 9)]


def test_full_leaves_the_last_time_slot_for_the_forced_entry(tmp_path: Path) -> None:
    offset_index, time_index = new_offset_index(tmp_path, 24), new_time_index(tmp_path, 36)
    for number in range(1, 4):
        offset_index.append(100 + number, number)
        assert offset_index.is_full == (number == 3)
    full_after: list[bool] = []
    for number in range(1, 4):
        time_index.maybe_append(number, 100 + number)
        full_after.append(time_index.is_full)
    assert (full_after, time_index.entries) == ([False, True, True], 3)


def test_open_takes_a_trimmed_file_and_refuses_a_torn_one(tmp_path: Path) -> None:
    index = new_time_index(tmp_path)
    assert not TimeIndex(str(tmp_path / "missing"), 100, 1024, FILES).open()
    index.maybe_append(5, 101)
    index.maybe_append(9, 104)
    index.trim()
    again = TimeIndex(index.path, 100, 1024, FILES)
    assert again.open()
    assert (again.entries, again.last_timestamp, again.last_offset) == (2, 9, 104)
    FILES.open(index.path).append(b"torn")
    assert not TimeIndex(index.path, 100, 1024, FILES).open()


def test_time_entries_only_grow(tmp_path: Path) -> None:
    index = new_time_index(tmp_path)
    index.maybe_append(5, 101)
    index.maybe_append(5, 103)
    index.maybe_append(4, 104)
    assert index.entries == 1


@given(gaps=st.lists(st.integers(1, 5), max_size=40), probe=st.integers(90, 320))
def test_offset_lookup_is_the_last_entry_at_or_before(gaps: list[int], probe: int) -> None:
    with scratch_directory() as directory:
        index = new_offset_index(directory)
        entries: list[tuple[int, int]] = []
        offset = 100
        for number, gap in enumerate(gaps):
            offset += gap
            entries.append((offset, number * 10))
            index.append(offset, number * 10)
        expected = [position for entry, position in entries if entry <= probe]
        assert index.position_at_or_before(probe) == (expected[-1] if expected else 0)
        later = [entry for entry, position in entries if position >= probe]
        assert index.offset_at_or_after(probe) == (later[0] if later else None)
        index.truncate_to(probe)
        assert [index.entry(slot) for slot in range(index.entries)] == [entry for entry in entries if entry[0] < probe]
        index.unmap()


@given(steps=st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), max_size=40), probe=st.integers(0, 320))
def test_time_lookup_is_the_first_entry_that_reaches_it(steps: list[tuple[int, int]], probe: int) -> None:
    with scratch_directory() as directory:
        index = new_time_index(directory)
        entries: list[tuple[int, int]] = []
        timestamp, offset = 0, 100
        for time_step, offset_step in steps:
            timestamp, offset = timestamp + time_step, offset + offset_step
            entries.append((timestamp, offset))
            index.maybe_append(timestamp, offset)
        reached = [entry for entry in entries if entry[0] >= probe]
        assert index.first_at_or_after(probe) == (reached[0] if reached else None)
        index.truncate_to(probe)
        assert [index.entry(slot) for slot in range(index.entries)] == [entry for entry in entries if entry[1] < probe]
        index.unmap()
