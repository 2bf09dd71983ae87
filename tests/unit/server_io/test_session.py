"""What a session does with frames and answers, step by step on a fake transport."""

import asyncio
import logging
import struct
from collections.abc import Callable

import pytest

from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.receiving import BASE_BYTES
from penstock.server.session import FRAMES_PER_TURN, CloseConnection, SessionLimits
from tests.unit.server_io.fakes import Connection, framed

Connect = Callable[..., Connection]


def answers(*bodies: bytes) -> bytes:
    return b"".join(framed(b"answer to " + body) for body in bodies)


def test_requests_of_one_wake_up_are_answered_in_one_write(connection: Connection) -> None:
    connection.receive(framed(b"a") + framed(b"b") + framed(b"c"))
    assert connection.transport.writes == [answers(b"a", b"b", b"c")]


def test_a_request_without_answer_is_passed_over(connection: Connection) -> None:
    connection.owner.answer = lambda body: None if body == b"b" else framed(body)
    connection.receive(framed(b"a") + framed(b"b") + framed(b"c"))
    assert connection.transport.written == framed(b"a") + framed(b"c")


def test_bytes_are_counted(connection: Connection) -> None:
    connection.receive(framed(b"a"))
    assert connection.owner.bytes_in.value == 5
    assert connection.owner.bytes_out.value == len(connection.transport.written)


def test_the_peer_is_shown_as_ipv4(connection: Connection) -> None:
    assert connection.session.peer == ("10.0.0.7", 4711)
    assert connection.session.listener_name == "PLAINTEXT"
    assert connection.session.principal == "User:ANONYMOUS"


async def test_answers_leave_in_the_order_of_the_requests(connection: Connection) -> None:
    futures: dict[bytes, asyncio.Future[bytes]] = {}

    def answer(body: bytes) -> Answer:
        if body.isupper():
            futures[body] = asyncio.get_running_loop().create_future()
            return futures[body]
        return framed(body)

    connection.owner.answer = answer
    connection.receive(b"".join(framed(body) for body in (b"a", b"B", b"c", b"D", b"e")))
    assert connection.transport.written == framed(b"a")
    futures[b"D"].set_result(framed(b"D"))
    await asyncio.sleep(0)
    assert connection.transport.written == framed(b"a")
    futures[b"B"].set_result(framed(b"B"))
    await asyncio.sleep(0)
    assert connection.transport.writes[1:] == [b"".join(framed(body) for body in (b"B", b"c", b"D", b"e"))]


async def test_a_later_answer_may_be_none(connection: Connection) -> None:
    future: asyncio.Future[bytes | None] = asyncio.get_running_loop().create_future()
    connection.owner.answer = lambda body: future if body == b"a" else framed(body)
    connection.receive(framed(b"a") + framed(b"b"))
    future.set_result(None)
    await asyncio.sleep(0)
    assert connection.transport.written == framed(b"b")


async def test_too_many_requests_in_flight_stop_reading_until_half_of_them_are_answered(connect: Connect) -> None:
    connection = connect(SessionLimits(in_flight_max=4))
    futures: list[asyncio.Future[bytes]] = []

    def answer(body: bytes) -> Answer:
        futures.append(asyncio.get_running_loop().create_future())
        return futures[-1]

    connection.owner.answer = answer
    connection.receive(b"".join(framed(b"%d" % number) for number in range(10)))
    assert len(connection.owner.frames) == 4
    assert not connection.transport.reading
    for future in futures[:1]:
        future.set_result(b"x")
    await asyncio.sleep(0)
    connection.tasks.run_soon()
    assert len(connection.owner.frames) == 4
    futures[1].set_result(b"y")
    await asyncio.sleep(0)
    connection.tasks.run_soon()
    assert len(connection.owner.frames) == 6
    for future in futures[2:]:
        future.set_result(b"z")
    for _ in range(5):
        await asyncio.sleep(0)
        connection.tasks.run_soon()
        for future in futures:
            if not future.done():
                future.set_result(b"z")
    assert len(connection.owner.frames) == 10
    assert connection.transport.reading
    assert connection.transport.written == b"xy" + b"z" * 8


def test_a_client_that_takes_nothing_is_read_no_further_and_memory_stays_bounded(connect: Connect) -> None:
    connection = connect(SessionLimits(unsent_bytes_max=100_000))
    connection.owner.answer = lambda body: bytes(10_000)
    connection.transport.room = 0
    requests = framed(b"metadata") * 200
    connection.receive(requests)
    assert not connection.transport.reading
    assert connection.session.output.held_bytes <= 100_000 + 10_000
    assert len(connection.owner.frames) < 20
    for _ in range(1000):
        if len(connection.owner.frames) == 200 and connection.session.output.idle():
            break
        connection.transport.take(7_777)
        connection.tasks.run_soon()
    assert len(connection.owner.frames) == 200
    assert len(connection.transport.written) == 200 * 10_000
    assert connection.transport.reading


