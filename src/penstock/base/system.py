"""The real world behind `penstock.base.ports`: the machine's clock, disk, threads and sockets."""

from __future__ import annotations

import asyncio
import ctypes
import errno
import fcntl
import logging
import mmap
import os
import shutil
import socket
import ssl
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from penstock.base.ports import Buffer, File, FileLock, MappedFile, Server, Timer

T = TypeVar("T")
log = logging.getLogger(__name__)

TLS_GOODBYE_S = 2.0
"""How long the end of a TLS connection may wait for the other side's own goodbye."""


class SystemClock:
    def time_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def monotonic(self) -> float:
        return time.monotonic()


class SystemFile:
    """An append-only file whose descriptor is open until `close`."""

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, flags: int) -> None:
        self.path = path
        self._fd = os.open(path, flags | os.O_CLOEXEC, 0o644)

    def fileno(self) -> int:
        return self._fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def append(self, data: Buffer) -> None:
        length = len(data)
        written = os.write(self._fd, data)
        if written == length:
            return
        rest = memoryview(data)[written:]
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def read_at(self, position: int, length: int) -> bytes:
        data = os.pread(self._fd, length, position)
        if len(data) == length or not data:
            return data
        return data + self.read_at(position + len(data), length - len(data))

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def sync(self) -> None:
        os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class SystemMappedFile:
    """Costs one descriptor, the duplicate that `mmap` keeps; what needs another opens the file for a moment."""

    __slots__ = ("_map", "path", "view")

    def __init__(self, path: str, size: int | None) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self.view = memoryview(b"")
        self._open(os.O_CREAT, size)

    def _open(self, flags: int, size: int | None) -> None:
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | flags, 0o644)
        try:
            if size is not None:
                os.ftruncate(fd, size)
            actual_size = os.fstat(fd).st_size
            # An empty file cannot be mapped; an empty view stands for it.
            self._map = mmap.mmap(fd, actual_size) if actual_size else None
        finally:
            os.close(fd)
        self.view = memoryview(self._map) if self._map is not None else memoryview(bytearray())

    def _unmap(self) -> None:
        self.view.release()
        if self._map is not None:
            self._map.close()
            self._map = None

    def resize(self, size: int) -> None:
        self._unmap()
        self._open(0, size)

    def reserve(self, position: int, length: int) -> None:
        if not hasattr(os, "posix_fallocate"):
            return
        fd = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.posix_fallocate(fd, position, length)
        except OSError as error:
            # A file system that cannot reserve space writes where it finds some.
            if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL, errno.ENODEV):
                raise
        finally:
            os.close(fd)

    def sync(self) -> None:
        if self._map is not None:
            self._map.flush()

    def close(self) -> None:
        self._unmap()


class SystemFileLock:
    """Held by both of Unix's kinds of lock, with the holder's process id as the file's content.

    `flock` also keeps out a second holder in the same process; `lockf` is the kind that a Java broker takes.
    """

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(self._fd, 0)
            os.write(self._fd, str(os.getpid()).encode())
        except OSError:
            os.close(self._fd)
            raise

    def release(self) -> None:
        os.close(self._fd)


class SystemFiles:
    def open(self, path: str, *, create: bool = True) -> File:
        return SystemFile(path, os.O_RDWR | os.O_APPEND | (os.O_CREAT if create else 0))

    def map(self, path: str, *, size: int | None = None) -> MappedFile:
        return SystemMappedFile(path, size)

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def is_directory(self, path: str) -> bool:
        return os.path.isdir(path)

    def size(self, path: str) -> int:
        return os.stat(path).st_size

    def modified_ms(self, path: str) -> int:
        return os.stat(path).st_mtime_ns // 1_000_000

    def list_directory(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def make_directory(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def read(self, path: str) -> bytes:
        with open(path, "rb") as file:
            return file.read()

    def write_atomically(self, path: str, data: bytes) -> None:
        temporary = path + ".tmp"
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        self.sync_directory(os.path.dirname(path))

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path or ".", os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_file_system(self, path: str) -> bool:
        syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
        if syncfs is None:
            return False
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            if syncfs(fd) != 0:
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), path)
        finally:
            os.close(fd)
        return True

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize

    def remove(self, path: str) -> None:
        os.unlink(path)

    def remove_tree(self, path: str) -> None:
        shutil.rmtree(path)

    def lock(self, path: str) -> FileLock:
        return SystemFileLock(path)


class SystemTasks:
    """The running asyncio loop and a thread pool for blocking work."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int) -> None:
        self._loop = loop
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="penstock-io")
        self._tasks: set[asyncio.Task[Any]] = set()

    def call_soon(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon(callback)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        return self._loop.call_later(seconds, callback)

    def future(self) -> asyncio.Future[Any]:
        return self._loop.create_future()

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str) -> asyncio.Task[T]:
        task = self._loop.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("task %s failed", task.get_name(), exc_info=error)

    def run_blocking(self, work: Callable[[], T]) -> Awaitable[T]:
        return self._loop.run_in_executor(self._pool, work)

    async def close(self) -> None:
        """Cancel what still runs, wait for it, and end the threads."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._pool.shutdown(wait=True)


class SystemServer:
    def __init__(self, server: asyncio.Server, host: str, port: int) -> None:
        self._server = server
        self.host = host
        self.port = port

    async def serve(self) -> None:
        await self._server.start_serving()

    async def close(self) -> None:
        self._server.close()


class SystemNetwork:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop

    async def listen(
        self, host: str, port: int, protocol_factory: Callable[[], asyncio.BaseProtocol], *, backlog: int
    ) -> Server:
        # An empty host means every interface; one dual-stack socket then serves IPv4 and IPv6 on the same port.
        bound = _bind(host, port, backlog)
        server = await self._loop.create_server(protocol_factory, sock=bound, backlog=backlog, start_serving=False)
        return SystemServer(server, host, bound.getsockname()[1])

    async def connect(
        self,
        host: str,
        port: int,
        protocol_factory: Callable[[], asyncio.BaseProtocol],
        *,
        tls: ssl.SSLContext | None = None,
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        if tls is None:
            return await self._loop.create_connection(protocol_factory, host, port)
        return await self._loop.create_connection(
            protocol_factory, host, port, ssl=tls, server_hostname=host, ssl_shutdown_timeout=TLS_GOODBYE_S
        )


def _bind(host: str, port: int, backlog: int) -> socket.socket:
    if host in ("", "0.0.0.0", "::"):
        dual_stack = host != "0.0.0.0" and socket.has_dualstack_ipv6()
        family = socket.AF_INET6 if dual_stack else socket.AF_INET
        return socket.create_server(
            ("", port), family=family, dualstack_ipv6=dual_stack, backlog=backlog, reuse_port=False
        )
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server((address[0], address[1]), family=family, backlog=backlog)


class SystemWorld:
    """All real ports on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, threads: int) -> None:
        self.clock = SystemClock()
        self.files = SystemFiles()
        self.tasks = SystemTasks(loop, threads=threads)
        self.network = SystemNetwork(loop)

    async def close(self) -> None:
        await self.tasks.close()


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop where it is installed, the standard loop otherwise; made the current one."""
    try:
        import uvloop
    except ImportError:
        loop = asyncio.new_event_loop()
    else:
        loop = uvloop.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop
