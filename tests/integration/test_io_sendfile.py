"""File slices over real sockets, on both event loops: every byte arrives, every slice is released once."""

import asyncio
import os
import struct
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from penstock.server.answers import release
from penstock.server.output import COPY_BYTES, Answer, Parts
from penstock.server.residency import ReadableFile
from penstock.server.session import Session, SessionLimits
from tests.integration.io_harness import (
    LOOPS,
    CopiedFile,
    Slice,
    client_of,
    file_of,
    framed,
    open_sockets,
    run_on,
    serving,
    until,
)

Run = Callable[[Callable[[], Awaitable[None]]], None]
CONTENT = Random(7).randbytes(6_000_000)


@pytest.fixture(params=LOOPS)
def run(request: pytest.FixtureRequest) -> Run:
    return lambda work: run_on(request.param, work)


class Fetches:
    """Answers request `n` with a random mix of bytes and slices that the test can predict."""

    def __init__(self, file: object, seed: int) -> None:
        self._random = Random(seed)
        self._file = file
        self.expected: list[bytes] = []
        self.slices: list[Slice] = []

    def dispatch(self, session: Session, frame: bytes) -> Answer:
        parts: Parts = []
        body = b""
        for _ in range(self._random.randrange(1, 6)):
            header = self._random.randbytes(self._random.choice([1, 60, 5_000]))
            length = self._random.choice([1, 500, COPY_BYTES, COPY_BYTES + 1, 100_000, 2_500_000])
            position = self._random.randrange(len(CONTENT) - length)
            part = Slice(self._file, position, length, near_end=self._random.random() < 0.5)
            self.slices.append(part)
            parts += [header, part]
            body += header + CONTENT[position : position + length]
        parts.insert(0, struct.pack(">i", len(body)))
        self.expected.append(body)
        if self._random.random() < 0.3:
            return asyncio.ensure_future(self._later(parts))
        if self._random.random() < 0.2:
            release(parts)
            return framed(body)
        return parts

    async def _later(self, parts: Parts) -> Parts:
        await asyncio.sleep(self._random.random() * 0.01)
        return parts


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("copied", [False, True])
def test_every_byte_arrives_through_narrow_sockets(tmp_path: Path, run: Run, seed: int, copied: bool) -> None:
    async def work() -> None:
        with file_of(tmp_path / f"log-{id(run)}", CONTENT) as file:
            fetches = Fetches(CopiedFile(file) if copied else file, seed)
            limits = SessionLimits(send_buffer_bytes=30_000, in_flight_max=5)
            async with serving(fetches.dispatch, limits=limits) as listener:
                async with client_of(listener, receive_buffer_bytes=50_000) as client:
                    await client.send(framed(b"fetch") * 25)
                    for number in range(25):
                        assert await client.receive_frame() == fetches.expected[number]
                await until(lambda: not listener.sessions)
            assert {part.releases for part in fetches.slices} == {1}

    run(work)


