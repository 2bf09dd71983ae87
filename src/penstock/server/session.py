"""One connection: bytes in, frames to the dispatcher, answers out in order. Knows nothing of Kafka's APIs.

The loop receives straight into the session's buffer and calls `buffer_updated`, which hands every whole frame to
`dispatch` as a writable slice of that buffer. An answer that is bytes and has nothing before it is written at once,
together with the others of the same wake-up; everything else goes through `Output`, which keeps the order.

Reading stops, and the client's own socket fills up, while any of these holds (`_pauses`):
- too many requests are unanswered or unsent, or their answers take too much memory;
- a large frame waits for memory that all sessions share;
- the session has had its share of this turn of the loop;
- it is finishing: the client has closed its side, or the broker stops.

A connection ends with one line in the log that names the client and the reason; an ordinary good-bye is logged at
debug level only. `close` may be called from anywhere, also from a handler.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol, cast

from penstock.base.metrics import Counter
from penstock.base.ports import Tasks
from penstock.server.frames import SIZE, SIZE_BYTES, describe_bad_size
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer, Output, Ready
from penstock.server.receiving import BASE_BYTES, ReceiveBuffer, buffer_bytes_for
from penstock.server.residency import Residency

log = logging.getLogger(__name__)

ANONYMOUS: Final = "User:ANONYMOUS"
FRAMES_PER_TURN: Final = 256
BYTES_PER_TURN: Final = 4 * 1024 * 1024
WRITE_BYTES: Final = 64 * 1024
"""Answers of one wake-up are collected up to here before they are written."""

_BY_ANSWERS: Final = 1
_BY_MEMORY: Final = 2
_BY_TURN: Final = 4
_BY_FINISHING: Final = 8

_unpack_size = SIZE.unpack_from


class CloseConnection(Exception):  # noqa: N818 - an instruction rather than an error
    """Raised by dispatch: there is nothing more to say to this client, but perhaps one `last_answer`."""

    def __init__(self, reason: str, *, last_answer: bytes | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.last_answer = last_answer


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionLimits:
    request_bytes_max: int = 104_857_600
    in_flight_max: int = 64
    """Requests of one connection that may be unanswered, or answered and unsent."""
    unsent_bytes_max: int = 4 * 1024 * 1024
    """Memory that the answers of one connection may take before its next request is read."""
    idle_ms_max: int = 600_000
    send_buffer_bytes: int = -1
    receive_buffer_bytes: int = -1
    backlog: int = 50
    """Connections that may wait to be accepted."""


class SessionOwner(Protocol):
    """The listener, as its sessions see it."""

    name: str
    limits: SessionLimits
    tasks: Tasks
    budget: MemoryBudget
    residency: Residency
    dispatch: Callable[[Session, memoryview], Answer]
    bytes_in: Counter
    bytes_out: Counter

    def admit(self, session: Session) -> bool:
        """False when there are too many connections; the session then closes by itself."""

    def forget(self, session: Session) -> None:
        """The connection of an admitted session is gone."""


class Session(asyncio.BufferedProtocol):
    __slots__ = (
        "__weakref__",
        "_buffer",
        "_bytes_in",
        "_close_callbacks",
        "_dispatch",
        "_finish",
        "_owner",
        "_pauses",
        "_queue",
        "_request_bytes_max",
        "_turn_began_at",
        "client_software_name",
        "client_software_version",
        "closed",
        "limits",
        "listener_name",
        "output",
        "peer",
        "principal",
        "received_bytes",
        "transport",
    )

    transport: asyncio.Transport
    output: Output

    def __init__(self, owner: SessionOwner) -> None:
        self._owner = owner
        self._dispatch = owner.dispatch
        self._bytes_in = owner.bytes_in
        self._buffer = ReceiveBuffer()
        self._close_callbacks: dict[Callable[[], None], None] = {}
        self._pauses = 0
        self._turn_began_at = 0
        self._finish: tuple[str, int] | None = None
        self.limits = owner.limits
        self._request_bytes_max = owner.limits.request_bytes_max
        self.listener_name = owner.name
        self.peer = ("", 0)
        self.principal = ANONYMOUS
        self.client_software_name = ""
        self.client_software_version = ""
        self.received_bytes = 0
        self.closed = False

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance check: uvloop's transports do not derive from asyncio's.
        self.transport = cast("asyncio.Transport", transport)
        self.peer = _peer_of(self.transport)
        owner = self._owner
        self.output = Output(self.transport, self, owner.tasks, owner.residency, owner.bytes_out)
        self._queue = self.output.queue
        if not self._owner.admit(self):
            self.closed = True
            self.output.close()
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        buffer = self._buffer
        return buffer.view[buffer.end : buffer.limit]

    def buffer_updated(self, nbytes: int) -> None:  # noqa: C901 - the hot loop: calls would cost more than they explain
        """Dispatch every whole frame. Also called with 0, to go on after a pause."""
        self._bytes_in.value += nbytes
        self.received_bytes += nbytes
        buffer = self._buffer
        view = buffer.view
        start = buffer.start
        end = buffer.end = buffer.end + nbytes
        output = self.output
        queue = self._queue
        dispatch = self._dispatch
        ready: list[bytes] = []
        ready_bytes = 0
        need = 0
        try:
            for _ in range(FRAMES_PER_TURN):
                body = start + SIZE_BYTES
                if body > end:
                    break
                size = _unpack_size(view, start)[0]
                if not 0 < size <= self._request_bytes_max:
                    raise CloseConnection(describe_bad_size(bytes(view[start:body]), self._request_bytes_max))
                stop = body + size
                if stop > end:
                    need = size + SIZE_BYTES
                    break
                if queue and self._must_wait(output):
                    break
                answer = dispatch(self, view[body:stop])
                start = stop
                if answer.__class__ is bytes and not queue and not output.blocked:
                    ready.append(answer)
                    ready_bytes += len(answer)
                    if ready_bytes < WRITE_BYTES:
                        continue
                elif answer is not None:
                    output.enqueue(answer)
                if ready:
                    output.write(b"".join(ready))
                    ready = []
                    ready_bytes = 0
                if self.closed:
                    return
            else:
                self._yield_turn()
        except CloseConnection as closing:
            self._write_last(ready, closing)
            return
        except Exception:
            log.exception("request failed, connection closed", extra=self._log_fields())
            if ready:
                output.write(b"".join(ready))
            self.close()
            return
        if ready:
            output.write(b"".join(ready))
        if queue:
            output.pump()
        if self.closed:
            return
        if start == end:
            buffer.start = buffer.end = 0
        else:
            buffer.start = start
            self._make_room(need)
        if buffer.charge:
            self._share_turn()

    def eof_received(self) -> bool:
        """The client sends no more. What is ready for it still goes out; what is only awaited has nobody to wait."""
        if self.output.idle() or self.output.awaits_answer():
            self.close("closed by the client", level=logging.DEBUG)
            return False
        self.finish("the client closed its side")
        return True

    def pause_writing(self) -> None:
        self.output.blocked = True

    def resume_writing(self) -> None:
        self.output.transport_resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.closed:
            self.close(f"connection lost: {exc}" if exc else "closed by the client", level=logging.DEBUG)
        # Whoever still holds this session, such as a handler that is at work, does not need its memory.
        self._buffer.drop()
        self._owner.forget(self)

    # What handlers and the listener call.

    def add_close_callback(self, callback: Callable[[], None]) -> None:
        """`callback` is called once when the connection ends; at once when it has ended already."""
        if self.closed:
            callback()
        else:
            self._close_callbacks[callback] = None

    def remove_close_callback(self, callback: Callable[[], None]) -> None:
        self._close_callbacks.pop(callback, None)

    def close(self, reason: str | None = None, *, level: int = logging.WARNING) -> None:
        """End the connection now; unsent answers are dropped. No reason: the caller has logged it."""
        if self.closed:
            return
        self.closed = True
        if reason is not None:
            log.log(level, "connection closed: %s", reason, extra=self._log_fields())
        if self._pauses & _BY_MEMORY:
            self._owner.budget.stop_waiting(self._memory_granted)
        self.output.close()
        self._release_memory()
        self.transport.close()
        callbacks, self._close_callbacks = self._close_callbacks, {}
        for callback in callbacks:
            self._run_close_callback(callback)

    def _run_close_callback(self, callback: Callable[[], None]) -> None:
        try:
            callback()
        except Exception:
            log.exception("a close callback failed", extra=self._log_fields())

    def finish(self, reason: str, *, level: int = logging.DEBUG) -> None:
        """Read no more, send what has been asked for, then close."""
        if self.closed:
            return
        self._finish = (reason, level)
        self._pause(_BY_FINISHING)
        if self.output.idle():
            self.close(reason, level=level)

    def give_back_memory(self) -> None:
        """Called from time to time: a large buffer that was not needed lately goes."""
        if self._buffer.capacity > BASE_BYTES and not self._buffer.large_was_used():
            self._shrink()

    def progress(self) -> int | None:
        """A number that changes when the client sends or takes bytes; None while it waits for the broker."""
        if self._pauses & _BY_MEMORY or self.output.awaits_answer():
            return None
        return self.received_bytes + self.output.progress_bytes()

    # What the output calls.

    def answer_failed(self, error: BaseException, *, logged: bool) -> None:
        if isinstance(error, CloseConnection):
            self.close(error.reason)
        elif isinstance(error, asyncio.CancelledError):
            self.close("the request was cancelled", level=logging.INFO)
        elif logged:
            self.close(f"request failed: {error!r}")
        else:
            log.error("request failed, connection closed", exc_info=error, extra=self._log_fields())
            self.close()

    def output_failed(self, reason: str, *, by_client: bool = False) -> None:
        self.close(reason, level=logging.DEBUG if by_client else logging.WARNING)

    def output_progressed(self) -> None:
        if self._finish is not None:
            if self.output.idle():
                self.close(self._finish[0], level=self._finish[1])
        elif self._pauses & _BY_ANSWERS and self._has_room():
            self._pauses &= ~_BY_ANSWERS
            self._go_on_soon()

    # Answers in flight.

    def _must_wait(self, output: Output) -> bool:
        """Whether the next request has to wait until earlier answers have left."""
        limits = self.limits
        if len(self._queue) < limits.in_flight_max and output.held_bytes < limits.unsent_bytes_max:
            return False
        output.pump()
        if self._has_room():
            return False
        self._pause(_BY_ANSWERS)
        return True

    def _has_room(self) -> bool:
        # Half, so that a connection at its limit does not stop and start with every answer.
        limits = self.limits
        return len(self._queue) <= limits.in_flight_max // 2 and self.output.held_bytes <= limits.unsent_bytes_max // 2

    def _write_last(self, ready: list[bytes], closing: CloseConnection) -> None:
        output = self.output
        if ready:
            output.write(b"".join(ready))
        if closing.last_answer is None:
            self.close(closing.reason)
            return
        output.enqueue(closing.last_answer)
        output.pump()
        self.finish(closing.reason, level=logging.WARNING)

    # Pausing.

    def _pause(self, cause: int) -> None:
        self._pauses |= cause
        self.transport.pause_reading()

    def _yield_turn(self) -> None:
        self._pause(_BY_TURN)
        self._owner.tasks.call_soon(self._turn_came)

    def _turn_came(self) -> None:
        self._pauses &= ~_BY_TURN
        self._go_on()

    def _go_on_soon(self) -> None:
        # Not from inside the output's loop: that would nest one dispatch in another.
        self._owner.tasks.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self.closed or self._pauses:
            return
        if self._buffer.end:
            self.buffer_updated(0)
        if not self._pauses and not self.closed:
            self.transport.resume_reading()

    # Memory.

    def _make_room(self, need: int) -> None:
        """A part of a frame is in the buffer: see to it that the rest can be received."""
        buffer = self._buffer
        if buffer.fit(need or SIZE_BYTES) or self._pauses & _BY_MEMORY:
            return
        wanted = buffer_bytes_for(need)
        if buffer.charge < wanted:
            # Whoever waits must hold nothing, or two sessions could wait for each other.
            self._release_charge()
            if not self._owner.budget.try_charge(wanted):
                self._pause(_BY_MEMORY)
                self._owner.budget.wait(wanted, self._memory_granted)
                return
            buffer.charge = wanted
        self._grow(need)

    def _memory_granted(self) -> None:
        buffer = self._buffer
        need = _unpack_size(buffer.view, buffer.start)[0] + SIZE_BYTES
        buffer.charge = buffer_bytes_for(need)
        self._pauses &= ~_BY_MEMORY
        self._grow(need)
        self._go_on_soon()

    def _grow(self, need: int) -> None:
        try:
            self._buffer.grow(need)
        except (OSError, MemoryError):
            self.close(f"no memory for a request of {need} bytes")

    def _share_turn(self) -> None:
        """With a large buffer: leave memory and time to others."""
        if not self._buffer.end and self._owner.budget.scarce():
            self._shrink()
        # Some loops read a socket on and on while its bytes fill the buffer they are given.
        if self.received_bytes - self._turn_began_at >= BYTES_PER_TURN:
            self._turn_began_at = self.received_bytes
            self._yield_turn()

    def _shrink(self) -> None:
        if self._buffer.shrink():
            self._release_charge()

    def _release_charge(self) -> None:
        charge, self._buffer.charge = self._buffer.charge, 0
        if charge:
            self._owner.budget.release(charge)

    def _release_memory(self) -> None:
        # The loop may still hold a slice of the old memory; nothing is dispatched from it any more.
        self._buffer.start = self._buffer.end = 0
        self._buffer.shrink()
        self._release_charge()

    def _log_fields(self) -> dict[str, object]:
        return {"listener": self.listener_name, "client": f"{self.peer[0]}:{self.peer[1]}"}


def _peer_of(transport: asyncio.Transport) -> tuple[str, int]:
    address = transport.get_extra_info("peername") or ("", 0)
    host = str(address[0])
    # A dual-stack socket shows IPv4 clients in IPv6 clothes.
    return host.removeprefix("::ffff:"), int(address[1])


__all__ = ["ANONYMOUS", "Answer", "CloseConnection", "Ready", "Session", "SessionLimits"]
