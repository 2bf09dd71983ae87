"""One connection to one broker: requests out, answers in, in order.

The loop receives straight into the memory of `FrameReceiver`; each whole frame is matched with the oldest request and
decoded, and its future is done before the loop does anything else. There is no task and no queue here: `send` writes at
once, and a caller asks `has_room` first (a `NodeChannel` does, and keeps the queue).

A connection ends once and for one reason, `close_reason`, which tells whose doing it was: the other side's
(`Disconnected`, `ProtocolViolation`), ours (`ClosedHere`) or nobody's (`RequestTimedOut`). Every request that waits
then fails with its own copy of that reason. One late answer ends the connection, because the order of answers is all
that tells them apart in practice: the late answer would be taken for the next one.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final, cast

from penstock.network.address import Address
from penstock.network.deadlines import DeadlineTimer
from penstock.network.encoding import decode, encode
from penstock.network.errors import (
    ClosedHere,
    Disconnected,
    InvalidRequest,
    NetworkError,
    ProtocolViolation,
    RequestTimedOut,
)
from penstock.network.framing import HANDSHAKE_BYTES_MAX, BadFrame, FrameReceiver
from penstock.network.in_flight import Decode, Frame, InFlight, PendingRequest, WrongAnswer
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.network.throttling import throttle_of
from penstock.protocol.apis import APIS
from penstock.protocol.errors import DecodeError, EncodeError

JOINED_BYTES_MAX: Final = 64 * 1024
"""Parts of a request up to here are copied together; above, each goes to the socket from where it is."""

LINGER_S: Final = 5.0
"""How long a closed connection may take to get rid of what was sent before."""


class Connection(asyncio.BufferedProtocol):
    """`on_room` is called when a request may be sent again, `on_closed` once when it is over.

    `on_sent(api_key, size)`, `on_answered(api_key, seconds, size)` and `on_throttled(throttle_time_ms)` are told what
    happens, for whoever measures or obeys.
    """

    __slots__ = (
        "_blocked",
        "_client_id",
        "_clock",
        "_gone",
        "_holds",
        "_in_flight",
        "_in_flight_max",
        "_receiver",
        "_settings",
        "_tasks",
        "_timer",
        "_transport",
        "_unanswered",
        "address",
        "close_reason",
        "last_used_at",
        "on_answered",
        "on_closed",
        "on_room",
        "on_sent",
        "on_throttled",
    )

    _transport: asyncio.Transport

    def __init__(self, address: Address, ports: NetworkPorts, settings: NetworkSettings) -> None:
        self.address = address
        self.close_reason: NetworkError | None = None
        self.on_room: Callable[[], None] | None = None
        self.on_closed: Callable[[NetworkError], None] | None = None
        self.on_sent: Callable[[int, int], None] | None = None
        self.on_answered: Callable[[int, float, int], None] | None = None
        self.on_throttled: Callable[[int], None] | None = None
        self._clock = ports.clock
        self._tasks = ports.tasks
        self.last_used_at = self._clock.monotonic()
        self._settings = settings
        self._client_id = settings.client_id
        self._in_flight_max = settings.max_in_flight_requests_per_connection
        self._in_flight = InFlight()
        self._receiver = FrameReceiver(min(HANDSHAKE_BYTES_MAX, settings.response_bytes_max))
        self._timer = DeadlineTimer(ports.clock, ports.tasks, self._expire)
        self._blocked = False
        self._holds: set[str] = set()
        self._unanswered = True
        self._gone: asyncio.Future[None] = self._tasks.future()

    # What the owner calls.

    @property
    def in_flight(self) -> int:
        """Requests that wait for their answers."""
        return len(self._in_flight)

    @property
    def has_room(self) -> bool:
        """Whether a request may be sent now."""
        return (
            len(self._in_flight) < self._in_flight_max
            and not self._blocked
            and not self._holds
            and self.close_reason is None
        )

    def hold(self, why: str) -> None:
        """No room until the same `why` is released: the owner wants the connection for something else, or peace."""
        self._holds.add(why)

    def release(self, why: str) -> None:
        self._holds.discard(why)
        if self.has_room and self.on_room is not None:
            self.on_room()

    def handshake_done(self) -> None:
        """The other side has proven that it speaks this protocol: answers may be large from now on."""
        self._receiver.limit = self._settings.response_bytes_max
        self._unanswered = True

    def send(
        self,
        api_key: int,
        version: int,
        message: object,
        *,
        timeout_ms: float | None = None,
        decode: Decode | None = None,
        expects_answer: bool = True,
        future: asyncio.Future[Any] | None = None,
    ) -> asyncio.Future[Any]:
        """The future of the answer. Fails through the future only.

        `decode` makes something else of the answer than its message. Without an answer to expect (Produce with acks=0)
        the future is done, with None, once the bytes are on their way. `future` is used instead of a new one.
        """
        if future is None:
            future = self._tasks.future()
        if self.close_reason is not None:
            future.set_exception(self.close_reason.for_request(was_sent=False))
            return future
        correlation_id = self._in_flight.new_correlation_id()
        try:
            parts = encode(api_key, version, correlation_id, self._client_id, message)
        except EncodeError as error:
            reason = f"the request {APIS[api_key].name} v{version} cannot be written: {error}"
            future.set_exception(InvalidRequest(self.address, reason))
            return future
        now = self.last_used_at = self._clock.monotonic()
        if expects_answer:
            deadline = now + (self._settings.request_timeout_ms if timeout_ms is None else timeout_ms) / 1000
            self._in_flight.add(PendingRequest(api_key, version, correlation_id, deadline, decode, future, now))
            self._timer.watch(deadline)
        size = sum(map(len, parts))
        self._write(parts, size)
        if self.on_sent is not None:
            self.on_sent(api_key, size)
        if not expects_answer and not future.done():
            future.set_result(None)
        return future

    def close(self, reason: NetworkError | None = None) -> None:
        """End it; bytes already sent still go out. Requests without an answer fail with `reason` or `ClosedHere`."""
        self._end(reason or ClosedHere(self.address, "this side closed the connection"), gently=True)

    @property
    def is_gone(self) -> bool:
        """Whether the socket itself is closed, which comes a little after the end."""
        return self._gone.done()

    def abort(self) -> None:
        """End it without waiting for anything, not even for bytes already sent."""
        self._end(ClosedHere(self.address, "this side gave the connection up"))

    async def closed(self, timeout_s: float) -> None:
        """Wait for the socket's own end behind `close()`; what is not on its way by the time is dropped.

        A loop that ends before its sockets leaves them open, or does not end at all (uvloop).
        """
        timer = self._tasks.call_later(timeout_s, self._transport.abort)
        try:
            await asyncio.shield(self._gone)
        finally:
            timer.cancel()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Not an isinstance check: uvloop's transports do not derive from asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._size_socket_buffers()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._receiver.space()

    def buffer_updated(self, nbytes: int) -> None:
        if self.close_reason is not None:
            return
        receiver = self._receiver
        receiver.received(nbytes)
        had_room = self.has_room
        try:
            while (frame := receiver.next_frame()) is not None:
                if not self._take(frame):
                    return
        except (BadFrame, WrongAnswer) as error:
            self._end(ProtocolViolation(self.address, str(error)))
            return
        except (MemoryError, OSError) as error:
            self._end(ClosedHere(self.address, f"there is no memory for a large answer: {error}"))
            return
        if not had_room and self.has_room and self.on_room is not None:
            self.on_room()

    def eof_received(self) -> bool:
        return False

    def pause_writing(self) -> None:
        self._blocked = True

    def resume_writing(self) -> None:
        self._blocked = False
        if self.has_room and self.on_room is not None:
            self.on_room()

    def connection_lost(self, exc: Exception | None) -> None:
        if self.close_reason is None:
            lost = Disconnected(self.address, self._describe_loss(exc))
            lost.__cause__ = exc
            self._end(lost)
        self._receiver.drop()
        if not self._gone.done():
            self._gone.set_result(None)

    # Inside.

    def _take(self, frame: Frame) -> bool:
        """Finish the oldest request with its answer; False when the connection is over."""
        request = self._in_flight.match(frame)
        try:
            if request.decode is not None:
                result = request.decode(frame, request.version)
            else:
                result = decode(request.api_key, request.version, frame)
        except DecodeError as error:
            name = APIS[request.api_key].name
            what = f"the answer to {name} v{request.version} cannot be read: {error}"
            self._end(ProtocolViolation(self.address, what))
            return False
        # Only now: should a caller's own decoder fail in some other way, the request is still there to be failed.
        self._in_flight.finish_oldest()
        self._unanswered = False
        if self.on_throttled is not None and (pause_ms := throttle_of(request.api_key, request.version, result)):
            # Before the caller learns of the answer, so that his next request waits already.
            self.on_throttled(pause_ms)
        if self.on_answered is not None:
            self.on_answered(request.api_key, self._clock.monotonic() - request.sent_at, len(frame))
        if not request.future.done():
            request.future.set_result(result)
        return self.close_reason is None

    def _write(self, parts: list[Any], size: int) -> None:
        if len(parts) == 1:
            self._transport.write(parts[0])
        elif size <= JOINED_BYTES_MAX:
            self._transport.write(b"".join(parts))
        else:
            self._transport.writelines(parts)

    def _expire(self, now: float) -> float | None:
        late = [request for request in self._in_flight if request.deadline <= now]
        if not late:
            return self._in_flight.earliest_deadline()
        if all(request.future.done() for request in late):
            # Nobody waits for these any more, but their answers must still be told apart from the next ones.
            reason = "no answer came to a request that was given up"
        else:
            reason = f"no answer to {APIS[late[0].api_key].name} in time"
        self._end(RequestTimedOut(self.address, f"{reason}: the broker is overloaded, or the way to it is cut"), late)
        return None

    def _end(self, reason: NetworkError, late: list[PendingRequest] | None = None, *, gently: bool = False) -> None:
        """Over: requests in `late` (all, when None) fail for `reason`; the others only lose their connection."""
        if self.close_reason is not None:
            return
        self.close_reason = reason
        self._timer.stop()
        if gently:
            self._finish_writing()
        else:
            self._transport.abort()
        for request in self._in_flight.take_all():
            if request.future.done():
                continue
            if late is None or request in late:
                error = reason.for_request(was_sent=True)
            else:
                error = Disconnected(self.address, f"closed because of another request: {reason.reason}", was_sent=True)
            request.future.set_exception(error)
        if self.on_closed is not None:
            self.on_closed(reason)

    def _finish_writing(self) -> None:
        transport = self._transport
        transport.close()
        if transport.get_write_buffer_size():
            self._tasks.call_later(LINGER_S, transport.abort)

    def _describe_loss(self, exc: Exception | None) -> str:
        cause = f" ({exc})" if exc is not None else ""
        unfinished = self._receiver.unfinished()
        if unfinished is not None:
            return f"the connection ended after {unfinished[0]} of {unfinished[1]} bytes of an answer{cause}"
        if self._unanswered and self._in_flight:
            return (
                f"the broker closed the connection{cause} instead of an answer to the first request: "
                "if the listener wants SASL, set security.protocol and sasl.mechanism"
            )
        return f"the broker closed the connection{cause}"

    def _size_socket_buffers(self) -> None:
        sock = self._transport.get_extra_info("socket")
        if sock is None:
            return
        for option, size in (
            (socket.SO_SNDBUF, self._settings.send_buffer_bytes),
            (socket.SO_RCVBUF, self._settings.receive_buffer_bytes),
        ):
            if size >= 0:
                sock.setsockopt(socket.SOL_SOCKET, option, size)
