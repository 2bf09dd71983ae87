"""A session on a transport, loop and disk made of lists, so that every step is taken by the test."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Coroutine
from typing import Any

from penstock.base.metrics import Counter
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.session import Session, SessionLimits


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class FakeTransport:
    """Takes `room` bytes, keeps the rest in its buffer, and pauses its protocol as the real ones do."""

    def __init__(self) -> None:
        self.protocol: Session | None = None
        self.room = 1 << 60
        self.writes: list[bytes] = []
        self.buffered = b""
        self.reading = True
        self.closing = False
        self.aborted = False

    @property
    def written(self) -> bytes:
        return b"".join(self.writes)

    def set_write_buffer_limits(self, high: int) -> None:
        assert high == 0

    def get_extra_info(self, name: str, default: object = None) -> object:
        return ("::ffff:10.0.0.7", 4711) if name == "peername" else default

    def get_write_buffer_size(self) -> int:
        return len(self.buffered)

    def write(self, data: bytes) -> None:
        assert not self.closing, "write after close"
        assert not self.buffered, "write while the transport is paused"
        taken, self.buffered = data[: self.room], data[self.room :]
        self.room -= len(taken)
        self.writes.append(taken)
        if self.buffered:
            assert self.protocol is not None
            self.protocol.pause_writing()

    def take(self, size: int = 1 << 60) -> None:
        """The client reads: the transport has room again."""
        assert self.protocol is not None
        self.room = size
        taken, self.buffered = self.buffered[:size], self.buffered[size:]
        self.room -= len(taken)
        self.writes.append(taken)
        if taken and not self.buffered:
            self.protocol.resume_writing()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True

    def close(self) -> None:
        self.closing = True

    def abort(self) -> None:
        self.closing = self.aborted = True


class FakeTasks:
    """Callbacks and blocking work wait here until the test runs them."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], None]] = []
        self.timers: list[tuple[float, Callable[[], None]]] = []
        self.work: list[tuple[Callable[[], Any], asyncio.Future[Any]]] = []

    def call_soon(self, callback: Callable[[], None]) -> None:
        self.soon.append(callback)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Any:
        self.timers.append((seconds, callback))
        return FakeTimer()

    def future(self) -> asyncio.Future[Any]:
        return asyncio.get_running_loop().create_future()

    def spawn(self, work: Coroutine[Any, Any, Any], *, name: str) -> asyncio.Task[Any]:
        return asyncio.get_running_loop().create_task(work)

    def run_blocking(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        done = self.future()
        self.work.append((work, done))
        return done

    def run_soon(self) -> None:
        while self.soon:
            self.soon.pop(0)()

    def finish_work(self) -> None:
        work, done = self.work.pop(0)
        done.set_result(work())


class FakeTimer:
    def cancel(self) -> None:
        return


class FakeFile:
    """A file without a descriptor, as a simulated disk has."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def fileno(self) -> int:
        return -1

    def read_at(self, position: int, length: int) -> bytes:
        return self.content[position : position + length]


class FakeSlice:
    def __init__(self, file: FakeFile, position: int, length: int, *, near_end: bool = True) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.near_end = near_end
        self.valid = True
        self.releases = 0

    def release(self) -> None:
        self.releases += 1


class FakeResidency:
    """Everything is cold until a worker has loaded it."""

    def __init__(self) -> None:
        self.resident = 0
        self.loads: list[tuple[int, int]] = []

    def resident_length(self, file: object, position: int, length: int) -> int:
        return max(0, min(length, self.resident - position))

    def load(self, file: object, position: int, length: int) -> None:
        self.loads.append((position, length))
        self.resident = position + length


class FakeOwner:
    def __init__(self, limits: SessionLimits, budget: MemoryBudget) -> None:
        self.name = "PLAINTEXT"
        self.limits = limits
        self.tasks = FakeTasks()
        self.budget = budget
        self.residency = FakeResidency()
        self.bytes_in = Counter()
        self.bytes_out = Counter()
        self.admits = True
        self.forgotten: list[Session] = []
        self.frames: list[bytes] = []
        self.answer: Callable[[bytes], Answer] = lambda body: framed(b"answer to " + body)

    def dispatch(self, session: Session, frame: memoryview) -> Answer:
        assert not frame.readonly
        self.frames.append(bytes(frame))
        return self.answer(self.frames[-1])

    def admit(self, session: Session) -> bool:
        return self.admits

    def forget(self, session: Session) -> None:
        self.forgotten.append(session)


class Connection:
    """A session, and both of its ends."""

    def __init__(
        self, limits: SessionLimits | None = None, budget: MemoryBudget | None = None, *, admitted: bool = True
    ) -> None:
        self.owner = FakeOwner(limits or SessionLimits(), budget or MemoryBudget())
        self.owner.admits = admitted
        self.tasks = self.owner.tasks
        self.transport = FakeTransport()
        self.session = Session(self.owner)
        self.transport.protocol = self.session
        self.session.connection_made(self.transport)  # type: ignore[arg-type]

    def receive(self, data: bytes) -> int:
        """Give the session bytes as a loop would, while it reads; how many it took."""
        taken = 0
        while taken < len(data) and self.transport.reading and not self.session.closed:
            space = self.session.get_buffer(65536)
            assert len(space), "an empty buffer stops a real transport"
            part = data[taken : taken + len(space)]
            space[: len(part)] = part
            self.session.buffer_updated(len(part))
            taken += len(part)
        return taken


def make_slice(content: bytes, position: int = 0, length: int | None = None, *, near_end: bool = True) -> FakeSlice:
    return FakeSlice(
        FakeFile(content), position, len(content) - position if length is None else length, near_end=near_end
    )
