"""Counts what a client's connections do, under the names of Kafka's client metrics."""

from __future__ import annotations

from typing import Final

from penstock.client.config import ClientKind
from penstock.client.core.metrics import ClientMetrics
from penstock.network.errors import AuthenticationFailed, NetworkError
from penstock.network.observer import NetworkObserver
from penstock.protocol.apis import ApiKey

_OF_GROUPS: Final = {
    ApiKey.OFFSET_COMMIT: ("commit-total", "commit-latency"),
    ApiKey.JOIN_GROUP: ("join-total", "join-time"),
    ApiKey.SYNC_GROUP: ("sync-total", "sync-time"),
    ApiKey.HEARTBEAT: ("heartbeat-total", "heartbeat-response-time"),
}
"""Of a consumer, by API: how often it was answered, and in how many milliseconds."""


class NodeMetrics:
    """Of one node, or of all; asked for once, then only added to."""

    __slots__ = ("bytes_in", "bytes_out", "latency_ms", "requests", "responses", "size")

    def __init__(self, metrics: ClientMetrics, **labels: str) -> None:
        self.requests = metrics.counter("request-total", **labels)
        self.responses = metrics.counter("response-total", **labels)
        self.bytes_out = metrics.counter("outgoing-byte-total", **labels)
        self.bytes_in = metrics.counter("incoming-byte-total", **labels)
        self.size = metrics.spread("request-size", **labels)
        self.latency_ms = metrics.spread("request-latency", **labels)

    def sent(self, size: int) -> None:
        self.requests.value += 1
        self.bytes_out.value += size
        self.size.record(size)

    def answered(self, latency_ms: float, size: int) -> None:
        self.responses.value += 1
        self.bytes_in.value += size
        self.latency_ms.record(latency_ms)


class Measuring(NetworkObserver):
    def __init__(self, metrics: ClientMetrics, kind: ClientKind) -> None:
        self._metrics = metrics
        self._open = 0
        self._all = NodeMetrics(metrics)
        self._nodes: dict[str, NodeMetrics] = {}
        metrics.gauge("connection-count", lambda: self._open)
        self._created = metrics.counter("connection-creation-total")
        self._closed = metrics.counter("connection-close-total")
        self._failed = metrics.counter("connection-failed-total")
        self._authenticated = metrics.counter("successful-authentication-total")
        self._authenticated_again = metrics.counter("successful-reauthentication-total")
        self._refused = metrics.counter("failed-authentication-total")
        self._throttled = metrics.spread("produce-throttle-time" if kind is ClientKind.PRODUCER else "throttle-time")
        of_groups = _OF_GROUPS if kind is ClientKind.CONSUMER else {}
        self._by_api = {
            int(api_key): (metrics.counter(total), metrics.spread(took)) for api_key, (total, took) in of_groups.items()
        }

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
        self._all.sent(size)
        self._node(node).sent(size)

    def answered(self, node: str, api_key: int, seconds: float, size: int) -> None:
        latency_ms = seconds * 1000
        self._all.answered(latency_ms, size)
        self._node(node).answered(latency_ms, size)
        if (of_api := self._by_api.get(api_key)) is not None:
            of_api[0].value += 1
            of_api[1].record(latency_ms)

    def throttled(self, node: str, throttle_time_ms: int) -> None:
        self._throttled.record(throttle_time_ms)

    def _node(self, name: str) -> NodeMetrics:
        found = self._nodes.get(name)
        if found is None:
            found = self._nodes[name] = NodeMetrics(self._metrics, node_id=name.replace(" ", "-"))
        return found
