"""One listening address and the sessions of its clients.

The listener counts and limits connections, and looks after all of them with one timer: at each tick a session whose
client neither sent nor took a byte for `connections.max.idle.ms` is closed, a large buffer nobody needed lately is
given back, and a closed connection whose last bytes the client does not take is cut off. Sessions note no times; the
listener compares their byte counts between ticks, so activity costs the hot path nothing, and a session may live up to
one tick longer than its limit.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable
from typing import Final

from penstock.base import metric_names
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock, Network, Server, Tasks, Timer
from penstock.server.connection_quotas import ConnectionQuotas
from penstock.server.memory import MemoryBudget
from penstock.server.output import Answer
from penstock.server.residency import PageCache, Residency
from penstock.server.session import Session, SessionLimits

log = logging.getLogger(__name__)


TICK_SECONDS_MAX: Final = 5.0
_TICKS_PER_IDLE_LIMIT: Final = 8
_REFUSAL_LOG_SECONDS: Final = 10.0


class Listener:
    """Serves `host:port`; `port` is the real one after `bind` when 0 was asked for."""

    def __init__(
        self,
        name: str,
        host: str,
        port: int,
        *,
        dispatch: Callable[[Session, memoryview], Answer],
        network: Network,
        tasks: Tasks,
        clock: Clock,
        metrics: Metrics,
        limits: SessionLimits,
        quotas: ConnectionQuotas,
        budget: MemoryBudget,
        residency: Residency | None = None,
    ) -> None:
        self.name = name
        self.host = host
        self.port = port
        self.dispatch = dispatch
        self.tasks = tasks
        self.limits = limits
        self.budget = budget
        self.residency: Residency = residency or PageCache()
        self.sessions: dict[Session, _Watch] = {}
        self.bytes_in = metrics.counter(metric_names.SOCKET_BYTES_IN, listener=name)
        self.bytes_out = metrics.counter(metric_names.SOCKET_BYTES_OUT, listener=name)
        self._created = metrics.counter(metric_names.CONNECTION_CREATIONS, listener=name)
        self._closed = metrics.counter(metric_names.CONNECTION_CLOSES, listener=name)
        self._idle_closed = metrics.counter(metric_names.CONNECTIONS_IDLE_CLOSED, listener=name)
        self._refused = metrics.counter(metric_names.CONNECTIONS_REFUSED, listener=name)
        metrics.gauge(metric_names.CONNECTION_COUNT, lambda: len(self.sessions), listener=name)
        metrics.gauge(metric_names.MEMORY_POOL_AVAILABLE, lambda: budget.available)
        metrics.gauge(metric_names.MEMORY_POOL_USED, lambda: budget.used)
        self._quotas = quotas
        self._network = network
        self._clock = clock
        self._server: Server | None = None
        self._timer: Timer | None = None
        self._refusals_unlogged = 0
        self._refusal_logged_at = float("-inf")
        self._emptied: Callable[[], None] | None = None
        self._stopping = False

    async def bind(self) -> None:
        """Take the address; OSError when it is taken. Clients that connect now wait until `serve`."""
        self._server = await self._network.listen(
            self.host, self.port, lambda: Session(self), backlog=self.limits.backlog
        )
        self.port = self._server.port

    async def serve(self) -> None:
        assert self._server is not None
        await self._server.serve()
        self._schedule_tick()

    async def start(self) -> None:
        """Bind and serve at once."""
        await self.bind()
        await self.serve()

    async def close(self, *, grace_seconds: float = 5.0) -> None:
        """Accept no more, let requests in flight be answered for a while, then close what is left."""
        self._stopping = True
        if self._server is not None:
            await self._server.close()
            self._server = None
        for session in list(self.sessions):
            session.finish("the broker stops")
        await self._wait_until_empty(grace_seconds)
        for session in list(self.sessions):
            session.close("the broker stops, and requests in flight took too long", level=logging.INFO)
            session.transport.abort()
        # Aborted connections are reported lost on the loop's next turn.
        await self._wait_until_empty(1.0)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def _wait_until_empty(self, seconds: float) -> None:
        if not self.sessions:
            return
        emptied = self.tasks.future()

        def wake() -> None:
            if not emptied.done():
                emptied.set_result(None)

        self._emptied = wake
        timer = self.tasks.call_later(seconds, wake)
        await emptied
        timer.cancel()
        self._emptied = None

    # What sessions call.

    def admit(self, session: Session) -> bool:
        address = session.peer[0]
        if self._stopping:
            return False
        refusal = self._quotas.admit(address)
        if refusal is not None:
            self._refused.value += 1
            self._log_refusal(session, refusal)
            return False
        self._created.value += 1
        self.sessions[session] = _Watch(self._clock.monotonic())
        self._set_socket_options(session)
        return True

    def forget(self, session: Session) -> None:
        if self.sessions.pop(session, None) is None:
            return
        self._closed.value += 1
        self._quotas.forget(session.peer[0])
        if not self.sessions and self._emptied is not None:
            self._emptied()

    def _set_socket_options(self, session: Session) -> None:
        sock = session.transport.get_extra_info("socket")
        if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
            return
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if self.limits.send_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self.limits.send_buffer_bytes)
        if self.limits.receive_buffer_bytes > 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, self.limits.receive_buffer_bytes)

    def _log_refusal(self, session: Session, refusal: str) -> None:
        """At most one line in ten seconds, however fast somebody reconnects."""
        now = self._clock.monotonic()
        if now - self._refusal_logged_at < _REFUSAL_LOG_SECONDS:
            self._refusals_unlogged += 1
            return
        log.warning(
            "connection refused: %s",
            refusal,
            extra={
                "listener": self.name,
                "client": f"{session.peer[0]}:{session.peer[1]}",
                "refused_before": self._refusals_unlogged,
            },
        )
        self._refusal_logged_at = now
        self._refusals_unlogged = 0

    # The timer.

    def _schedule_tick(self) -> None:
        idle_seconds = self.limits.idle_ms_max / 1000
        # A limit of zero or less means that nobody is ever idle for too long.
        seconds = min(TICK_SECONDS_MAX, idle_seconds / _TICKS_PER_IDLE_LIMIT) if idle_seconds > 0 else TICK_SECONDS_MAX
        self._timer = self.tasks.call_later(seconds, self._tick)

    def _tick(self) -> None:
        now = self._clock.monotonic()
        for session, watch in list(self.sessions.items()):
            self._look_after(session, watch, now)
        self._schedule_tick()

    def _look_after(self, session: Session, watch: _Watch, now: float) -> None:
        if session.closed:
            if watch.closing:
                session.transport.abort()
            watch.closing = True
            return
        session.give_back_memory()
        progress = session.progress()
        idle_ms = (now - watch.active_at) * 1000
        if progress is None or progress != watch.progress:
            watch.progress = progress
            watch.active_at = now
        elif idle_ms >= self.limits.idle_ms_max > 0:
            self._idle_closed.value += 1
            reason = f"no progress for connections.max.idle.ms={self.limits.idle_ms_max}"
            # Unread answers are a client's fault that an operator may want to know of; being idle is none.
            level = logging.DEBUG if session.output.idle() else logging.WARNING
            session.close(reason, level=level)


class _Watch:
    """What the listener saw of a session at its last look."""

    __slots__ = ("active_at", "closing", "progress")

    def __init__(self, now: float) -> None:
        self.active_at = now
        self.progress: int | None = 0
        self.closing = False
