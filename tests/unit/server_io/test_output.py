"""Answers with file slices, on a transport without a socket: the way that TLS and simulations take."""

import asyncio
from collections.abc import Callable
from random import Random

import pytest

from penstock.server.output import CHUNK_BYTES, COPY_BYTES, Answer, Parts
from penstock.server.session import SessionLimits
from tests.unit.server_io.fakes import Connection, FakeSlice, framed, make_slice

LARGE = COPY_BYTES + 1


def test_small_slices_are_gathered_into_one_write(connection: Connection) -> None:
    slices = [make_slice(b"one"), make_slice(b"xxtwoxx", 2, 3)]
    connection.owner.answer = lambda body: [b"<", slices[0], b"|", slices[1], b">"]
    connection.receive(framed(b"fetch"))
    assert connection.transport.writes == [b"<one|two>"]
    assert [part.releases for part in slices] == [1, 1]


def test_a_large_slice_leaves_in_chunks_and_turns(connection: Connection) -> None:
    content = Random(1).randbytes(5 * CHUNK_BYTES + 17)
    part = make_slice(content)
    connection.owner.answer = lambda body: [b"head", part, b"tail"]
    connection.receive(framed(b"fetch"))
    assert connection.transport.written == b"head" + content[: 2 * CHUNK_BYTES], "others get their turn"
    connection.receive(framed(b"next"))
    while connection.tasks.soon:
        connection.tasks.run_soon()
    assert connection.transport.written == (b"head" + content + b"tail") * 1 + b"head" + content + b"tail"
    assert part.releases == 2, "sent twice"


def test_answers_with_slices_keep_the_order(connection: Connection) -> None:
    part = make_slice(bytes(LARGE))
    connection.owner.answer = lambda body: [b"head", part] if body == b"fetch" else framed(body)
    connection.transport.room = 2
    connection.receive(framed(b"a") + framed(b"fetch") + framed(b"b"))
    connection.transport.take()
    assert connection.transport.written == framed(b"a") + b"head" + bytes(LARGE) + framed(b"b")
    assert part.releases == 1
    assert connection.session.output.held_bytes == 0


@pytest.mark.parametrize("length", [10, LARGE])
def test_a_truncated_slice_closes_the_connection(
    connection: Connection, caplog: pytest.LogCaptureFixture, length: int
) -> None:
    part = make_slice(bytes(length))
    connection.owner.answer = lambda body: [b"head", part, b"tail"]
    part.valid = False
    connection.receive(framed(b"fetch"))
    assert connection.transport.closing
    assert part.releases == 1
    [record] = caplog.records
    assert "truncated" in record.getMessage()


@pytest.mark.parametrize("length", [10, LARGE])
def test_a_short_file_closes_the_connection(connection: Connection, length: int) -> None:
    part = make_slice(bytes(length), 0, length + 1)
    connection.owner.answer = lambda body: [b"head", part, b"tail"]
    connection.receive(framed(b"fetch"))
    assert connection.transport.closing
    assert part.releases == 1


def test_a_slice_truncated_while_it_is_sent_closes_the_connection(connection: Connection) -> None:
    part = make_slice(bytes(3 * CHUNK_BYTES))
    connection.owner.answer = lambda body: [part]
    connection.transport.room = CHUNK_BYTES // 2
    connection.receive(framed(b"fetch"))
    part.valid = False
    connection.transport.take()
    assert connection.transport.closing
    assert part.releases == 1


