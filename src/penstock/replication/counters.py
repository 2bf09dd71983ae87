"""Metrics of appends and fetches, looked up once per topic so that counting is an addition."""

from __future__ import annotations

from penstock.base import metric_names as names
from penstock.base.metrics import Counter, Metrics


class TopicCounters:
    """The counters of one topic and those over all topics, which grow together."""

    __slots__ = (
        "bytes_in",
        "bytes_in_all",
        "bytes_out",
        "bytes_out_all",
        "bytes_rejected",
        "bytes_rejected_all",
        "failed_fetches",
        "failed_fetches_all",
        "failed_produces",
        "failed_produces_all",
        "fetches",
        "fetches_all",
        "messages_in",
        "messages_in_all",
        "produces",
        "produces_all",
    )

    def __init__(self, metrics: Metrics, topic: str) -> None:
        def pair(name: str) -> tuple[Counter, Counter]:
            return metrics.counter(name, topic=topic), metrics.counter(name)

        self.bytes_in, self.bytes_in_all = pair(names.BYTES_IN)
        self.bytes_out, self.bytes_out_all = pair(names.BYTES_OUT)
        self.bytes_rejected, self.bytes_rejected_all = pair(names.BYTES_REJECTED)
        self.messages_in, self.messages_in_all = pair(names.MESSAGES_IN)
        self.produces, self.produces_all = pair(names.TOTAL_PRODUCE_REQUESTS)
        self.failed_produces, self.failed_produces_all = pair(names.FAILED_PRODUCE_REQUESTS)
        self.fetches, self.fetches_all = pair(names.TOTAL_FETCH_REQUESTS)
        self.failed_fetches, self.failed_fetches_all = pair(names.FAILED_FETCH_REQUESTS)

    def count_rejected(self, size: int) -> None:
        self.bytes_rejected.value += size
        self.bytes_rejected_all.value += size
        self.produces.value += 1
        self.produces_all.value += 1
        self.failed_produces.value += 1
        self.failed_produces_all.value += 1

    def count_failed_fetch(self) -> None:
        self.failed_fetches.value += 1
        self.failed_fetches_all.value += 1
