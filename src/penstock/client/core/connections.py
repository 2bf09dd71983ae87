"""A client's connections: bound to one loop, measured, closed; and one request to one node over them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from penstock.base.ports import Timer
from penstock.base.system import SystemTasks
from penstock.client.config import ClientConfig, common_keys, producer_keys
from penstock.client.core.measuring import Measuring
from penstock.client.core.metrics import ClientMetrics
from penstock.client.core.nodes import aside_node_id
from penstock.client.core.ports import ClientPorts, system_ports
from penstock.client.core.settings import name_of, network_settings, security_settings
from penstock.client.core.waiting import Retry
from penstock.client.errors import ClientClosed, InvalidState
from penstock.network.channel import NodeChannel
from penstock.network.pool import ChannelPool, Endpoints
from penstock.network.security import connection_security
from penstock.network.versions import VersionTable
from penstock.protocol.apis import ApiKey

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.network.options import SendOptions


class Connections:
    ports: ClientPorts

    def __init__(self, config: ClientConfig, *, ports: ClientPorts | None = None) -> None:
        self.config = config
        self.client_id = name_of(config)
        self.metrics = ClientMetrics()
        self._given_ports = ports
        self._tasks: SystemTasks | None = None
        self._pool: ChannelPool | None = None
        self._fetching: set[int] = set()
        """Nodes at which a fetch is under way."""
        self._is_closed = False
        self._sample_timer: Timer | None = None

    # Life.

    def _connect(self, endpoints: Endpoints) -> ChannelPool:
        """Bind to the running loop. `endpoints` knows where nodes are."""
        if self._given_ports is not None:
            self.ports = self._given_ports
        else:
            self.ports, self._tasks = system_ports()
        self._pool = ChannelPool(
            endpoints=endpoints,
            ports=self.ports,
            settings=network_settings(self.config, self.client_id),
            security=connection_security(security_settings(self.config), self.ports),
            observer=Measuring(self.metrics, self.config.kind),
        )
        self.metrics.start(self.ports.clock, self.config[common_keys.METRICS_NUM_SAMPLES])
        self._begin_sample()
        return self._pool

    async def _disconnect(self) -> None:
        """Close every connection."""
        if self._sample_timer is not None:
            self._sample_timer.cancel()
        if self._pool is not None:
            await self._pool.close()
        if self._tasks is not None:
            await self._tasks.close()

    def _begin_sample(self) -> None:
        window_s = self.config[common_keys.METRICS_SAMPLE_WINDOW_MS] / 1000

        def end() -> None:
            self.metrics.end_sample()
            self._begin_sample()

        self._sample_timer = self.ports.tasks.call_later(window_s, end)

    @property
    def is_started(self) -> bool:
        return self._pool is not None

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def pool(self) -> ChannelPool:
        if self._is_closed:
            raise ClientClosed(f"{self.client_id} was closed: make a new client")
        if self._pool is None:
            raise InvalidState(f"{self.client_id} was not started: await start(), or use `async with`")
        return self._pool

    # One node.

    def send(self, node_id: int, api_key: int, message: object, **options: Unpack[SendOptions]) -> asyncio.Future[Any]:
        """The future of one node's answer; it fails with a NetworkError, and nothing is repeated."""
        future = self.pool.send(self._way_to(node_id, api_key), api_key, message, **options)
        if api_key == ApiKey.FETCH:
            self._fetching.add(node_id)
            future.add_done_callback(lambda _: self._fetching.discard(node_id))
        return future

    def _way_to(self, node_id: int, api_key: int) -> int:
        """The connection for a request: what is short goes beside a fetch, which may wait at the broker for long."""
        return aside_node_id(node_id) if node_id in self._fetching and api_key != ApiKey.FETCH else node_id

    def channel(self, node_id: int) -> NodeChannel:
        """The way to one node: `has_room`, `on_room`, `versions`."""
        return self.pool.channel(node_id)

    async def versions(self, node_id: int, *, timeout_ms: float | None = None) -> VersionTable:
        """The API versions and finalized features of one node; connects if need be."""
        return await self.pool.ready(node_id, timeout_ms=timeout_ms)

    # Time.

    @property
    def request_timeout_ms(self) -> int:
        return self.config[common_keys.REQUEST_TIMEOUT_MS]

    @property
    def default_timeout_ms(self) -> int:
        return self.config[producer_keys.DEFAULT_API_TIMEOUT_MS]

    def retry(self, *, timeout_ms: float | None = None, what: str = "the call") -> Retry:
        """Tries with growing pauses until the deadline, by default of `default.api.timeout.ms`."""
        self.pool  # noqa: B018 - raises when the client is not usable
        return Retry(
            self.ports,
            timeout_ms=self.default_timeout_ms if timeout_ms is None else timeout_ms,
            backoff_ms=self.config[common_keys.RETRY_BACKOFF_MS],
            backoff_max_ms=max(
                self.config[common_keys.RETRY_BACKOFF_MAX_MS], self.config[common_keys.RETRY_BACKOFF_MS]
            ),
            what=what,
        )

    def _limit(self, attempt: Retry, request_timeout_ms: float | None = None) -> float:
        """A request may take its own time, and never longer than the call."""
        own_ms = self.request_timeout_ms if request_timeout_ms is None else request_timeout_ms
        return max(1.0, min(own_ms, attempt.remaining_ms))
