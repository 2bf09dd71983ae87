"""Attempts to connect to one broker: how the last one ended, how long the next one may take, and from when on."""

from __future__ import annotations

from penstock.network.backoff import backoff_ms
from penstock.network.errors import ClosedHere, NetworkError
from penstock.network.settings import NetworkPorts, NetworkSettings


class Attempts:
    __slots__ = ("_clock", "_not_before", "_rng", "_settings", "failure", "failures")

    def __init__(self, ports: NetworkPorts, settings: NetworkSettings) -> None:
        self.failures = 0
        """In a row."""
        self.failure: NetworkError | None = None
        """Why there is no connection; None before the first attempt, and when this side ended the last one."""
        self._clock = ports.clock
        self._rng = ports.rng
        self._settings = settings
        self._not_before = 0.0

    @property
    def is_too_soon(self) -> bool:
        return self._clock.monotonic() < self._not_before

    @property
    def timeout_ms(self) -> int:
        """Of the next attempt: each failure doubles it."""
        settings = self._settings
        doubled = settings.socket_connection_setup_timeout_ms << min(self.failures, 16)
        return min(doubled, settings.socket_connection_setup_timeout_max_ms)

    def succeeded(self) -> None:
        self.failures = 0
        self.failure = None
        self._back_off()

    def failed(self, error: NetworkError) -> None:
        self.failures += 1
        self.failure = error
        self._back_off()

    def lost(self, reason: NetworkError) -> None:
        """A connection ended. To have closed it ourselves is no reason to refuse the next request."""
        self.failure = None if isinstance(reason, ClosedHere) else reason

    def _back_off(self) -> None:
        settings = self._settings
        delay_ms = backoff_ms(
            settings.reconnect_backoff_ms, settings.reconnect_backoff_max_ms, self.failures, self._rng
        )
        self._not_before = self._clock.monotonic() + delay_ms / 1000
