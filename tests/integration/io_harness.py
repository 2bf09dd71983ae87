"""A listener with real sockets on either event loop, and clients that read and write raw bytes."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

import uvloop

from penstock.base.metrics import Metrics
from penstock.base.system import SystemClock, SystemFile, SystemNetwork, SystemTasks
from penstock.server.connection_quotas import ConnectionQuotas
from penstock.server.listener import Listener
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.residency import Residency
from penstock.server.session import Session, SessionLimits

T = TypeVar("T")

LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "uvloop": uvloop.new_event_loop,
    "asyncio": asyncio.new_event_loop,
}


def run_on(loop_name: str, work: Callable[[], Awaitable[T]], *, timeout: float = 30) -> T:
    async def bounded() -> T:
        async with asyncio.timeout(timeout):
            return await work()

    with asyncio.Runner(loop_factory=LOOPS[loop_name]) as runner:
        return runner.run(bounded())


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


@asynccontextmanager
async def serving(
    dispatch: Callable[[Session, bytes], Answer],
    *,
    limits: SessionLimits | None = None,
    quotas: ConnectionQuotas | None = None,
    budget: MemoryBudget | None = None,
    residency: Residency | None = None,
) -> AsyncIterator[Listener]:
    """`dispatch` gets a copy of each frame. At the end no descriptor may be left over."""
    loop = asyncio.get_running_loop()
    tasks = SystemTasks(loop, threads=4)
    listener = Listener(
        "PLAINTEXT",
        "127.0.0.1",
        0,
        dispatch=lambda session, frame: dispatch(session, bytes(frame)),
        network=SystemNetwork(loop),
        tasks=tasks,
        clock=SystemClock(),
        metrics=Metrics(),
        limits=limits or SessionLimits(),
        quotas=quotas or ConnectionQuotas(),
        budget=budget or MemoryBudget(),
        residency=residency,
    )
    await listener.start()
    try:
        yield listener
    finally:
        await listener.close(grace_seconds=0.5)
        await tasks.close()
        assert listener.budget.used == 0


class Client:
    """A raw connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._loop = asyncio.get_running_loop()

    async def send(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.socket, data)

    async def receive(self, size: int) -> bytes:
        """Exactly `size` bytes; fewer only when the broker closed."""
        parts: list[bytes] = []
        while size:
            part = await self._loop.sock_recv(self.socket, min(size, 1 << 20))
            if not part:
                break
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    async def receive_frame(self) -> bytes:
        (size,) = struct.unpack(">i", await self.receive(4))
        return await self.receive(size)

    async def closed_by_broker(self) -> bool:
        try:
            while await self._loop.sock_recv(self.socket, 1 << 20):
                pass
        except ConnectionResetError:
            pass
        return True

    def close(self) -> None:
        self.socket.close()

    def reset(self) -> None:
        """Leave as a killed process does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


@asynccontextmanager
async def client_of(listener: Listener, *, receive_buffer_bytes: int = 0) -> AsyncIterator[Client]:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setblocking(False)
    if receive_buffer_bytes:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
    try:
        await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", listener.port))
        yield Client(sock)
    finally:
        sock.close()


class Slice:
    """A slice of a real file that counts its releases."""

    def __init__(self, file: Any, position: int, length: int, *, near_end: bool = True) -> None:
        self.file = file
        self.position = position
        self.length = length
        self.near_end = near_end
        self.valid = True
        self.releases = 0

    def release(self) -> None:
        self.releases += 1


class CopiedFile:
    """A file that hides its descriptor, as one on a simulated disk."""

    def __init__(self, file: SystemFile) -> None:
        self._file = file

    def fileno(self) -> int:
        return -1

    def read_at(self, position: int, length: int) -> bytes:
        return self._file.read_at(position, length)


@contextmanager
def file_of(path: Path, content: bytes) -> Iterator[SystemFile]:
    file = SystemFile(str(path), os.O_RDWR | os.O_CREAT | os.O_APPEND)
    file.append(content)
    try:
        yield file
    finally:
        file.close()


def open_sockets() -> int:
    found = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
    return found


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another party on the loop will make true."""
    while not condition():  # noqa: ASYNC110 - there is no event to wait for
        await asyncio.sleep(0.005)
