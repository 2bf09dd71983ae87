"""The numbers of a performance test, and the lines that Kafka prints them in. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

_MEGABYTE = 1024 * 1024
_OF_NODE: Final = re.compile(r'(?P<name>[^{]+)\{node-id="(?P<node>[^"]*)"\}')
_OF_PARTITION: Final = re.compile(r"(?P<topic>.+)-(?P<partition>\d+)\.(?P<name>[^.]+)")
_CONSUMER_GROUPS: Final = (
    (re.compile(r"(commit|heartbeat|join|sync|rebalance|partition)-|(assigned-partitions|last-(rebalance|heartbeat)-)"),
     "consumer-coordinator-metrics"),
    (re.compile(r"(fetch|bytes-consumed|records)-"), "consumer-fetch-manager-metrics"),
)  # fmt: skip
"""Which group of Kafka's metrics a name belongs to, where that is not the client's own."""


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


def metric_lines(metrics: Mapping[str, float], kind: str, client_id: str) -> Iterator[str]:
    """A client's metrics as Kafka's tools print them: `group:name:{tags} : value`. `kind` is producer or consumer."""
    shown = {_metric_name(name, kind, client_id): value for name, value in metrics.items()}
    width = max([len(name) for name in shown], default=0)
    yield f"\n{'Metric Name':<{width}}   Value"
    for name in sorted(shown):
        value = shown[name]
        yield f"{name:<{width}} : " + ("NaN" if value != value else f"{value:.3f}")


def _metric_name(name: str, kind: str, client_id: str) -> str:
    tags = f"client-id={client_id}"
    if of_node := _OF_NODE.fullmatch(name):
        return f"{kind}-node-metrics:{of_node['name']}:{{{tags}, node-id={of_node['node']}}}"
    if of_partition := _OF_PARTITION.fullmatch(name):
        name = of_partition["name"]
        tags += f", topic={of_partition['topic']}, partition={of_partition['partition']}"
    groups = _CONSUMER_GROUPS if kind == "consumer" else ()
    group = next((group for pattern, group in groups if pattern.match(name)), f"{kind}-metrics")
    return f"{group}:{name}:{{{tags}}}"
