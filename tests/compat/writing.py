"""A producer that goes on writing while something else is tested."""

from __future__ import annotations

import threading
import time
from types import TracebackType

import confluent_kafka


class SteadyWriter:
    """Writes one record to every partition of a topic about ten times a second until its block ends."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, *, interval_s: float = 0.1) -> None:
        self._producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "linger.ms": 5, "enable.idempotence": True, "message.timeout.ms": 120_000}
        )
        self._topic = topic
        self._interval_s = interval_s
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.end_offsets = dict.fromkeys(range(partitions), 0)

    def __enter__(self) -> SteadyWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()
        left = self._producer.flush(60)
        assert left == 0 or problem is not None, f"{left} records were not acknowledged"

    def _run(self) -> None:
        while not self._ending.is_set():
            for partition in self.end_offsets:
                self._producer.produce(
                    self._topic, b"line %d" % self.end_offsets[partition], b"key", partition, on_delivery=self._written
                )
                self.end_offsets[partition] += 1
            self._producer.poll(0)
            time.sleep(self._interval_s)

    def _written(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        assert error is None, error
