"""What a client measures: counters, averages and rates by the names of Kafka's client metrics.

Whoever measures only adds to a number, once per request or batch. Rates and averages come from samples: every
`metrics.sample.window.ms` all numbers are noted, and `read` compares those of now with the oldest of
`metrics.num.samples` notes, so it looks back over the last half to whole minute by default. Averages and maxima of a
time in which nothing happened are NaN, as Kafka's.

A counter `x-total` is shown with `x-rate`, per second; a `Spread` as `x-avg` and `x-max`. What belongs to one node has
labels behind its name: `request-latency-avg{node-id="node-1"}`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple

from penstock.base.metrics import Counter, Gauge, Labels, Metrics
from penstock.base.ports import Clock

_TOTAL: Final = "-total"
_ELAPSED_S_MIN: Final = 1.0
"""Rates over less than this would be noise."""

Key = tuple[str, Labels]


class Spread:
    """Values whose average and largest are told; the largest of the present sample and of the one before it."""

    __slots__ = ("_before", "_largest", "count", "sum")

    def __init__(self) -> None:
        self.count = 0
        self.sum = 0.0
        self._largest = self._before = -math.inf

    def record(self, value: float) -> None:
        self.count += 1
        self.sum += value
        if value > self._largest:
            self._largest = value

    @property
    def largest(self) -> float:
        return max(self._largest, self._before)

    def end_sample(self) -> None:
        self._before, self._largest = self._largest, -math.inf


class Ratio(NamedTuple):
    """How much of `whole` is `part`: of the increases of both, not of the counters themselves."""

    part: Counter
    whole: Counter


class _Sample(NamedTuple):
    at: float
    numbers: dict[Key, tuple[float, float]]


class ClientMetrics(Metrics):
    """Counters, gauges, spreads and ratios of one client. Any thread may read; the others belong to the loop."""

    def __init__(self) -> None:
        super().__init__()
        self._spreads: dict[Key, Spread] = {}
        self._ratios: dict[Key, Ratio] = {}
        self._clock: Clock | None = None
        self._samples: deque[_Sample] = deque()

    def start(self, clock: Clock, samples_max: int) -> None:
        """The first sample begins, and `end_sample` is to be called at the end of each."""
        self._clock = clock
        self._samples = deque([_Sample(clock.monotonic(), {})], maxlen=samples_max)

    def end_sample(self) -> None:
        assert self._clock is not None
        self._samples.append(_Sample(self._clock.monotonic(), dict(self._numbers())))
        for spread in self._spreads.values():
            spread.end_sample()

    def spread(self, name: str, **labels: str) -> Spread:
        return self._spreads.setdefault((name, tuple(sorted(labels.items()))), Spread())

    def ratio(self, name: str, part: Counter, whole: Counter) -> None:
        self._ratios[name, ()] = Ratio(part, whole)

    def read(self) -> dict[str, float]:
        """Every metric as a number, by its name and labels."""
        return dict(self._values())

    def rate(self, counter: Counter, before: float) -> float:
        """Per second since the oldest sample, of which `before` is the counter's value."""
        if self._clock is None:
            return 0.0
        elapsed_s = self._clock.monotonic() - self._samples[0].at
        return (counter.value - before) / max(elapsed_s, _ELAPSED_S_MIN)

    # Other threads read while the loop adds: copies keep the walks safe.

    def _counters(self) -> Iterator[tuple[Key, Counter]]:
        for name, family in self._families.copy().items():
            for labels, metric in family.copy().items():
                if isinstance(metric, Counter):
                    yield (name, labels), metric

    def _numbers(self) -> Iterator[tuple[Key, tuple[float, float]]]:
        """All that samples keep, as pairs."""
        for key, counter in self._counters():
            yield key, (counter.value, 0.0)
        for key, spread in self._spreads.copy().items():
            yield key, (spread.sum, spread.count)
        for key, ratio in self._ratios.copy().items():
            yield key, (ratio.part.value, ratio.whole.value)

    def _values(self) -> Iterator[tuple[str, float]]:
        before = self._samples[0].numbers if self._samples else {}
        for (name, labels), counter in self._counters():
            suffix = _suffix(labels)
            yield f"{name}{suffix}", counter.value
            if name.endswith(_TOTAL):
                was, _ = before.get((name, labels), (0.0, 0.0))
                yield f"{name.removesuffix(_TOTAL)}-rate{suffix}", self.rate(counter, was)
        for (name, labels), spread in self._spreads.copy().items():
            sum_before, count_before = before.get((name, labels), (0.0, 0.0))
            count, suffix = spread.count - count_before, _suffix(labels)
            yield f"{name}-avg{suffix}", (spread.sum - sum_before) / count if count else math.nan
            yield f"{name}-max{suffix}", spread.largest if count else math.nan
        for (name, labels), ratio in self._ratios.copy().items():
            part_before, whole_before = before.get((name, labels), (0.0, 0.0))
            whole = ratio.whole.value - whole_before
            yield f"{name}{_suffix(labels)}", (ratio.part.value - part_before) / whole if whole else math.nan
        for name, family in self._families.copy().items():
            for labels, metric in family.copy().items():
                if isinstance(metric, Gauge):
                    yield f"{name}{_suffix(labels)}", metric.value


def _suffix(labels: Labels) -> str:
    return "{" + ",".join(f'{key.replace("_", "-")}="{value}"' for key, value in labels) + "}" if labels else ""
