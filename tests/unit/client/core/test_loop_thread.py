"""The thread of the blocking clients: results, callbacks in the caller's thread, interrupts, forks, closing."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Iterator
from typing import Any

import pytest

from penstock.client.core.calling import call_user
from penstock.client.core.face import BlockingFace, documented_by
from penstock.client.core.loop_thread import LoopThread, _close
from penstock.client.errors import ClientClosed, ForkedClient, InvalidState, KafkaTimeout


@pytest.fixture
def thread() -> Iterator[LoopThread]:
    thread = LoopThread("test-loop")
    yield thread
    thread.close()


async def value(result: Any) -> Any:
    await asyncio.sleep(0)
    return result


async def for_ever(started: threading.Event | None = None, ended: threading.Event | None = None) -> None:
    if started is not None:
        started.set()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        if ended is not None:
            ended.set()


def test_results_and_errors_come_back(thread: LoopThread) -> None:
    assert thread.run(value(5)) == 5

    async def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError):
        thread.run(fail())


def test_many_threads_at_once(thread: LoopThread) -> None:
    results: list[int] = []
    workers = [threading.Thread(target=lambda n=n: results.append(thread.run(value(n)))) for n in range(20)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(10)
    assert sorted(results) == list(range(20))


def test_user_functions_run_in_the_thread_that_waits_and_may_call_again(thread: LoopThread) -> None:
    def callback(number: int) -> tuple[int, int]:
        return threading.get_ident(), thread.run(value(number + 1))

    async def work() -> Any:
        return threading.get_ident(), await call_user(callback, 1)

    loop_ident, (callback_ident, number) = thread.run(work())
    assert callback_ident == threading.get_ident() != loop_ident
    assert number == 2


def test_errors_of_user_functions_reach_whoever_called_them(thread: LoopThread) -> None:
    def callback() -> None:
        raise ValueError("mine")

    def stop() -> None:
        raise StopIteration

    async def work() -> str:
        with pytest.raises(ValueError, match="mine"):
            await call_user(callback)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await call_user(stop)
        return "went on"

    assert thread.run(work()) == "went on"


def test_a_coroutine_function_of_the_user_runs_on_the_loop(thread: LoopThread) -> None:
    async def callback() -> int:
        return threading.get_ident()

    async def work() -> bool:
        return await call_user(callback) == await call_user(lambda: callback()) == threading.get_ident()

    assert thread.run(work())


async def test_without_a_waiting_thread_a_user_function_runs_here() -> None:
    assert await call_user(threading.get_ident) == threading.get_ident()


def test_a_task_that_outlives_its_caller_calls_on_the_loop(thread: LoopThread) -> None:
    go = asyncio.Event()
    done: list[int] = []
    finished = threading.Event()

    async def later() -> None:
        await go.wait()
        done.append(await call_user(threading.get_ident))
        finished.set()

    tasks = []

    async def work() -> None:
        tasks.append(asyncio.get_running_loop().create_task(later()))

    thread.run(work())
    thread.call_soon(go.set)
    assert finished.wait(10)
    assert done[0] != threading.get_ident()


def test_a_time_out_cancels_the_work(thread: LoopThread) -> None:
    ended = threading.Event()
    with pytest.raises(KafkaTimeout):
        thread.run(for_ever(ended=ended), timeout_s=0.05)
    assert ended.is_set()


def test_an_interrupt_cancels_the_work_and_is_raised(thread: LoopThread) -> None:
    started, ended = threading.Event(), threading.Event()

    def interrupt() -> None:
        started.wait(10)
        os.kill(os.getpid(), signal.SIGINT)

    killer = threading.Thread(target=interrupt)
    killer.start()
    with pytest.raises(KeyboardInterrupt):
        thread.run(for_ever(started, ended))
    killer.join()
    assert ended.is_set()
    assert thread.run(value(1)) == 1


def test_an_interrupt_inside_a_user_function(thread: LoopThread) -> None:
    def callback() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        thread.run(call_user(callback))
    assert thread.run(value(1)) == 1


def test_a_task_dies_in_the_loops_thread(thread: LoopThread) -> None:
    """In the waiting one an interrupt could hit asyncio's bookkeeping of dead tasks, and be lost."""
    graves: list[int] = []

    async def work(fails: bool) -> None:
        weakref.finalize(asyncio.current_task(), lambda: graves.append(threading.get_ident()))
        if fails:
            raise ZeroDivisionError

    async def nothing() -> None:
        pass

    for number in range(200):
        if number % 2:
            with pytest.raises(ZeroDivisionError):
                thread.run(work(True))
        else:
            thread.run(work(False))
    thread.run(nothing())
    gc.collect()
    assert len(graves) == 200
    assert threading.get_ident() not in graves


def test_a_blocking_call_on_the_loop_itself_is_refused(thread: LoopThread) -> None:
    async def work() -> None:
        thread.run(value(1))

    with pytest.raises(InvalidState, match="would wait for itself"):
        thread.run(work())


def test_closing_ends_those_who_wait(thread: LoopThread) -> None:
    started = threading.Event()
    errors: list[BaseException] = []

    def wait() -> None:
        try:
            thread.run(for_ever(started))
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test looks at it
            errors.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    started.wait(10)
    thread.close()
    thread.close()
    waiter.join(10)
    assert isinstance(errors[0], ClientClosed)
    with pytest.raises(ClientClosed):
        thread.run(value(1))
    thread.call_soon(lambda: None)


