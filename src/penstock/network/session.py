"""Sessions end (KIP-368): a broker that limits them closes a connection that did not authenticate again in time.

The keeper of a connection holds its requests back shortly before the end, runs the SASL exchange over the same
connection, and lets them go. Requests under way are answered first, in their order, so nothing is lost by it. An
exchange that fails ends the connection with the reason.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from penstock.base.ports import Timer
from penstock.network.errors import NetworkError, RequestTimedOut
from penstock.network.handshake import Opening, within
from penstock.network.settings import NetworkPorts

EARLY_SHARE: Final = 0.85
JITTER_SHARE: Final = 0.10
"""A session is prolonged after 85 to 95 % of its life, as Kafka's clients do."""

_HOLD: Final = "authentication"


class SessionKeeper:
    def __init__(
        self, opening: Opening, ports: NetworkPorts, *, name: str, on_prolonged: Callable[[float], None] | None = None
    ) -> None:
        self._opening = opening
        self._ports = ports
        self._name = name
        self._on_prolonged = on_prolonged
        self._timer: Timer | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Watch the session, if it has an end."""
        lifetime_ms = self._opening.session_lifetime_ms
        if lifetime_ms <= 0 or self._opening.authenticate is None:
            return
        delay_s = lifetime_ms / 1000 * (EARLY_SHARE + JITTER_SHARE * self._ports.rng.random())
        self._timer = self._ports.tasks.call_later(delay_s, self._begin)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _begin(self) -> None:
        self._timer = None
        self._opening.connection.hold(_HOLD)
        self._task = self._ports.tasks.spawn(self._prolong(), name=f"authenticate again to {self._name}")

    async def _prolong(self) -> None:
        opening, authenticate = self._opening, self._opening.authenticate
        assert authenticate is not None
        connection, began = opening.connection, self._ports.clock.monotonic()
        last_used_at = connection.last_used_at
        try:
            await within(self._ports.tasks, opening.settings.request_timeout_ms, authenticate(opening))
        except (NetworkError, TimeoutError) as error:
            self._task = None
            late = "the session could not be prolonged in time: is the broker or the token provider overloaded?"
            connection.close(error if isinstance(error, NetworkError) else RequestTimedOut(connection.address, late))
            return
        self._task = None
        # Upkeep is no use: an idle connection stays idle.
        connection.last_used_at = last_used_at
        self.start()
        if self._on_prolonged is not None:
            self._on_prolonged(self._ports.clock.monotonic() - began)
        connection.release(_HOLD)
