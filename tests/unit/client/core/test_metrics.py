"""Totals since the start; rates, averages and maxima of the last samples."""

from __future__ import annotations

import math

import pytest

from penstock.base.metrics import Counter
from penstock.client.config import ClientKind
from penstock.client.core.measuring import Measuring
from penstock.client.core.metrics import ClientMetrics
from penstock.protocol.apis import ApiKey
from tests.unit.client.core.world import Cluster
from tests.unit.network.fakes import FakeTime


class Measured:
    """Metrics whose samples end every 30 s of the test's own time."""

    def __init__(self) -> None:
        self.time = FakeTime()
        self.metrics = ClientMetrics()
        self.metrics.start(self.time, 2)

    def pass_windows(self, count: int) -> None:
        for _ in range(count):
            self.time.now += 30
            self.metrics.end_sample()


def test_a_rate_looks_back_over_the_last_windows_only() -> None:
    measured = Measured()
    counter = measured.metrics.counter("record-send-total")
    counter.value += 300
    measured.time.now += 10
    assert measured.metrics.read()["record-send-rate"] == pytest.approx(30)
    measured.time.now -= 10
    measured.pass_windows(1)
    counter.value += 300
    assert measured.metrics.read()["record-send-rate"] == pytest.approx(600 / 30)
    measured.pass_windows(1)
    assert measured.metrics.read()["record-send-rate"] == pytest.approx(300 / 30)
    measured.pass_windows(2)
    assert measured.metrics.read() == {"record-send-total": 600, "record-send-rate": 0}


def test_an_average_and_a_maximum_of_the_last_windows() -> None:
    measured = Measured()
    spread = measured.metrics.spread("request-latency", node_id="node-1")
    names = ('request-latency-avg{node-id="node-1"}', 'request-latency-max{node-id="node-1"}')

    def seen() -> list[float]:
        read = measured.metrics.read()
        return [read[name] for name in names]

    assert all(map(math.isnan, seen()))
    spread.record(100)
    spread.record(50)
    assert seen() == [75, 100]
    measured.pass_windows(1)
    spread.record(10)
    assert seen() == [pytest.approx(160 / 3), 100]
    measured.pass_windows(1)
    assert seen() == [10, 10]
    measured.pass_windows(1)
    assert all(map(math.isnan, seen()))


def test_a_ratio_is_of_the_increases() -> None:
    measured = Measured()
    part, whole = Counter(), Counter()
    measured.metrics.ratio("compression-rate-avg", part, whole)
    assert math.isnan(measured.metrics.read()["compression-rate-avg"])
    part.value, whole.value = 90, 100
    measured.pass_windows(2)
    part.value, whole.value = 100, 200
    assert measured.metrics.read() == {"compression-rate-avg": 0.1}


def test_a_metric_that_came_later_counts_from_nothing() -> None:
    measured = Measured()
    measured.pass_windows(3)
    measured.metrics.counter("byte-total").value += 60
    measured.time.now += 30
    assert measured.metrics.read()["byte-rate"] == pytest.approx(60 / 60)


def test_what_connections_do_is_counted_in_all_and_by_node() -> None:
    measured = Measured()
    measuring = Measuring(measured.metrics, ClientKind.CONSUMER)
    measuring.sent("node 1", ApiKey.HEARTBEAT, 40)
    measuring.answered("node 1", ApiKey.HEARTBEAT, 0.25, 8)
    read = measured.metrics.read()
    for suffix in ("", '{node-id="node-1"}'):
        assert read[f"request-total{suffix}"] == 1
        assert read[f"outgoing-byte-total{suffix}"] == 40
        assert read[f"request-latency-max{suffix}"] == 250
    assert (read["heartbeat-total"], read["heartbeat-response-time-max"]) == (1, 250)


async def test_a_clients_samples_end_by_the_clock_and_with_it() -> None:
    cluster = Cluster()
    core = cluster.core(metrics_sample_window_ms=1000)
    await core.start()
    core.metrics.counter("byte-total").value += 10
    assert core.metrics.read()["byte-rate"] == 10
    await cluster.time.advance(2.5)
    assert core.metrics.read()["byte-rate"] == 0
    await core.close()
    assert cluster.time.timers() == 0
