"""The way out of a session: answers in the order of their requests, file slices without copying.

There is one queue. It holds what has been answered but not sent, and places for answers that are still awaited; an
answer leaves when everything before it has left. The session writes an answer by itself, past the queue, only when the
queue is empty and the transport has room: that is the usual case for small requests.

The transport's high-water mark is zero, so `blocked` (it called `pause_writing`) says exactly that its write buffer is
not empty. While it is empty, a large slice goes from its file to the socket by sendfile on a duplicate descriptor;
bytes and small slices are gathered into one write, because for those a copy is cheaper than another system call.

Nothing here blocks the loop: sendfile stops when the socket is full, a turn is bounded in bytes, and a range that is
not in the page cache is loaded in a worker first, chunk by chunk.

A slice that arrives here is released exactly once: after it was sent, or when the connection ends; while a worker
reads from it, when that worker is done. A slice whose file was cut under it cannot be sent any more, and as its length
was already announced, only closing the connection is left.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from functools import partial
from typing import Final, Protocol

from penstock.base.metrics import Counter
from penstock.base.ports import Tasks
from penstock.server.answers import Answer, Awaited, FileSlice, Parts, Ready, memory_of, release
from penstock.server.residency import Residency
from penstock.server.zero_copy import SocketSender, open_sender

GATHER_BYTES: Final = 256 * 1024
"""Answers that are ready together are joined into writes of about this size."""
COPY_BYTES: Final = 32 * 1024
"""Up to here reading a slice and writing it with its neighbours is cheaper than a sendfile of its own."""
CHUNK_BYTES: Final = 1024 * 1024
"""How much is asked of one sendfile, one copy, or one worker."""
TURN_BYTES: Final = 2 * 1024 * 1024
"""How much one connection sends before others get their turn."""


class OutputOwner(Protocol):
    """The session, as its output sees it."""

    def answer_failed(self, error: BaseException, *, logged: bool) -> None:
        """An awaited answer ended with an exception; `logged` when its task has reported that already."""

    def output_failed(self, reason: str, *, by_client: bool = False) -> None:
        """What was promised to the client cannot be sent; `by_client` when that is because it has left."""

    def output_progressed(self) -> None:
        """The queue has become shorter, or the transport has room again."""


class Output:
    __slots__ = (
        "_bytes_out",
        "_index",
        "_loading",
        "_offset",
        "_owner",
        "_ready_until",
        "_residency",
        "_sender",
        "_sender_tried",
        "_tasks",
        "_transport",
        "_turn_bytes",
        "_waiting",
        "blocked",
        "closed",
        "held_bytes",
        "queue",
        "sent_bytes",
    )

    def __init__(
        self, transport: asyncio.Transport, owner: OutputOwner, tasks: Tasks, residency: Residency, bytes_out: Counter
    ) -> None:
        self._transport = transport
        self._owner = owner
        self._tasks = tasks
        self._residency = residency
        self._bytes_out = bytes_out
        self._sender: SocketSender | None = None
        self._sender_tried = False
        self._waiting = False
        """For the socket of a sendfile, for a worker, or for the next turn: whoever ends the wait calls `_continue`."""
        self._loading: FileSlice | None = None
        self._index = 0
        self._offset = 0
        self._ready_until = 0
        self._turn_bytes = 0
        self.blocked = False
        self.closed = False
        self.held_bytes = 0
        """Memory of the answers in the queue."""
        self.queue: deque[Ready | Awaited] = deque()
        self.sent_bytes = 0
        transport.set_write_buffer_limits(high=0)

    # What the session calls.

    def enqueue(self, answer: Ready | Awaitable[Ready | None]) -> None:
        if isinstance(answer, bytes | list):
            if self.closed:
                release(answer)
                return
            self.held_bytes += memory_of(answer)
            self.queue.append(answer)
            return
        place = Awaited()
        self.queue.append(place)
        asyncio.ensure_future(answer).add_done_callback(partial(self._answered, place))

    def write(self, data: bytes) -> None:
        size = len(data)
        self.sent_bytes += size
        self._bytes_out.value += size
        self._transport.write(data)

    def pump(self) -> None:
        """Send what is ready, in order, until the socket is full or the next answer is still awaited."""
        before = len(self.queue)
        try:
            self._pump()
        except Exception as error:  # noqa: BLE001 - the owner logs it and closes this connection only
            self._owner.answer_failed(error, logged=False)
        if len(self.queue) != before and not self.closed:
            self._owner.output_progressed()

    def _pump(self) -> None:
        queue = self.queue
        while queue and not (self.blocked or self._waiting or self.closed):
            head = queue[0]
            if isinstance(head, Awaited):
                if not head.done:
                    break
                if head.answer is None:
                    queue.popleft()
                    continue
                head = queue[0] = head.answer
            if isinstance(head, bytes):
                self._send_bytes()
            else:
                self._send_parts(head)

    def transport_resumed(self) -> None:
        if self.closed:
            return
        self.blocked = False
        self._turn_bytes = 0
        self.pump()
        if not self.closed:
            self._owner.output_progressed()

    def idle(self) -> bool:
        return not self.queue and not self.blocked

    def awaits_answer(self) -> bool:
        """Whether it is the broker that the next byte is waiting for, not the client."""
        if not self.queue or self.blocked:
            return False
        head = self.queue[0]
        return self._loading is not None or (isinstance(head, Awaited) and not head.done)

    def progress_bytes(self) -> int:
        """A number that grows as the client takes bytes."""
        return self.sent_bytes - self._transport.get_write_buffer_size()

    def close(self) -> None:
        """Forget everything unsent. Answers that are still awaited are dropped when they come."""
        if self.closed:
            return
        self.closed = True
        # The session's fast way looks only at this.
        self.blocked = True
        if self._sender is not None:
            self._sender.close()
            self._sender = None
        first = self._index
        for answer in self.queue:
            ready = answer.answer if isinstance(answer, Awaited) else answer
            if isinstance(ready, list):
                release(ready[first:], keep=self._loading)
            first = 0
        self.queue.clear()
        self.held_bytes = 0

    # Answers that come later.

    def _answered(self, place: Awaited, future: asyncio.Future[Ready | None]) -> None:
        if future.cancelled():
            error: BaseException | None = asyncio.CancelledError("the request was cancelled")
        else:
            error = future.exception()
        if error is not None:
            # A task reports its own failure (see `Tasks.spawn`).
            self._owner.answer_failed(error, logged=isinstance(future, asyncio.Task))
            return
        answer = future.result()
        if self.closed:
            if answer is not None:
                release(answer)
            return
        place.done = True
        place.answer = answer
        if answer is not None:
            self.held_bytes += memory_of(answer)
        if self.queue[0] is place:
            self.pump()

    # Bytes.

    def _send_bytes(self) -> None:
        """Join the bytes at the head of the queue into one write."""
        queue = self.queue
        chunks: list[bytes] = []
        size = 0
        while queue and size < GATHER_BYTES:
            head = queue[0]
            chunk = head.answer if isinstance(head, Awaited) else head
            # What is not there yet has None here, and ends the run like an answer with slices.
            if not isinstance(chunk, bytes):
                break
            queue.popleft()
            chunks.append(chunk)
            size += len(chunk)
        self.held_bytes -= size
        self.write(b"".join(chunks))

    # Bytes mixed with file slices.

    def _send_parts(self, parts: Parts) -> None:
        """Send the answer at the head of the queue, from where it was left; take it off when all of it is sent."""
        while self._index < len(parts) and not (self.blocked or self._waiting or self.closed):
            part = parts[self._index]
            if isinstance(part, bytes) or (part.length <= COPY_BYTES and not self._offset):
                self._send_gathered(parts)
            else:
                self._send_slice(part)
        if self._index == len(parts) and not self.closed:
            self.queue.popleft()
            self.held_bytes -= memory_of(parts)
            self._index = 0

    def _send_gathered(self, parts: Parts) -> None:
        """One write of the bytes and small slices up to the next large slice."""
        chunks: list[bytes] = []
        size = 0
        large_follows = False
        while self._index < len(parts) and size < GATHER_BYTES:
            part = parts[self._index]
            if isinstance(part, bytes):
                chunk = part
                self._index += 1
            elif part.length > COPY_BYTES:
                large_follows = True
                break
            elif not self._is_resident(part, part.position, part.length):
                break
            else:
                chunk = self._read(part, part.position, part.length)
                if self.closed:
                    return
                self._slice_done(part)
            chunks.append(chunk)
            size += len(chunk)
        if size:
            self._write_before(b"".join(chunks), large_follows)

    def _write_before(self, data: bytes, large_follows: bool) -> None:
        sender = self._open_sender() if large_follows else None
        if sender is None:
            self.write(data)
            return
        try:
            sent = sender.send_more(data)
        except OSError as error:
            self._broke(error)
            return
        self._count(sent)
        if sent < len(data):
            self.write(data[sent:])

    def _send_slice(self, part: FileSlice) -> None:
        """Send one chunk of a large slice."""
        position = part.position + self._offset
        length = min(part.length - self._offset, CHUNK_BYTES)
        if self._turn_bytes >= TURN_BYTES:
            self._waiting = True
            self._tasks.call_soon(self._continue)
            return
        if not self._is_resident(part, position, length):
            return
        if not part.near_end:
            length = min(length, self._ready_until - position)
        sender = self._open_sender() if part.file.fileno() >= 0 else None
        if sender is None:
            data = self._read(part, position, length)
            if not self.closed:
                self.write(data)
                self._slice_sent(part, length)
            return
        self._send_file(sender, part, position, length)

    def _send_file(self, sender: SocketSender, part: FileSlice, position: int, length: int) -> None:
        if not self._check_valid(part):
            return
        try:
            sent = sender.send_file(part.file.fileno(), position, length)
        except BlockingIOError:
            self._waiting = True
            sender.when_writable(self._continue)
            return
        except OSError as error:
            self._broke(error)
            return
        if not sent:
            self._owner.output_failed("the log's file is shorter than the records that were announced")
            return
        self._count(sent)
        self._slice_sent(part, sent)

    def _broke(self, error: OSError) -> None:
        reason = f"records could not be sent: {error}"
        self._owner.output_failed(reason, by_client=isinstance(error, ConnectionError))

    def _count(self, size: int) -> None:
        self.sent_bytes += size
        self._bytes_out.value += size

    def _slice_sent(self, part: FileSlice, size: int) -> None:
        self._turn_bytes += size
        self._offset += size
        if self._offset == part.length:
            self._slice_done(part)

    def _slice_done(self, part: FileSlice) -> None:
        self._index += 1
        self._offset = 0
        self._ready_until = 0
        part.release()

    def _read(self, part: FileSlice, position: int, length: int) -> bytes:
        """The bytes of a range that is in memory; closes the connection when they cannot be had."""
        if not self._check_valid(part):
            return b""
        try:
            data = part.file.read_at(position, length)
        except OSError as error:
            self._owner.output_failed(f"the log could not be read: {error}")
            return b""
        if len(data) != length:
            self._owner.output_failed("the log's file is shorter than the records that were announced")
            return b""
        return data

    def _check_valid(self, part: FileSlice) -> bool:
        if part.valid:
            return True
        self._owner.output_failed("the log was truncated while records of it were sent")
        return False

    def _open_sender(self) -> SocketSender | None:
        if not self._sender_tried:
            self._sender_tried = True
            try:
                self._sender = open_sender(self._transport)
            except OSError:
                # Out of descriptors: copying works too.
                self._sender = None
        return self._sender

    # Waiting.

    def _continue(self) -> None:
        self._waiting = False
        self._turn_bytes = 0
        self.pump()

    def _is_resident(self, part: FileSlice, position: int, length: int) -> bool:
        """Whether reading can start at `position` without waiting for a disk; else a worker loads the range."""
        if part.near_end or position < self._ready_until:
            return True
        resident = self._residency.resident_length(part.file, position, length)
        if resident == length or resident >= COPY_BYTES:
            self._ready_until = position + resident
            return True
        self._waiting = True
        self._loading = part
        self._tasks.spawn(self._load(part, position, length), name="cold-read")
        return False

    async def _load(self, part: FileSlice, position: int, length: int) -> None:
        try:
            await self._tasks.run_blocking(partial(self._residency.load, part.file, position, length))
        except OSError as error:
            if not self.closed:
                self._owner.output_failed(f"the log could not be read: {error}")
        finally:
            self._loading = None
            if self.closed:
                part.release()
        if not self.closed:
            self._ready_until = position + length
            self._continue()


__all__ = ["Answer", "FileSlice", "Output", "OutputOwner", "Parts", "Ready"]
