import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.base.system import SystemFile
from penstock.server.residency import SAMPLE_BYTES, PageCache

SIZE = 8 * SAMPLE_BYTES


@pytest.fixture
def file(tmp_path: Path) -> Iterator[SystemFile]:
    file = SystemFile(str(tmp_path / "log"), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    file.append(bytes(SIZE))
    yield file
    file.close()


def only_below(end: int) -> object:
    def preadv(fd: int, buffers: object, position: int, flags: int) -> int:
        if position >= end:
            raise BlockingIOError(errno.EAGAIN, "would block")
        return 1

    return preadv


def test_loaded_is_resident(file: SystemFile) -> None:
    cache = PageCache()
    cache.load(file, 0, SIZE)
    try:
        os.preadv(file.fileno(), [bytearray(1)], 0, os.RWF_NOWAIT)
    except OSError as error:
        pytest.skip(f"the file system of the temporary directory cannot tell: {error}")
    assert cache.resident_length(file, 0, SIZE) == SIZE
    assert cache.resident_length(file, 5, 1) == 1


def test_loading_past_the_end_stops_there(file: SystemFile) -> None:
    PageCache().load(file, SIZE - 10, 1000)


@pytest.mark.parametrize(
    ("resident_end", "known"),
    [(0, 0), (1, 0), (3 * SAMPLE_BYTES, 3 * SAMPLE_BYTES - 0), (SIZE - 1, 7 * SAMPLE_BYTES), (SIZE, SIZE)],
)
def test_the_resident_part_ends_at_a_sample_that_would_block(
    file: SystemFile, monkeypatch: pytest.MonkeyPatch, resident_end: int, known: int
) -> None:
    monkeypatch.setattr(os, "preadv", only_below(resident_end))
    found = PageCache().resident_length(file, 0, SIZE)
    assert found == known or (resident_end == 1 and found <= SAMPLE_BYTES)


def test_a_file_system_that_cannot_tell_counts_as_cold(file: SystemFile, monkeypatch: pytest.MonkeyPatch) -> None:
    def preadv(fd: int, buffers: object, position: int, flags: int) -> int:
        raise OSError(errno.EOPNOTSUPP, "not supported")

    monkeypatch.setattr(os, "preadv", preadv)
    assert PageCache().resident_length(file, 0, SIZE) == 0


def test_a_file_without_descriptor_is_in_memory() -> None:
    class Simulated:
        def fileno(self) -> int:
            return -1

        def read_at(self, position: int, length: int) -> bytes:
            return b""

    cache = PageCache()
    cache.load(Simulated(), 0, 10)
    assert cache.resident_length(Simulated(), 0, 10) == 10
