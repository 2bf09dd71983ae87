"""What is counted while fetching, once per fetch, by the names of Kafka's consumer-fetch-manager-metrics."""

from __future__ import annotations

from collections.abc import Iterator

from penstock.base.metrics import Counter
from penstock.base.ports import Clock
from penstock.base.types import TopicPartition
from penstock.client.consumer.positions import PartitionState
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.metrics import ClientMetrics


class FetchMetrics:
    def __init__(
        self, registry: ClientMetrics, clock: Clock, subscription: SubscriptionState, *, read_committed: bool
    ) -> None:
        self._clock = clock
        self._subscription = subscription
        self._read_committed = read_committed
        self.fetches = registry.counter("fetch-total")
        self.records = registry.counter("records-consumed-total")
        self.bytes = registry.counter("bytes-consumed-total")
        self._latency_ms = registry.spread("fetch-latency")
        self._size = registry.spread("fetch-size")
        self._throttle_ms = registry.spread("fetch-throttle-time")
        self._between_polls_ms = registry.spread("time-between-poll")
        self._idle_us, self._elapsed_us = Counter(), Counter()
        self._waited_s = 0.0
        """Idle time of the present poll, which counts when its time does."""
        self._polled_at = 0.0
        registry.ratio("records-per-request-avg", self.records, self.fetches)
        registry.ratio("poll-idle-ratio-avg", self._idle_us, self._elapsed_us)
        registry.gauge("records-lag-max", lambda: max(self._lags(), default=0))
        registry.gauge("records-lead-min", lambda: min(self._leads(), default=0))
        registry.gauge("last-poll-seconds-ago", self._since_poll_s)
        registry.gauge("assigned-partitions", lambda: len(subscription))

    def answered(self, seconds: float, size: int, throttle_ms: int) -> None:
        self.fetches.value += 1
        self.bytes.value += size
        self._latency_ms.record(seconds * 1000)
        self._size.record(size)
        self._throttle_ms.record(throttle_ms)

    def polled(self) -> float:
        """A poll begins; the time."""
        now = self._clock.monotonic()
        if self._polled_at:
            self._between_polls_ms.record((now - self._polled_at) * 1000)
            self._elapsed_us.value += int((now - self._polled_at) * 1e6)
            self._idle_us.value += int(self._waited_s * 1e6)
        self._polled_at, self._waited_s = now, 0.0
        return now

    def waited(self, seconds: float) -> None:
        """A poll had nothing to give for so long."""
        self._waited_s += seconds

    def partition_values(self) -> dict[str, float]:
        """`topic-0.records-lag` and the like, per partition."""
        return {
            f"{partition}.{name}": value
            for partition, state in self._states()
            for name, value in self._of_partition(state)
        }

    def _of_partition(self, state: PartitionState) -> Iterator[tuple[str, float]]:
        lag, lead = state.lag(self._read_committed), _lead(state)
        if lag is not None:
            yield "records-lag", lag
        if lead is not None:
            yield "records-lead", lead
        if state.preferred_replica is not None:
            yield "preferred-read-replica", state.preferred_replica

    def _states(self) -> list[tuple[TopicPartition, PartitionState]]:
        return list(self._subscription.items())

    def _lags(self) -> list[int]:
        return [lag for _, state in self._states() if (lag := state.lag(self._read_committed)) is not None]

    def _leads(self) -> list[int]:
        return [lead for _, state in self._states() if (lead := _lead(state)) is not None]

    def _since_poll_s(self) -> float:
        return self._clock.monotonic() - self._polled_at if self._polled_at else -1.0


def _lead(state: PartitionState) -> int | None:
    """How far behind the first record the position is."""
    if state.position is None or state.log_start_offset is None:
        return None
    return max(state.position.offset - state.log_start_offset, 0)
