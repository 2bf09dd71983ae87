"""Sending from a file to a socket inside the kernel, beside the transport that owns the socket.

A transport refuses that anybody watches its own descriptor, so this works on a duplicate of it. It may be used only
while the transport's write buffer is empty; bytes would overtake each other otherwise. The connection is closed
towards the peer only when the duplicate is closed too.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from typing import Final

_MORE: Final[int] = getattr(socket, "MSG_MORE", 0)


class SocketSender:
    __slots__ = ("_fd", "_loop", "_socket", "_watching")

    def __init__(self, loop: asyncio.AbstractEventLoop, duplicate: socket.socket) -> None:
        self._loop = loop
        self._socket = duplicate
        self._fd = duplicate.fileno()
        self._watching = False

    def send_more(self, data: bytes) -> int:
        """Send bytes that a file follows: the kernel may put both into one packet. How many it took; 0 when full."""
        try:
            return self._socket.send(data, _MORE)
        except BlockingIOError:
            return 0

    def send_file(self, fd: int, position: int, length: int) -> int:
        """How many bytes were taken, 0 at the end of the file; BlockingIOError when the socket is full."""
        return os.sendfile(self._fd, fd, position, length)

    def when_writable(self, callback: Callable[[], None]) -> None:
        """Call back once when there is room again."""
        self._watching = True
        self._loop.add_writer(self._fd, self._writable, callback)

    def _writable(self, callback: Callable[[], None]) -> None:
        self._stop_watching()
        callback()

    def _stop_watching(self) -> None:
        if self._watching:
            self._watching = False
            self._loop.remove_writer(self._fd)

    def close(self) -> None:
        self._stop_watching()
        self._socket.close()


def open_sender(transport: asyncio.Transport) -> SocketSender | None:
    """None where there is no plain socket to send to: TLS, or a simulated network. OSError when out of descriptors."""
    owned = transport.get_extra_info("socket")
    if owned is None or transport.get_extra_info("sslcontext") is not None:
        return None
    duplicate = socket.socket(owned.family, owned.type, owned.proto, fileno=os.dup(owned.fileno()))
    return SocketSender(asyncio.get_running_loop(), duplicate)