def test_one_connection_does_not_take_the_whole_turn(connection: Connection) -> None:
    connection.receive(framed(b"") * 0 + framed(b"r") * (FRAMES_PER_TURN + 10))
    assert len(connection.owner.frames) == FRAMES_PER_TURN
    assert not connection.transport.reading
    connection.tasks.run_soon()
    assert len(connection.owner.frames) == FRAMES_PER_TURN + 10
    assert connection.transport.reading


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, 1001, -(2**31)])
def test_a_bad_size_closes_after_the_answers_before_it(
    connect: Connect, caplog: pytest.LogCaptureFixture, size: int
) -> None:
    connection = connect(SessionLimits(request_bytes_max=1000))
    connection.receive(framed(b"good") + struct.pack(">i", size) + b"whatever")
    assert connection.transport.written == answers(b"good")
    assert connection.transport.closing
    assert connection.session._buffer.capacity == BASE_BYTES
    [record] = caplog.records
    assert f"size {size}" in record.getMessage()
    assert vars(record)["client"] == "10.0.0.7:4711"


def test_a_large_claim_alone_takes_no_memory_of_its_size(connection: Connection) -> None:
    connection.receive(struct.pack(">i", 104_857_600))
    assert connection.session._buffer.capacity <= 4 * 1024 * 1024
    assert connection.transport.reading


def test_dispatch_may_close_the_connection(connection: Connection, caplog: pytest.LogCaptureFixture) -> None:
    def answer(body: bytes) -> Answer:
        raise CloseConnection("API key 99 is not served")

    connection.owner.answer = answer
    connection.receive(framed(b"a") + framed(b"b"))
    assert connection.transport.closing
    assert len(connection.owner.frames) == 1
    assert [record.getMessage() for record in caplog.records] == ["connection closed: API key 99 is not served"]


async def test_a_last_answer_is_sent_before_closing(connection: Connection) -> None:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    def answer(body: bytes) -> Answer:
        if body == b"a":
            return future
        raise CloseConnection("authentication failed", last_answer=b"no!")

    connection.owner.answer = answer
    connection.receive(framed(b"a") + framed(b"b") + framed(b"c"))
    assert not connection.transport.closing
    future.set_result(b"yes")
    await asyncio.sleep(0)
    assert connection.transport.written == b"yesno!"
    assert connection.transport.closing
    assert connection.owner.frames == [b"a", b"b"]


