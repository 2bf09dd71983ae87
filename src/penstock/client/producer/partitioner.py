"""Which partition a record goes to.

In order: the partition the user named; the user's own partitioner; the hash of the key (murmur2, the same partition as
Java's); without a key one of three ways: sticky, round robin or random. None of the three chooses a partition without a
leader while there is one that has a leader.

Sticky (KIP-794): keyless records go to one partition until about `batch.size` bytes went there, then another is drawn.
The draw is made between batches: when a batch is full or was taken to be sent, its bytes are counted. With the adaptive
setting the draw favours partitions whose queues are short, so slow brokers get fewer records: a queue of q batches
among queues of at most m has the weight m + 1 - q. All numbers are snapshots; callers of any thread draw without a
lock, because a lost update of a statistic does no harm.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, Final, Protocol

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.core.types import ClusterSnapshot
from penstock.client.producer.settings import ProducerSettings
from penstock.records.kernel import murmur2, partition_for_key

__all__ = [
    "Keyless",
    "Partitioner",
    "RandomChoice",
    "RoundRobin",
    "Sticky",
    "draw",
    "make_keyless",
    "murmur2",
    "partition_for_key",
    "resolve_partitioner",
]

_BUILT_IN_PARTITIONERS: Final = ("DefaultPartitioner", "UniformStickyPartitioner", "")


class Partitioner(Protocol):
    """A user's own. A plain function of the same arguments will do; `close()` is called if there is one."""

    def partition(
        self, topic: str, key: Any, key_bytes: bytes | None, value: Any, value_bytes: bytes | None,
        snapshot: ClusterSnapshot, /,
    ) -> int:  # fmt: skip
        """The partition's number. Called in the thread that called `send`."""


class Keyless(Protocol):
    """A way to spread the records of one topic that have no key."""

    current: int
    """The partition of the next record; -1 when `next` must be asked for every record."""

    def next(self, candidates: Sequence[int], loads: Sequence[int]) -> int:
        """Another partition; `loads` are the batches that wait in the queue of each candidate."""

    def batch_closed(self, partition: int, size: int) -> bool:
        """Count the bytes of a batch that is closed; whether `next` must be asked before the next record."""


class Sticky:
    def __init__(self, rng: random.Random, *, switch_bytes: int, adaptive: bool = True) -> None:
        self.current = -1
        self._rng = rng
        self._switch_bytes = switch_bytes
        self._adaptive = adaptive
        self._bytes = 0

    def next(self, candidates: Sequence[int], loads: Sequence[int]) -> int:
        self._bytes = 0
        self.current = draw(self._rng, candidates, loads if self._adaptive else ())
        return self.current

    def batch_closed(self, partition: int, size: int) -> bool:
        if partition != self.current:
            return False
        self._bytes += size
        if self._bytes < self._switch_bytes:
            return False
        self.current = -1
        return True


class RoundRobin:
    def __init__(self, start: int = 0) -> None:
        self.current = -1
        self._count = start

    def next(self, candidates: Sequence[int], loads: Sequence[int]) -> int:
        self._count += 1
        return candidates[self._count % len(candidates)]

    def batch_closed(self, partition: int, size: int) -> bool:
        return False


class RandomChoice:
    def __init__(self, rng: random.Random) -> None:
        self.current = -1
        self._rng = rng

    def next(self, candidates: Sequence[int], loads: Sequence[int]) -> int:
        return candidates[int(self._rng.random() * len(candidates))]

    def batch_closed(self, partition: int, size: int) -> bool:
        return False


def draw(rng: random.Random, candidates: Sequence[int], loads: Sequence[int] = ()) -> int:
    """One of `candidates`, the less loaded ones more often; all alike without loads."""
    if len(candidates) == 1:
        return candidates[0]
    if not loads or min(loads) == max(loads):
        return candidates[int(rng.random() * len(candidates))]
    highest = max(loads) + 1
    sums = list(accumulate(highest - load for load in loads))
    return candidates[bisect_right(sums, int(rng.random() * sums[-1]))]


def make_keyless(settings: ProducerSettings, rng: random.Random) -> Keyless:
    if settings.keyless == "round_robin":
        return RoundRobin(rng.randrange(1 << 16))
    if settings.keyless == "random":
        return RandomChoice(rng)
    return Sticky(rng, switch_bytes=settings.batch_size, adaptive=settings.adaptive)


def resolve_partitioner(spec: Any) -> Callable[..., int] | None:
    """A user's partitioner as a function; None for the built-in one."""
    if spec is None or (isinstance(spec, str) and spec.rpartition(".")[2] in _BUILT_IN_PARTITIONERS):
        return None
    try:
        instance = spec() if isinstance(spec, type) else spec
    except TypeError as error:
        raise _no_partitioner(f"an object of {spec.__qualname__} cannot be made without arguments: {error}") from error
    # Text has a method of that name too.
    method = None if isinstance(spec, str) else getattr(instance, "partition", instance)
    if not callable(method):
        raise _no_partitioner(f"{spec!r} cannot choose partitions")
    chosen: Callable[..., int] = method
    return chosen


def _no_partitioner(why: str) -> KafkaError:
    return KafkaError(
        ErrorCode.INVALID_CONFIG,
        f"{why}: give a function of (topic, key, key_bytes, value, value_bytes, snapshot), or an object with such a "
        "method `partition`; for keyless records only, set penstock.partitioner.keyless to sticky, round_robin or "
        "random",
    )
