"""Ports to the world: everything a broker does not compute by itself arrives through one of these.

`penstock.base.system` has the real ones. A simulation gives the same code a virtual clock, network and disk, so
no class below the composition root may reach for `time`, `os`, `random`, `socket` or a thread by itself.

Random numbers come as a plain `random.Random`, which is a port already: seed it and it repeats.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


class Clock(Protocol):
    def time_ms(self) -> int:
        """Wall-clock milliseconds since the epoch: for timestamps that people and records see."""

    def monotonic(self) -> float:
        """Seconds that never go back: for deadlines and durations."""


class File(Protocol):
    """One open file. Every call may raise OSError; positions and sizes are bytes."""

    path: str

    def fileno(self) -> int:
        """The descriptor for sendfile, or -1 when the file is not a real one (then `read_at` is used)."""

    def size(self) -> int: ...

    def append(self, data: Buffer) -> None:
        """Write all of `data` at the end."""

    def read_at(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def truncate(self, size: int) -> None: ...

    def sync(self) -> None:
        """Make the content durable. Blocks: call it in a worker."""

    def close(self) -> None: ...


class MappedFile(Protocol):
    """A file mapped into memory, for the indexes. `view` is writable and `size` bytes long."""

    path: str
    view: memoryview

    def resize(self, size: int) -> None:
        """Change the size of the file and of `view`; earlier slices of `view` must have been released."""

    def reserve(self, position: int, length: int) -> None:
        """Make sure that the range has space on the disk: OSError now, instead of a dead process at the store."""

    def sync(self) -> None: ...

    def close(self) -> None: ...


class FileLock(Protocol):
    def release(self) -> None: ...


class Files(Protocol):
    """A file system. Paths are strings; a missing file is FileNotFoundError."""

    def open(self, path: str, *, create: bool = True) -> File: ...

    def map(self, path: str, *, size: int | None = None) -> MappedFile:
        """Map a file; `size` creates it or changes its size first, None takes it as it is."""

    def exists(self, path: str) -> bool: ...

    def is_directory(self, path: str) -> bool: ...

    def size(self, path: str) -> int: ...

    def modified_ms(self, path: str) -> int: ...

    def list_directory(self, path: str) -> list[str]:
        """Names, sorted."""

    def make_directory(self, path: str) -> None:
        """With parents; no error when it is there."""

    def read(self, path: str) -> bytes: ...

    def write_atomically(self, path: str, data: bytes) -> None:
        """Write `path + ".tmp"`, sync it, rename it over `path`, sync the directory."""

    def rename(self, source: str, target: str) -> None:
        """Atomic; replaces the target."""

    def sync_directory(self, path: str) -> None: ...

    def sync_file_system(self, path: str) -> bool:
        """Make everything durable that was written to the file system of `path`; False where that cannot be done."""

    def space(self, path: str) -> tuple[int, int]:
        """Bytes of the file system that holds `path`: all of them, and those that can still be written."""

    def remove(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def lock(self, path: str) -> FileLock:
        """Take an exclusive lock that dies with the process; BlockingIOError when another one holds it."""


class Timer(Protocol):
    def cancel(self) -> None: ...


class Tasks(Protocol):
    """Concurrency: one loop that runs everything, and worker threads for what would block it."""

    def call_soon(self, callback: Callable[[], None]) -> None: ...

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer: ...

    def future(self) -> asyncio.Future[Any]: ...

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        """Start a task that is kept alive, and whose unexpected failure is logged."""

    def run_blocking(self, work: Callable[[], T]) -> Awaitable[T]:
        """Run in a worker thread. Such work must touch no state that the loop changes."""


class Server(Protocol):
    """A listening socket."""

    host: str
    port: int

    async def serve(self) -> None:
        """Start to accept; until then connections wait in the backlog."""

    async def close(self) -> None: ...


class Network(Protocol):
    async def listen(
        self, host: str, port: int, protocol_factory: Callable[[], asyncio.BaseProtocol], *, backlog: int
    ) -> Server:
        """Bind an address. OSError when it is taken; port 0 chooses a free one."""

    async def connect(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        *,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """With `tls` the protocol is connected when TLS is agreed and `host` is proven, as the context demands.

        OSError, of which ssl.SSLError is one, when nothing came about.
        """


class World(Protocol):
    """All ports together, for composition roots."""

    @property
    def clock(self) -> Clock: ...

    @property
    def files(self) -> Files: ...

    @property
    def tasks(self) -> Tasks: ...

    @property
    def network(self) -> Network: ...


__all__: Sequence[str] = (
    "Buffer",
    "Clock",
    "File",
    "FileLock",
    "Files",
    "MappedFile",
    "Network",
    "Server",
    "Tasks",
    "Timer",
    "World",
)
