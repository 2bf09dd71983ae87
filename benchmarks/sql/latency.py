"""From an event to its result, at a rate that no system finds hard: the latency of the machinery itself."""

from __future__ import annotations

import threading
import time
from typing import Any, Final

import msgspec

import penstock
from benchmarks.clients.jobs import Numbers, percentiles
from benchmarks.sql.data import event_key, event_value
from benchmarks.sql.plan import EVENTS
from benchmarks.sql.running import Contender, Job
from benchmarks.sql.topics import Topics
from penstock import TopicPartition

EVENTS_PER_SECOND: Final = 50
WARM_EVENTS: Final = 250
"""Not counted: a query's first batches are slow, and a Java machine compiles what it runs often."""
_READY_SECONDS_MAX: Final = 300.0
_QUIET_SECONDS_MAX: Final = 60.0
_POLL_MS: Final = 200


def measure(contender: Contender, job: Job, topics: Topics, seconds: float) -> Numbers:
    """`job.total` is of no account. Every event has a key of its own for some minutes, so each gives a result."""
    running = contender.start(job)
    try:
        with _Results(topics.bootstrap, job.result) as results, _Sender(topics.bootstrap) as sender:
            sender.send_until(results.arrived, _READY_SECONDS_MAX)
            count = WARM_EVENTS + int(EVENTS_PER_SECOND * seconds)
            sender.begin(count)
            latencies = results.take(sender.began_us, count)
            sender.join()
    finally:
        running.stop()
    return percentiles(latencies[WARM_EVENTS:])


class _Sender:
    """Events at an even pace, each sent by itself, with the time at which it was."""

    def __init__(self, bootstrap: str) -> None:
        self._producer = penstock.Producer(bootstrap_servers=bootstrap, linger_ms=0)
        self._number = 0
        self._thread: threading.Thread | None = None
        self.began_us = 0
        """No event that counts was sent before."""

    def __enter__(self) -> _Sender:
        return self

    def __exit__(self, *_: object) -> None:
        self._producer.close(5)

    def send_until(self, done: Any, seconds: float) -> None:
        """One now and then until a result came: the query runs."""
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                raise RuntimeError(f"no result came within {seconds:.0f} s")
            self._send(self._number)
            self._number += 1
            time.sleep(_POLL_MS / 1000)

    def begin(self, count: int) -> None:
        self.began_us = time.time_ns() // 1_000
        self._thread = threading.Thread(target=self._run, args=(self._number, count), name="events", daemon=True)
        self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()

    def _run(self, first: int, count: int) -> None:
        began = time.perf_counter()
        for index in range(count):
            pause = began + index / EVENTS_PER_SECOND - time.perf_counter()
            if pause > 0:
                time.sleep(pause)
            self._send(first + index)

    def _send(self, number: int) -> None:
        value = event_value(number, time.time_ns() // 1_000, is_error=True)
        self._producer.send(EVENTS, value, event_key(number))


class _Results:
    """A reader of committed results."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        self._consumer = penstock.Consumer({"bootstrap.servers": bootstrap, **settings})
        infos = self._consumer.partitions_for(topic)
        self._consumer.assign([TopicPartition(topic, info.partition) for info in infos])

    def __enter__(self) -> _Results:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def arrived(self) -> bool:
        return bool(self._consumer.poll(_POLL_MS))

    def take(self, began_us: int, count: int) -> list[float]:
        """Seconds from sending to arriving of the events sent since `began_us`, as they came."""
        latencies: list[float] = []
        quiet_since = time.monotonic()
        while len(latencies) < count:
            records = self._consumer.poll(_POLL_MS)
            now_us = time.time_ns() // 1_000
            sent = [int(msgspec.json.decode(record.value)["SENT"]) for record in records]
            latencies += [(now_us - each) / 1e6 for each in sent if each >= began_us]
            if records:
                quiet_since = time.monotonic()
            elif time.monotonic() - quiet_since > _QUIET_SECONDS_MAX:
                raise RuntimeError(f"{len(latencies)} of {count} results came")
        return latencies
