"""The producer's numbers under Kafka's names. Counters grow; averages and rates over a time are for whoever reads them.

Updated once per batch or request, in the I/O thread, never per record.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.metrics import Metrics
from penstock.client.producer.memory import MemoryPool


class ProducerMetrics:
    def __init__(self, registry: Metrics, memory: MemoryPool, in_flight: Callable[[], int]) -> None:
        counter = registry.counter
        self.records_sent = counter("record-send-total")
        self.records_retried = counter("record-retry-total")
        self.records_failed = counter("record-error-total")
        self.bytes_sent = counter("byte-total")
        self.batches_sent = counter("batch-send-total")
        self.batches_split = counter("batch-split-total")
        self.requests_sent = counter("produce-request-total")
        self.batch_bytes_max = 0
        self.compressed_bytes = 0
        self.plain_bytes = 0
        self.queue_time = registry.histogram("record-queue-time", scale=1000.0)
        self._gauges: dict[str, Callable[[], float]] = {
            "batch-size-avg": lambda: _ratio(self.bytes_sent.value, self.batches_sent.value),
            "batch-size-max": lambda: self.batch_bytes_max,
            "records-per-request-avg": lambda: _ratio(self.records_sent.value, self.requests_sent.value),
            "compression-rate-avg": lambda: _ratio(self.compressed_bytes, self.plain_bytes) or 1.0,
            "requests-in-flight": in_flight,
            "buffer-total-bytes": lambda: memory.total_bytes,
            "buffer-available-bytes": lambda: memory.free_bytes,
            "waiting-threads": lambda: memory.waiting,
        }
        for name, read in self._gauges.items():
            registry.gauge(name, read)

    def batch_sent(self, size: int, plain_size: int, records: int, waited_s: float) -> None:
        self.batches_sent.value += 1
        self.bytes_sent.value += size
        self.records_sent.value += records
        self.compressed_bytes += size
        self.plain_bytes += plain_size
        self.batch_bytes_max = max(self.batch_bytes_max, size)
        self.queue_time.record(waited_s)

    def snapshot(self) -> dict[str, float]:
        """Name to value; of what was measured in milliseconds, the average and the largest percentile."""
        values: dict[str, float] = {
            "record-send-total": self.records_sent.value,
            "record-retry-total": self.records_retried.value,
            "record-error-total": self.records_failed.value,
            "byte-total": self.bytes_sent.value,
            "batch-send-total": self.batches_sent.value,
            "batch-split-total": self.batches_split.value,
            "produce-request-total": self.requests_sent.value,
        }
        values["record-queue-time-avg"] = _ratio(self.queue_time.sum, self.queue_time.count) * 1000
        values["record-queue-time-p99"] = self.queue_time.percentile(0.99) * 1000
        return values | {name: read() for name, read in self._gauges.items()}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