def test_an_unexpected_failure_closes_with_one_line_and_traceback(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    def answer(body: bytes) -> Answer:
        if body == b"a":
            return framed(b"fine")
        raise ZeroDivisionError("a bug")

    connection.owner.answer = answer
    connection.receive(framed(b"a") + framed(b"b"))
    assert connection.transport.written == framed(b"fine")
    assert connection.transport.closing
    [record] = caplog.records
    assert record.exc_info is not None
    assert vars(record)["client"] == "10.0.0.7:4711"


async def test_a_failed_future_closes_with_one_line_and_traceback(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection.owner.answer = lambda body: future
    connection.receive(framed(b"a"))
    future.set_exception(ZeroDivisionError("a bug"))
    await asyncio.sleep(0)
    assert connection.transport.closing
    [record] = caplog.records
    assert record.exc_info is not None


async def test_a_failed_task_has_been_reported_by_itself(
    connection: Connection, caplog: pytest.LogCaptureFixture
) -> None:
    async def work() -> bytes:
        raise ZeroDivisionError("a bug")

    connection.owner.answer = lambda body: work()
    connection.receive(framed(b"a"))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert connection.transport.closing
    [record] = caplog.records
    assert record.exc_info is None
    assert "ZeroDivisionError" in record.getMessage()


async def test_a_cancelled_answer_closes(connection: Connection) -> None:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection.owner.answer = lambda body: future
    connection.receive(framed(b"a"))
    future.cancel()
    await asyncio.sleep(0)
    assert connection.transport.closing


def test_a_handler_may_close_its_own_session(connection: Connection) -> None:
    def answer(body: bytes) -> Answer:
        connection.session.close("enough", level=logging.INFO)
        return framed(b"never sent")

    connection.owner.answer = answer
    connection.receive(framed(b"a") + framed(b"b"))
    assert connection.owner.frames == [b"a"]
    assert connection.transport.written == b""


def test_close_callbacks_run_once_and_may_be_taken_back(connection: Connection) -> None:
    calls: list[str] = []

    def kept() -> None:
        calls.append("kept")

    def removed() -> None:
        calls.append("removed")

    def failing() -> None:
        raise ZeroDivisionError

    connection.session.add_close_callback(failing)
    connection.session.add_close_callback(kept)
    connection.session.add_close_callback(removed)
    connection.session.remove_close_callback(removed)
    connection.session.connection_lost(None)
    connection.session.close("again")
    assert calls == ["kept"]
    assert connection.owner.forgotten == [connection.session]
    connection.session.add_close_callback(kept)
    assert calls == ["kept", "kept"]


def test_a_refused_session_is_cut_off(connect: Connect) -> None:
    connection = connect(admitted=False)
    assert connection.transport.aborted
    assert connection.session.closed


def test_end_of_input_closes_when_nothing_is_unsent(connection: Connection) -> None:
    connection.receive(framed(b"a"))
    assert not connection.session.eof_received()
    assert connection.session.closed


def test_end_of_input_with_answers_unsent_sends_them_first(connection: Connection) -> None:
    connection.transport.room = 3
    connection.receive(framed(b"a") + framed(b"b"))
    connection.receive(framed(b"c"))
    assert connection.session.eof_received()
    assert not connection.transport.closing
    connection.transport.take()
    assert connection.transport.written == answers(b"a", b"b", b"c")
    assert connection.transport.closing


async def test_end_of_input_does_not_wait_for_a_parked_answer(connection: Connection) -> None:
    connection.owner.answer = lambda body: asyncio.get_running_loop().create_future()
    connection.receive(framed(b"fetch"))
    assert not connection.session.eof_received()
    assert connection.session.closed


async def test_finish_answers_what_is_in_flight(connection: Connection) -> None:
    future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    connection.owner.answer = lambda body: future
    connection.receive(framed(b"a"))
    connection.session.finish("the broker stops")
    assert not connection.transport.reading
    assert not connection.transport.closing
    future.set_result(b"done")
    await asyncio.sleep(0)
    assert connection.transport.written == b"done"
    assert connection.transport.closing


def test_progress_counts_what_the_client_takes(connection: Connection) -> None:
    connection.transport.room = 3
    connection.receive(framed(b"a"))
    stuck = connection.session.progress()
    assert connection.session.progress() == stuck
    connection.transport.take(2)
    assert connection.session.progress() == (stuck or 0) + 2


async def test_no_progress_is_expected_while_the_client_waits(connection: Connection) -> None:
    connection.owner.answer = lambda body: asyncio.get_running_loop().create_future()
    connection.receive(framed(b"a"))
    assert connection.session.progress() is None


def test_large_frames_wait_for_memory_while_small_ones_go_on(connect: Connect) -> None:
    budget = MemoryBudget(300_000)
    first, second, third = (connect(budget=budget) for _ in range(3))
    large = framed(bytes(300_000))
    first.receive(large[:1000])
    second.receive(large[:1000])
    assert first.transport.reading
    assert not second.transport.reading
    assert second.session.progress() is None
    third.receive(framed(b"small"))
    assert third.transport.written == answers(b"small")
    first.receive(large[1000:])
    assert len(first.owner.frames) == 1
    assert first.session._buffer.capacity == BASE_BYTES, "given back at once while others wait"
    second.tasks.run_soon()
    assert second.transport.reading
    second.receive(large[1000:])
    assert second.owner.frames == [bytes(300_000)]
    assert budget.used == 0


def test_who_leaves_while_waiting_for_memory_takes_none(connect: Connect) -> None:
    budget = MemoryBudget(300_000)
    first, second = (connect(budget=budget) for _ in range(2))
    first.receive(framed(bytes(300_000))[:1000])
    second.receive(framed(bytes(300_000))[:1000])
    assert budget.waiting == 1
    second.session.connection_lost(None)
    assert budget.waiting == 0
    first.session.connection_lost(ConnectionResetError())
    assert budget.used == 0


def test_a_bulk_producer_keeps_its_buffer_and_gives_it_back_later(connection: Connection) -> None:
    request = framed(bytes(1_000_000))
    for _ in range(3):
        connection.receive(request)
        connection.tasks.run_soon()
    kept = connection.session._buffer.view
    connection.receive(request)
    assert connection.session._buffer.view is kept
    connection.session.give_back_memory()
    assert connection.session._buffer.view is kept
    connection.receive(framed(b"small"))
    connection.session.give_back_memory()
    assert connection.session._buffer.capacity == BASE_BYTES
    assert connection.owner.budget.used == 0
