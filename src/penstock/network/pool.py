"""Channels to all brokers, by node id, made when they are first used; idle connections are closed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Final

from penstock.base.ports import Timer
from penstock.network.address import Address
from penstock.network.channel import NodeChannel
from penstock.network.errors import ClosedHere
from penstock.network.in_flight import Decode
from penstock.network.observer import NetworkObserver
from penstock.network.security import PLAINTEXT, ConnectionSecurity
from penstock.network.settings import NetworkPorts, NetworkSettings
from penstock.network.versions import VERSION_MAX, VersionTable

Endpoints = Callable[[int], Address | None]
"""The address of a node, or None for one that is not known. Asked again for every new connection."""

_IDLE_CHECKS: Final = 4
"""A connection is closed when it has been idle for the time that is set, or up to a quarter longer."""


class ChannelPool:
    def __init__(
        self,
        *,
        endpoints: Endpoints,
        ports: NetworkPorts,
        settings: NetworkSettings,
        security: ConnectionSecurity | None = None,
        observer: NetworkObserver | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._ports = ports
        self._settings = settings
        self._security = security or PLAINTEXT
        self._observer = observer
        self._channels: dict[int, NodeChannel] = {}
        self._idle_timer: Timer | None = None
        self._closed = False

    def send(
        self,
        node_id: int,
        api_key: int,
        message: object,
        *,
        timeout_ms: float | None = None,
        at_least: int = 0,
        at_most: int = VERSION_MAX,
        decode: Decode | None = None,
        expects_answer: bool = True,
    ) -> asyncio.Future[Any]:
        """The future of a broker's answer; see the package's docstring."""
        if self._closed:
            return self._refused()
        return self.channel(node_id).send(
            api_key,
            message,
            timeout_ms=timeout_ms,
            at_least=at_least,
            at_most=at_most,
            decode=decode,
            expects_answer=expects_answer,
        )

    def ready(self, node_id: int, *, timeout_ms: float | None = None) -> asyncio.Future[VersionTable]:
        """Connects, if need be; gives the versions and features of a broker."""
        if self._closed:
            return self._refused()
        return self.channel(node_id).ready(timeout_ms=timeout_ms)

    def channel(self, node_id: int) -> NodeChannel:
        """The way to one broker, for whoever wants to ask `has_room` before he makes a request."""
        found = self._channels.get(node_id)
        if found is None:
            found = self._channels[node_id] = NodeChannel(
                f"node {node_id}",
                lambda: self._endpoints(node_id),
                self._ports,
                self._settings,
                self._security,
                self._observer,
            )
            self._watch_idle()
        return found

    def load(self, node_id: int) -> int:
        """Requests to a node that are not answered yet."""
        found = self._channels.get(node_id)
        return found.load if found is not None else 0

    def is_blocked(self, node_id: int) -> bool:
        """Whether a request to the node would be refused at once, because it could not be reached a moment ago."""
        found = self._channels.get(node_id)
        return found is not None and found.is_blocked

    def is_connected(self, node_id: int) -> bool:
        found = self._channels.get(node_id)
        return found is not None and found.versions is not None

    def check_addresses(self) -> None:
        """Call when the metadata has changed: connections to addresses that are no longer a node's are given up."""
        for channel in self._channels.values():
            channel.check_address()

    async def close(self) -> None:
        """Close every connection; requests that wait fail with `ClosedHere`."""
        self._closed = True
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        channels, self._channels = self._channels, {}
        await asyncio.gather(*(channel.close() for channel in channels.values()))

    def _refused(self) -> asyncio.Future[Any]:
        future = self._ports.tasks.future()
        future.set_exception(ClosedHere(None, "the pool of connections was closed"))
        return future

    def _watch_idle(self) -> None:
        idle_ms = self._settings.connections_max_idle_ms
        if self._idle_timer is None and idle_ms >= 0:
            self._idle_timer = self._ports.tasks.call_later(idle_ms / 1000 / _IDLE_CHECKS, self._close_idle)

    def _close_idle(self) -> None:
        self._idle_timer = None
        now = self._ports.clock.monotonic()
        idle_s = self._settings.connections_max_idle_ms / 1000
        for channel in self._channels.values():
            channel.close_if_idle(now, idle_s)
        self._watch_idle()
