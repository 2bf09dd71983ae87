"""What a client is asked to do, and how that is measured."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

Numbers = dict[str, float]

LINGER_MS: Final = 5
BATCH_BYTES: Final = 64 << 10
POLL_RECORDS: Final = 500
"""The same for every client: how long and how large batches get, and how many records one poll asks for."""
IDLE_SECONDS_MAX: Final = 20.0
"""A consumer that got nothing for so long has lost something: the load fails."""
KEYS: Final = tuple(b"key-%04d" % number for number in range(1024))


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One load of one client; what is to be consumed begins at offset 0 of partition 0."""

    bootstrap: str
    topic: str
    count: int
    value_bytes: int = 100

    @property
    def value(self) -> bytes:
        return (bytes(range(256)) * (self.value_bytes // 256 + 1))[: self.value_bytes]


@contextmanager
def measured(count: int) -> Iterator[Numbers]:
    """The numbers are there when the block has ended."""
    numbers: Numbers = {"count": count}
    # All threads of the process, system time too.
    cpu_started, started = time.process_time(), time.perf_counter()
    yield numbers
    numbers["seconds"] = time.perf_counter() - started
    numbers["cpu_seconds"] = time.process_time() - cpu_started
    numbers["memory_megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def percentiles(latencies: list[float]) -> Numbers:
    latencies.sort()
    return {
        "count": len(latencies),
        "p50_ms": 1000 * latencies[len(latencies) // 2],
        "p99_ms": 1000 * latencies[len(latencies) * 99 // 100],
    }


class Tally:
    """Counts what a consumer got, and refuses gaps and repetitions: the last offset says how many there must be."""

    def __init__(self, count: int) -> None:
        self.left = count
        self._next_offset = 0
        self._deadline = time.monotonic() + IDLE_SECONDS_MAX

    @property
    def has_begun(self) -> bool:
        """The first records make connections and warm caches: they are counted, not measured."""
        return self._next_offset > 0

    def took(self, count: int, last_offset: int) -> None:
        """After every poll: `count` records, of which the last had `last_offset`."""
        self._next_offset += count
        if last_offset != self._next_offset - 1:
            raise RuntimeError(f"{self._next_offset} records were read when offset {last_offset} was")
        self.left -= count
        self._deadline = time.monotonic() + IDLE_SECONDS_MAX

    def took_records(self, records: Sequence[Any]) -> None:
        """A poll's records of one partition, or none."""
        if records:
            self.took(len(records), records[-1].offset)
        else:
            self.took_nothing()

    def took_rows(self, batch: Any) -> None:
        """An Arrow record batch."""
        if batch.num_rows:
            self.took(batch.num_rows, batch.column("offset")[-1].as_py())
        else:
            self.took_nothing()

    def took_nothing(self) -> None:
        if time.monotonic() > self._deadline:
            raise RuntimeError(f"nothing came for {IDLE_SECONDS_MAX:.0f} s, and {self.left} records are missing")


def timed(send_and_wait: Callable[[], object], count: int) -> Numbers:
    """Latencies of one call after another, the first few not counted: they make connections and warm caches."""
    latencies: list[float] = []
    for _ in range(count // 10 + count):
        started = time.perf_counter()
        send_and_wait()
        latencies.append(time.perf_counter() - started)
    return percentiles(latencies[count // 10 :])
