"""Bytes in, frames out: the receiving side of a connection without its socket.

`space()` is where the next bytes go, `received(count)` says that they came, `next_frame()` gives whole frames, without
their size, until it gives None. What it gives belongs to the caller for as long as he likes:

- Small frames arrive many at a time in one base buffer, and each is copied out of it once (`bytes` are also the
  quickest to decode).
- A frame that is larger than the base buffer gets memory of its own, into which the socket is read directly and which
  nobody else uses while any view of it lives (`receive_memory`).

A size that cannot be one raises `BadFrame`. Most often something else listens on that port; its first bytes tell what.
"""

from __future__ import annotations

import struct
from typing import Final

from penstock.network.receive_memory import ReceiveMemory

BASE_BYTES: Final = 64 * 1024
SIZE_BYTES: Final = 4
HANDSHAKE_BYTES_MAX: Final = 1024 * 1024
"""No answer of a handshake is larger, while the greetings of other protocols are absurd sizes beyond it."""

_unpack_size = struct.Struct(">i").unpack_from

_ANOTHER_PORT: Final = "answers here: give the port of the Kafka listener"
_TLS_HERE: Final = (
    "a TLS server answers here, but this connection is PLAINTEXT: set security.protocol to SSL or SASL_SSL"
)

_GREETINGS: Final = (
    (b"HTTP", f"an HTTP server {_ANOTHER_PORT}"),
    (b"<htm", f"an HTTP server {_ANOTHER_PORT}"),
    (b"<!DO", f"an HTTP server {_ANOTHER_PORT}"),
    (b"\x15\x03", _TLS_HERE),
    (b"\x16\x03", _TLS_HERE),
    (b"SSH-", f"an SSH server {_ANOTHER_PORT}"),
    (b"220 ", f"a mail or FTP server {_ANOTHER_PORT}"),
    (b"-ERR", f"a Redis server {_ANOTHER_PORT}"),
    (b"AMQP", f"an AMQP broker {_ANOTHER_PORT}"),
)


class BadFrame(Exception):  # noqa: N818 - becomes a ProtocolViolation with an address
    """The next four bytes are not the size of an answer."""


class FrameReceiver:
    __slots__ = ("_base", "_end", "_large", "_large_end", "_memory", "_start", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """The largest frame that is accepted; may be changed between frames."""
        self._base = memoryview(bytearray(BASE_BYTES))
        self._start = 0
        self._end = 0
        self._large: memoryview | None = None
        self._large_end = 0
        self._memory = ReceiveMemory()

    def space(self) -> memoryview:
        if self._large is not None:
            return self._large[self._large_end :]
        return self._base[self._end :]

    def received(self, count: int) -> None:
        if self._large is not None:
            self._large_end += count
        else:
            self._end += count

    def next_frame(self) -> bytes | memoryview | None:
        """The next whole frame; None when more bytes are needed, for which there is then `space()`."""
        large = self._large
        if large is not None:
            if self._large_end < len(large):
                return None
            self._large = None
            return large
        start, end = self._start, self._end
        body = start + SIZE_BYTES
        if body > end:
            self._make_room(SIZE_BYTES)
            return None
        size = _unpack_size(self._base, start)[0]
        if not 0 < size <= self.limit:
            raise BadFrame(describe_bad_size(bytes(self._base[start:body]), self.limit))
        stop = body + size
        if stop > end:
            self._make_room(size + SIZE_BYTES)
            return None
        self._start = stop
        return bytes(self._base[body:stop])

    def unfinished(self) -> tuple[int, int] | None:
        """(bytes here, bytes announced) of a frame that has begun; None between frames."""
        if self._large is not None:
            return self._large_end, len(self._large)
        here = self._end - self._start
        if not here:
            return None
        if here < SIZE_BYTES:
            return here, SIZE_BYTES
        return here - SIZE_BYTES, _unpack_size(self._base, self._start)[0]

    def drop(self) -> None:
        """Give the memory back; nothing is received any more."""
        self._large = None
        self._memory = ReceiveMemory()
        self._base = memoryview(b"")
        self._start = self._end = 0

    def _make_room(self, need: int) -> None:
        """A part of a frame of `need` bytes, size included, is at `_start`."""
        start, end = self._start, self._end
        if need > BASE_BYTES:
            self._begin_large(need - SIZE_BYTES)
        elif start == end:
            self._start = self._end = 0
        elif start + need > BASE_BYTES:
            self._base[: end - start] = self._base[start:end]
            self._start, self._end = 0, end - start

    def _begin_large(self, size: int) -> None:
        arrived = self._base[self._start + SIZE_BYTES : self._end]
        self._large = self._memory.take(size)
        self._large_end = len(arrived)
        self._large[: len(arrived)] = arrived
        self._start = self._end = 0


def describe_bad_size(head: bytes, limit: int) -> str:
    """Why a frame that begins with `head` (four bytes) is no answer."""
    for start, meaning in _GREETINGS:
        if head.startswith(start):
            return meaning
    size: int = _unpack_size(head)[0]
    if size <= 0:
        return f"an answer cannot have {size} bytes: is this a Kafka broker?"
    return (
        f"an answer of {size} bytes is over the limit of {limit} (first bytes 0x{head.hex()}): is this a Kafka broker?"
    )