def test_an_unexpected_failure_while_sending_closes_the_connection(
    connection: Connection, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read_at(position: int, length: int) -> bytes:
        raise ZeroDivisionError("a bug")

    part = make_slice(bytes(100))
    monkeypatch.setattr(part.file, "read_at", read_at)
    connection.owner.answer = lambda body: [part]
    connection.receive(framed(b"fetch"))
    assert part.releases == 1
    assert connection.transport.closing
    assert [record.exc_info is not None for record in caplog.records] == [True]


async def test_cold_ranges_are_loaded_in_a_worker_chunk_by_chunk(connection: Connection) -> None:
    content = Random(2).randbytes(2 * CHUNK_BYTES + 5)
    part = make_slice(content, near_end=False)
    connection.owner.answer = lambda body: [b"head", part]
    connection.receive(framed(b"fetch"))
    assert connection.transport.written == b"head"
    for _ in range(10):
        await asyncio.sleep(0)
        connection.tasks.run_soon()
        if connection.tasks.work:
            assert connection.session.progress() is None, "the client waits for the disk"
            connection.tasks.finish_work()
    assert connection.owner.residency.loads == [(0, CHUNK_BYTES), (CHUNK_BYTES, CHUNK_BYTES), (2 * CHUNK_BYTES, 5)]
    assert connection.transport.written == b"head" + content
    assert part.releases == 1


async def test_what_is_resident_is_sent_before_the_cold_rest_is_loaded(connection: Connection) -> None:
    part = make_slice(bytes(CHUNK_BYTES), near_end=False)
    connection.owner.residency.resident = 2 * COPY_BYTES
    connection.owner.answer = lambda body: [part]
    connection.receive(framed(b"fetch"))
    assert len(connection.transport.written) == 2 * COPY_BYTES
    await asyncio.sleep(0)
    connection.tasks.finish_work()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert len(connection.transport.written) == CHUNK_BYTES


@pytest.mark.parametrize("length", [10, LARGE])
async def test_a_slice_is_kept_while_a_worker_reads_from_it(connection: Connection, length: int) -> None:
    cold = make_slice(bytes(length), near_end=False)
    after = make_slice(b"after")
    connection.owner.answer = lambda body: [b"head", cold, after]
    connection.receive(framed(b"fetch"))
    await asyncio.sleep(0)
    connection.session.connection_lost(None)
    assert cold.releases == 0
    assert after.releases == 1
    connection.tasks.finish_work()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert cold.releases == 1


async def test_a_failing_disk_closes_the_connection(connection: Connection) -> None:
    cold = make_slice(bytes(LARGE), near_end=False)
    connection.owner.answer = lambda body: [cold]
    connection.receive(framed(b"fetch"))
    await asyncio.sleep(0)
    _, done = connection.tasks.work.pop()
    done.set_exception(OSError(5, "Input/output error"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection.transport.closing
    assert cold.releases == 1


async def test_every_slice_is_released_once_when_the_connection_ends(connection: Connection) -> None:
    made: list[FakeSlice] = []
    futures: list[asyncio.Future[Parts]] = []

    def answer(body: bytes) -> Answer:
        parts: Parts = [b"head", new_slice(), b"middle", new_slice()]
        if body == b"now":
            return parts
        future: asyncio.Future[Parts] = asyncio.get_running_loop().create_future()
        futures.append(future)
        if body == b"done":
            future.set_result(parts)
        else:
            asyncio.get_running_loop().call_later(0, future.set_result, parts)
        return future

    def new_slice() -> FakeSlice:
        made.append(make_slice(bytes(LARGE)))
        return made[-1]

    connection.owner.answer = answer
    connection.transport.room = LARGE + 100
    connection.receive(framed(b"now") + framed(b"done") + framed(b"later") + framed(b"now"))
    await asyncio.sleep(0)
    connection.session.close("test")
    await asyncio.sleep(0.01)
    assert [part.releases for part in made] == [1] * 8


def test_an_answer_given_to_a_closed_session_is_released(connection: Connection) -> None:
    part = make_slice(b"records")

    def answer(body: bytes) -> Answer:
        connection.session.close("enough")
        return [b"head", part]

    connection.owner.answer = answer
    connection.receive(framed(b"fetch"))
    assert part.releases == 1
    assert not connection.session.output.queue


@pytest.mark.parametrize("seed", range(20))
async def test_any_mix_of_answers_arrives_whole_and_in_order(connect: Callable[..., Connection], seed: int) -> None:
    random = Random(seed)
    connection = connect(SessionLimits(in_flight_max=random.choice([1, 2, 7, 64]), unsent_bytes_max=200_000))
    expected: list[bytes] = []
    made: list[FakeSlice] = []
    late: list[tuple[asyncio.Future[Parts], Parts]] = []

    def answer(body: bytes) -> Answer:
        parts: Parts = []
        whole = b""
        plain = random.random() < 0.3
        for _ in range(random.randrange(1, 5)):
            content = random.randbytes(random.choice([1, 100, COPY_BYTES, LARGE, 3 * CHUNK_BYTES // 2]))
            whole += content
            if plain or (random.random() < 0.5 and len(content) < CHUNK_BYTES):
                parts.append(content)
            else:
                made.append(make_slice(content, near_end=random.random() < 0.5))
                parts.append(made[-1])
        expected.append(whole)
        if plain:
            return whole
        if random.random() < 0.5:
            return parts
        late.append((asyncio.get_running_loop().create_future(), parts))
        return late[-1][0]

    connection.owner.answer = answer
    stream = b"".join(framed(b"%d" % number) for number in range(30))
    position = 0
    while len(expected) < 30 or late or not connection.session.output.idle():
        position += connection.receive(stream[position : position + random.randrange(1, 60)])
        connection.transport.take(random.choice([1000, 100_000, 10_000_000]))
        if late and random.random() < 0.5:
            future, parts = late.pop(random.randrange(len(late)))
            future.set_result(parts)
        await asyncio.sleep(0)
        connection.tasks.run_soon()
        if connection.tasks.work:
            connection.tasks.finish_work()
            connection.owner.residency.resident = random.choice([0, 1 << 30])
    assert connection.transport.written == b"".join(expected)
    assert {part.releases for part in made} <= {1}
    assert connection.session.output.held_bytes == 0
    assert connection.transport.reading
