from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base import metric_names
from penstock.base.metrics import Histogram, Metrics


def test_the_same_name_and_labels_are_the_same_metric() -> None:
    metrics = Metrics()
    counter = metrics.counter("messages_total", topic="a", kind="x")
    counter.value += 3
    assert metrics.counter("messages_total", kind="x", topic="a") is counter
    assert metrics.counter("messages_total", topic="b", kind="x") is not counter
    with pytest.raises(TypeError, match="messages_total is a counter, not a histogram"):
        metrics.histogram("messages_total", topic="a", kind="x")


def test_rendering() -> None:
    metrics = Metrics()
    metrics.counter(metric_names.MESSAGES_IN, topic='a"b\\c\nd').value += 2
    metrics.counter(metric_names.MESSAGES_IN).value += 5
    metrics.gauge("depth", lambda: 1.5)
    metrics.histogram("wait_ms", request="Fetch").record(0.004)
    assert metrics.render_prometheus().splitlines() == [
        "# TYPE depth gauge",
        "depth 1.5",
        "# HELP kafka_server_brokertopicmetrics_messagesin_total Records appended.",
        "# TYPE kafka_server_brokertopicmetrics_messagesin_total counter",
        "kafka_server_brokertopicmetrics_messagesin_total 5",
        r'kafka_server_brokertopicmetrics_messagesin_total{topic="a\"b\\c\nd"} 2',
        "# TYPE wait_ms summary",
        *(f'wait_ms{{request="Fetch",quantile="{q}"}} 3.8912' for q in (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)),
        'wait_ms_sum{request="Fetch"} 4',
        'wait_ms_count{request="Fetch"} 1',
    ]


def test_a_gauge_is_read_when_rendered_and_a_later_one_replaces_it() -> None:
    metrics, values = Metrics(), [1]
    metrics.gauge("depth", lambda: values[0])
    values[0] = 2
    assert "depth 2" in metrics.render_prometheus()
    metrics.gauge("depth", lambda: 7)
    assert "depth 7" in metrics.render_prometheus()


def test_a_deleted_topic_is_forgotten() -> None:
    metrics = Metrics()
    kept, gone = metrics.counter("bytes_total", topic="a"), metrics.counter("bytes_total", topic="b")
    metrics.gauge("size", lambda: 0, topic="b", partition="0")
    metrics.remove(topic="b")
    assert metrics.counter("bytes_total", topic="a") is kept
    assert metrics.counter("bytes_total", topic="b") is not gone
    assert "size" not in metrics.render_prometheus()


def test_an_empty_histogram() -> None:
    assert Histogram().percentile(0.99) == 0.0


@given(st.lists(st.floats(1e-5, 1e5), min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99]))
def test_percentiles_are_near(values: list[float], quantile: float) -> None:
    histogram = Histogram()
    for value in values:
        histogram.record(value)
    exact = next(value for rank, value in enumerate(sorted(values), 1) if rank >= quantile * len(values))
    assert histogram.percentile(quantile) == pytest.approx(exact, rel=0.07)
    assert histogram.count == len(values)
    assert histogram.sum == pytest.approx(sum(values))


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-9, 1e9])
def test_values_beyond_the_buckets_are_counted(value: float) -> None:
    histogram = Histogram()
    histogram.record(value)
    assert histogram.count == 1
    assert histogram.percentile(1.0) >= 0


def test_names_are_prometheus_names_and_have_a_sentence() -> None:
    names = {value for name, value in vars(metric_names).items() if name[0].isupper() and isinstance(value, str)}
    assert names == set(metric_names.HELP)
    assert set(metric_names.LABELS) <= names
    assert all(re.fullmatch("[a-z_]+", name) for name in names)