def test_a_slice_truncated_while_it_is_sent_closes_the_connection(
    tmp_path: Path, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> None:
        with file_of(tmp_path / "log", CONTENT) as file:
            part = Slice(file, 0, len(CONTENT))
            limits = SessionLimits(send_buffer_bytes=30_000)
            async with (
                serving(lambda session, frame: [b"head", part], limits=limits) as listener,
                client_of(listener, receive_buffer_bytes=50_000) as client,
            ):
                await client.send(framed(b"fetch"))
                assert len(await client.receive(100_000)) == 100_000
                part.valid = False
                assert len(await client.receive(len(CONTENT))) < len(CONTENT) - 100_000
            assert part.releases == 1

    run(work)
    assert ["truncated" in record.getMessage() for record in caplog.records] == [True]


def test_a_file_shorter_than_announced_closes_the_connection(tmp_path: Path, run: Run) -> None:
    async def work() -> None:
        with file_of(tmp_path / "log", CONTENT) as file:
            part = Slice(file, 1_000_000, len(CONTENT))
            async with serving(lambda session, frame: [part]) as listener, client_of(listener) as client:
                await client.send(framed(b"fetch"))
                assert len(await client.receive(len(CONTENT))) == len(CONTENT) - 1_000_000
            assert part.releases == 1

    run(work)


@pytest.mark.parametrize("leave", ["close", "reset", "half-close"])
def test_a_client_that_leaves_during_a_send_leaves_nothing_behind(tmp_path: Path, run: Run, leave: str) -> None:
    async def work() -> None:
        sockets = open_sockets()
        with file_of(tmp_path / "log", CONTENT) as file:
            slices: list[Slice] = []

            def dispatch(session: Session, frame: bytes) -> Answer:
                slices.extend(Slice(file, 0, len(CONTENT)) for _ in range(2))
                return [b"head", slices[-2], b"middle", slices[-1]]

            limits = SessionLimits(send_buffer_bytes=30_000, idle_ms_max=5000)
            async with serving(dispatch, limits=limits) as listener:
                for _ in range(3):
                    async with client_of(listener, receive_buffer_bytes=50_000) as client:
                        await client.send(framed(b"fetch") * 2)
                        await client.receive(1000)
                        if leave == "reset":
                            client.reset()
                        elif leave == "half-close":
                            client.socket.shutdown(1)
                            whole = 2 * (len(b"headmiddle") + 2 * len(CONTENT))
                            assert len(await client.receive(whole)) == whole - 1000
                            assert await client.closed_by_broker()
                    await until(lambda: not listener.sessions)
            assert [part.releases for part in slices] == [1] * 12
        await until(lambda: open_sockets() <= sockets)

    run(work)


class SlowDisk:
    """Nothing is resident; loading takes until the test says so."""

    def __init__(self) -> None:
        self.loading = threading.Event()
        self.may_finish = threading.Event()

    def resident_length(self, file: ReadableFile, position: int, length: int) -> int:
        return 0

    def load(self, file: ReadableFile, position: int, length: int) -> None:
        self.loading.set()
        assert self.may_finish.wait(30)


def test_a_cold_read_does_not_stall_others(tmp_path: Path, run: Run) -> None:
    async def work() -> None:
        disk = SlowDisk()
        with file_of(tmp_path / "log", CONTENT) as file:
            cold = Slice(file, 0, len(CONTENT), near_end=False)
            gone = Slice(file, 0, len(CONTENT), near_end=False)
            answers: dict[bytes, Answer] = {b"cold": [cold], b"gone": [gone], b"hot": framed(b"hot")}
            async with (
                serving(lambda session, frame: answers[frame], residency=disk) as listener,
                client_of(listener) as slow,
                client_of(listener) as other,
                client_of(listener) as leaving,
            ):
                await slow.send(framed(b"cold"))
                await leaving.send(framed(b"gone"))
                await until(disk.loading.is_set)
                for _ in range(10):
                    await other.send(framed(b"hot"))
                    assert await other.receive_frame() == b"hot"
                leaving.reset()
                await until(lambda: len(listener.sessions) == 2)
                assert gone.releases == 0, "a worker still reads from it"
                disk.may_finish.set()
                assert await slow.receive(len(CONTENT)) == CONTENT
                await until(lambda: gone.releases == 1)
            assert cold.releases == 1

    run(work)


def test_a_log_that_has_left_the_page_cache_is_read_through_workers(tmp_path: Path, run: Run) -> None:
    async def work() -> None:
        with file_of(tmp_path / "log", CONTENT) as file:
            file.sync()
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            cold = Slice(file, 0, len(CONTENT), near_end=False)
            async with serving(lambda session, frame: [cold]) as listener, client_of(listener) as client:
                await client.send(framed(b"fetch"))
                assert await client.receive(len(CONTENT)) == CONTENT

    run(work)
