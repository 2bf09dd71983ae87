"""What is counted while fetching, by the names of Kafka's consumer-fetch-manager-metrics."""

from __future__ import annotations

from typing import Final

from penstock.base.ports import Clock
from penstock.client.consumer.subscription import SubscriptionState

_WINDOW_S: Final = 30.0


class Rate:
    """Per second, over the last half to whole minute."""

    __slots__ = ("_before", "_clock", "_older", "total")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.total = 0
        self._older = self._before = (clock.monotonic(), 0)

    def value(self) -> float:
        now = self._clock.monotonic()
        if now - self._before[0] >= _WINDOW_S:
            self._older, self._before = self._before, (now, self.total)
        since, total = self._older
        return (self.total - total) / max(now - since, 1e-3) if now > since else 0.0


class Spread:
    """Average and largest of all values so far."""

    __slots__ = ("count", "largest", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self.largest = 0.0

    def record(self, value: float) -> None:
        self.count += 1
        self.sum += value
        if value > self.largest:
            self.largest = value

    @property
    def average(self) -> float:
        return self.sum / self.count if self.count else 0.0


class FetchMetrics:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.fetches = Rate(clock)
        self.records = Rate(clock)
        self.bytes = Rate(clock)
        self.latency_ms = Spread()
        self.size = Spread()
        self.throttle_ms = Spread()
        self.between_polls_ms = Spread()
        self.polled_at = 0.0
        self.idle_s = 0.0
        self.began_at = clock.monotonic()

    def answered(self, seconds: float, size: int, throttle_ms: int) -> None:
        self.fetches.total += 1
        self.bytes.total += size
        self.latency_ms.record(seconds * 1000)
        self.size.record(size)
        self.throttle_ms.record(throttle_ms)

    def polled(self) -> float:
        """A poll begins; the time."""
        now = self._clock.monotonic()
        if self.polled_at:
            self.between_polls_ms.record((now - self.polled_at) * 1000)
        self.polled_at = now
        return now

    def values(self, subscription: SubscriptionState, *, read_committed: bool) -> dict[str, float]:
        lags = [lag for _, state in subscription.items() if (lag := state.lag(read_committed)) is not None]
        leads = [
            max(state.position.offset - state.log_start_offset, 0)
            for _, state in subscription.items()
            if state.position is not None and state.log_start_offset is not None
        ]
        now = self._clock.monotonic()
        return {
            "fetch-rate": self.fetches.value(),
            "fetch-total": self.fetches.total,
            "fetch-latency-avg": self.latency_ms.average,
            "fetch-latency-max": self.latency_ms.largest,
            "fetch-size-avg": self.size.average,
            "fetch-size-max": self.size.largest,
            "fetch-throttle-time-avg": self.throttle_ms.average,
            "fetch-throttle-time-max": self.throttle_ms.largest,
            "bytes-consumed-rate": self.bytes.value(),
            "bytes-consumed-total": self.bytes.total,
            "records-consumed-rate": self.records.value(),
            "records-consumed-total": self.records.total,
            "records-per-request-avg": self.records.total / max(self.fetches.total, 1),
            "records-lag-max": max(lags, default=0),
            "records-lead-min": min(leads, default=0),
            "time-between-poll-avg": self.between_polls_ms.average,
            "time-between-poll-max": self.between_polls_ms.largest,
            "last-poll-seconds-ago": now - self.polled_at if self.polled_at else -1.0,
            "poll-idle-ratio-avg": min(self.idle_s / max(now - self.began_at, 1e-3), 1.0),
            "assigned-partitions": len(subscription),
        }

    def partition_values(self, subscription: SubscriptionState, *, read_committed: bool) -> dict[str, float]:
        """`records-lag{topic-partition}` and the like, per partition."""
        found: dict[str, float] = {}
        for partition, state in subscription.items():
            lag = state.lag(read_committed)
            if lag is not None:
                found[f"{partition}.records-lag"] = lag
            if state.position is not None and state.log_start_offset is not None:
                found[f"{partition}.records-lead"] = max(state.position.offset - state.log_start_offset, 0)
            if state.preferred_replica is not None:
                found[f"{partition}.preferred-read-replica"] = state.preferred_replica
        return found
