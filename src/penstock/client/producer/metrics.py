"""The producer's numbers under Kafka's names: counted per batch or request, in the I/O thread, never per record."""

from __future__ import annotations

from collections.abc import Callable

from penstock.base.metrics import Counter
from penstock.client.core.metrics import ClientMetrics
from penstock.client.producer.memory import MemoryPool


class ProducerMetrics:
    def __init__(self, registry: ClientMetrics, memory: MemoryPool, in_flight: Callable[[], int]) -> None:
        counter = registry.counter
        self.records_sent = counter("record-send-total")
        self.records_retried = counter("record-retry-total")
        self.records_failed = counter("record-error-total")
        self.bytes_sent = counter("byte-total")
        self.batches_sent = counter("batch-send-total")
        self.batches_split = counter("batch-split-total")
        self.requests_sent = counter("produce-request-total")
        self._plain_bytes = Counter()
        self._batch_size = registry.spread("batch-size")
        self._queue_time_ms = registry.spread("record-queue-time")
        registry.ratio("record-size-avg", self._plain_bytes, self.records_sent)
        registry.ratio("records-per-request-avg", self.records_sent, self.requests_sent)
        registry.ratio("compression-rate-avg", self.bytes_sent, self._plain_bytes)
        gauges: dict[str, Callable[[], float]] = {
            "requests-in-flight": in_flight,
            "buffer-total-bytes": lambda: memory.total_bytes,
            "buffer-available-bytes": lambda: memory.free_bytes,
            "waiting-threads": lambda: memory.waiting,
        }
        for name, read in gauges.items():
            registry.gauge(name, read)

    def batch_sent(self, size: int, plain_size: int, records: int, waited_s: float) -> None:
        """`size` as it is sent, `plain_size` before it was compressed."""
        self.batches_sent.value += 1
        self.bytes_sent.value += size
        self.records_sent.value += records
        self._plain_bytes.value += plain_size
        self._batch_size.record(size)
        self._queue_time_ms.record(waited_s * 1000)