def test_a_forked_child_is_told_so(thread: LoopThread) -> None:
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        try:
            thread.run(value(1))
        except ForkedClient as error:
            os.write(writer, str(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader) as told:
        assert "make a new client in the child" in told.read()
    assert thread.run(value(1)) == 1


def test_the_interpreter_ends_with_an_open_client() -> None:
    code = (
        "import asyncio; from penstock.client.core.loop_thread import LoopThread\n"
        "t = LoopThread(); t.run(asyncio.sleep(0)); t.call_soon(lambda: asyncio.ensure_future(asyncio.sleep(1e6)))\n"
        "print('end')"
    )
    began = time.monotonic()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout == "end\n"
    assert time.monotonic() - began < 20


class Core:
    def __init__(self) -> None:
        self.closed = 0

    async def close(self) -> None:
        """Close it."""
        self.closed += 1

    async def double(self, number: int) -> int:
        """Twice the number."""
        return 2 * number


class Face(BlockingFace):
    def __init__(self) -> None:
        super().__init__(Core(), name="face-1")

    @documented_by(Core.double)
    def double(self, number: int) -> int:
        return self._run(self._core.double(number))


def test_a_face_is_a_context_manager_with_guards() -> None:
    with Face() as face:
        assert face.double(4) == 8
        assert Face.double.__doc__ == "Twice the number."
    assert face.is_closed
    assert face._core.closed == 1
    face.close()
    with pytest.raises(ClientClosed, match="face-1"):
        face.double(1)


def test_a_face_that_was_not_closed_warns_and_its_thread_ends() -> None:
    face = Face()
    worker = face._thread._thread
    faces = [face]
    del face
    with pytest.warns(ResourceWarning, match="face-1 was not closed"):
        faces.clear()
    gc.collect()
    worker.join(10)
    assert not worker.is_alive()


def test_a_forked_child_may_leave_the_block_of_its_parents_client() -> None:
    with Face() as face:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                face.close()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert face.double(2) == 4


def test_closing_while_many_threads_call_leaves_nobody_waiting() -> None:
    thread = LoopThread("test-race")
    begun = threading.Event()
    ended: list[str] = []

    def call() -> None:
        try:
            while True:
                thread.run(value(1))
                begun.set()
        except ClientClosed:
            ended.append("closed")

    callers = [threading.Thread(target=call, daemon=True) for _ in range(8)]
    for caller in callers:
        caller.start()
    assert begun.wait(10)
    thread.close()
    for caller in callers:
        caller.join(10)
    assert ended == ["closed"] * 8


def test_a_face_that_is_open_when_python_ends_can_still_use_its_thread() -> None:
    code = (
        "import asyncio\n"
        "from penstock.client.core.face import BlockingFace\n"
        "class Core:\n"
        "    async def close(self): await asyncio.sleep(0.01); print('closed')\n"
        "class Face(BlockingFace):\n"
        "    def _at_exit(self): self.close()\n"
        "class Failing(BlockingFace):\n"
        "    def _at_exit(self): raise ValueError('no')\n"
        "one, two, three = Failing(Core(), name='bad'), Face(Core(), name='good'), Face(Core(), name='done')\n"
        "three.close()\n"
        "print('end')"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert run.stdout == "closed\nend\nclosed\n"
    assert "bad could not be closed when Python ended" in run.stderr


def test_a_face_that_is_open_when_python_ends_can_still_look_up_hosts() -> None:
    """Without uvloop that is done by a thread pool, and those are closed before."""
    code = (
        "import asyncio, sys\n"
        "sys.modules['uvloop'] = None\n"
        "from penstock.client.core.face import BlockingFace\n"
        "class Core:\n"
        "    async def close(self): print(bool(await asyncio.get_running_loop().getaddrinfo('localhost', 1)))\n"
        "class Face(BlockingFace):\n"
        "    def _at_exit(self): self.close()\n"
        "face = Face(Core(), name='good')\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert (run.stdout, run.stderr) == ("True\n", "")


def test_closing_does_not_wait_for_a_loop_that_cannot_close_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    """As uvloop, while a host name is looked up."""
    may_close, closed = threading.Event(), threading.Event()

    class SlowLoop(asyncio.SelectorEventLoop):
        def close(self) -> None:
            may_close.wait(30)
            super().close()
            closed.set()

    monkeypatch.setattr("penstock.client.core.loop_thread.new_event_loop", SlowLoop)
    thread = LoopThread("test-slow")
    thread.close()
    assert not closed.is_set()
    may_close.set()
    assert closed.wait(10)


class RefusingLoop:
    """As uvloop with a socket that is still closing: it refuses to close, and counts as closed."""

    def __init__(self) -> None:
        self.closed = False

    def is_closed(self) -> bool:
        return self.closed

    def close(self) -> None:
        self.closed = True
        raise OSError(errno.EBUSY, "resource busy or locked")

    def run_until_complete(self, work: Any) -> None:
        work.close()
        if self.closed:
            raise RuntimeError("Event loop is closed")


def test_a_loop_that_refuses_to_close_is_left_to_its_end() -> None:
    loop: Any = RefusingLoop()
    _close(loop)
    assert loop.closed
