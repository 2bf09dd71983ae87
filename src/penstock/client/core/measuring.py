"""What a client measures, under the names of Kafka's client metrics: `connection-count`, `request-latency-avg`, ...

`ClientMetrics.read` gives everything as numbers by name; what belongs to one node, topic or partition has its labels
behind the name, as in `request-latency-avg{node-id="node-1"}`. Averages and quantiles are since the start, where Java's
are of the last windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from penstock.base.metrics import Counter, Gauge, Histogram, Labels, Metric, Metrics
from penstock.network.errors import AuthenticationFailed, NetworkError
from penstock.network.observer import NetworkObserver

_MILLISECONDS: Final = 1000.0


class ClientMetrics(Metrics):
    def read(self) -> dict[str, float]:
        """Every metric as a number, by its name and labels."""
        return dict(self._numbers())

    def _numbers(self) -> Iterator[tuple[str, float]]:
        # Other threads read while the loop adds: copies keep the walk safe.
        for name, family in sorted(self._families.copy().items()):
            for labels, metric in family.copy().items():
                yield from _values(name, labels, metric, self._scales.get(name, 1.0))


def _values(name: str, labels: Labels, metric: Metric, scale: float) -> Iterator[tuple[str, float]]:
    suffix = "{" + ",".join(f'{key.replace("_", "-")}="{value}"' for key, value in labels) + "}" if labels else ""
    if isinstance(metric, Counter | Gauge):
        yield f"{name}{suffix}", metric.value
    else:
        average = metric.sum / metric.count if metric.count else float("nan")
        yield f"{name}-avg{suffix}", average * scale
        yield f"{name}-max{suffix}", metric.percentile(1.0) * scale
        yield f"{name}-p99{suffix}", metric.percentile(0.99) * scale


class NodeMetrics:
    """Of one node; asked for once, then only added to."""

    __slots__ = ("latency", "requests", "responses")

    def __init__(self, metrics: Metrics, node: str) -> None:
        self.latency = metrics.histogram("request-latency", scale=_MILLISECONDS, node_id=node)
        self.requests = metrics.counter("request-total", node_id=node)
        self.responses = metrics.counter("response-total", node_id=node)


class Measuring(NetworkObserver):
    """Counts what the connections do."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._open = 0
        self._nodes: dict[str, NodeMetrics] = {}
        metrics.gauge("connection-count", lambda: self._open)
        self._created = metrics.counter("connection-creation-total")
        self._closed = metrics.counter("connection-close-total")
        self._failed = metrics.counter("connection-failed-total")
        self._authenticated = metrics.counter("successful-authentication-total")
        self._authenticated_again = metrics.counter("successful-reauthentication-total")
        self._refused = metrics.counter("failed-authentication-total")
        self._bytes_out = metrics.counter("outgoing-byte-total")
        self._bytes_in = metrics.counter("incoming-byte-total")
        self._requests = metrics.counter("request-total")
        self._responses = metrics.counter("response-total")
        self._latency: Histogram = metrics.histogram("request-latency", scale=_MILLISECONDS)
        self._size: Histogram = metrics.histogram("request-size", resolution=1, scale=1.0)
        self._throttled: Histogram = metrics.histogram("throttle-time", resolution=1e-3, scale=1.0)

    def connected(self, node: str, seconds: float) -> None:
        self._open += 1
        self._created.value += 1
        self._authenticated.value += 1

    def connect_failed(self, node: str, error: NetworkError) -> None:
        self._failed.value += 1
        if isinstance(error, AuthenticationFailed):
            self._refused.value += 1

    def closed(self, node: str, reason: NetworkError) -> None:
        self._open -= 1
        self._closed.value += 1

    def authenticated_again(self, node: str, seconds: float) -> None:
        self._authenticated_again.value += 1

    def sent(self, node: str, api_key: int, size: int) -> None:
        self._bytes_out.value += size
        self._requests.value += 1
        self._size.record(size)
        self._node(node).requests.value += 1

    def answered(self, node: str, api_key: int, seconds: float, size: int) -> None:
        self._bytes_in.value += size
        self._responses.value += 1
        self._latency.record(seconds)
        found = self._node(node)
        found.responses.value += 1
        found.latency.record(seconds)

    def throttled(self, node: str, throttle_time_ms: int) -> None:
        self._throttled.record(throttle_time_ms)

    def _node(self, name: str) -> NodeMetrics:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = NodeMetrics(self._metrics, name.replace(" ", "-"))
        return found
