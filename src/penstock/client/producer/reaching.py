"""The nodes that batches go to: connected when there is something to send, and again after a pause when that fails."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from penstock.base.errors import KafkaError
from penstock.client.core.client import ClientCore
from penstock.client.producer.accumulator import Accumulator
from penstock.client.producer.settings import ProducerSettings
from penstock.network.backoff import backoff_ms

NEVER: Final = float("inf")


class Reaching:
    def __init__(self, core: ClientCore, settings: ProducerSettings, accumulator: Accumulator) -> None:
        self._core = core
        self._settings = settings
        self._accumulator = accumulator
        self._tries: dict[int, float] = {}
        """Nodes that are being connected (infinity), or may be tried again at that time."""

    def has_room(self, node_id: int, now: float) -> bool:
        """Whether a request would be sent at once; if not, the accumulator is woken when that may have changed."""
        channel = self._core.channel(node_id)
        if channel.has_room:
            return True
        if channel.versions is None and self._tries.get(node_id, 0.0) <= now:
            self._tries[node_id] = NEVER
            channel.ready(timeout_ms=self._settings.request_timeout_ms).add_done_callback(
                lambda future: self._tried(node_id, future)
            )
        elif channel.versions is not None and channel.on_room is None:
            channel.on_room = self._accumulator.wake
        return False

    def next_try(self, now: float) -> float:
        return min((at for at in self._tries.values() if at > now), default=NEVER)

    def _tried(self, node_id: int, future: asyncio.Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is None:
            del self._tries[node_id]
        else:
            self._failed(node_id, error)
        self._accumulator.wake()

    def _failed(self, node_id: int, error: BaseException) -> None:
        settings, ports, metadata = self._settings, self._core.ports, self._core.metadata
        delay_ms = backoff_ms(settings.retry_backoff_ms, settings.retry_backoff_max_ms, 1, ports.rng)
        self._tries[node_id] = ports.clock.monotonic() + delay_ms / 1000
        if not self._core.is_closed:
            metadata.request_update(f"node {node_id} cannot be reached")
        for queue in self._accumulator.queues():
            if queue.batches and metadata.snapshot.leader(queue.tp) == node_id:
                queue.batches[0].last_error = error if isinstance(error, KafkaError) else None
