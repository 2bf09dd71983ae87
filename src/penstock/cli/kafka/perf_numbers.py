"""The numbers of a performance test, and the lines that Kafka prints them in. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

_MEGABYTE = 1024 * 1024


@dataclass(slots=True)
class Latencies:
    """Counts, bytes and latencies since `started` (seconds of a steady clock)."""

    started: float
    count: int = 0
    size: int = 0
    total_ms: int = 0
    by_ms: Counter[int] = field(default_factory=Counter)

    def add(self, latency_ms: int, size: int) -> None:
        self.count += 1
        self.size += size
        self.total_ms += latency_ms
        self.by_ms[latency_ms] += 1

    def interval_line(self, now: float) -> str:
        elapsed = max(now - self.started, 1e-9)
        return (
            f"{self.count} records sent, {self.count / elapsed:.1f} records/sec "
            f"({self.size / _MEGABYTE / elapsed:.2f} MB/sec), {self._average():.1f} ms avg latency, "
            f"{float(self._highest()):.1f} ms max latency."
        )

    def summary_line(self, now: float, noun: str) -> str:
        elapsed = max(now - self.started, 1e-9)
        shares = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
        ranks = ", ".join(f"{self.percentile(share)} ms {name}" for share, name in shares)
        return (
            f"{self.count} {noun} sent, {self.count / elapsed:f} records/sec "
            f"({self.size / _MEGABYTE / elapsed:.2f} MB/sec), {self._average():.2f} ms avg latency, "
            f"{float(self._highest()):.2f} ms max latency, {ranks}."
        )

    def percentile(self, share: float) -> int:
        """The latency that this share of the records did not exceed."""
        wanted = share * self.count
        seen = 0
        for latency in sorted(self.by_ms):
            seen += self.by_ms[latency]
            if seen >= wanted:
                return latency
        return 0

    def _average(self) -> float:
        return self.total_ms / self.count if self.count else 0.0

    def _highest(self) -> int:
        return max(self.by_ms, default=0)
