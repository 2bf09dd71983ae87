"""Metrics: counters, gauges and histograms in one registry, rendered as Prometheus text.

Hot code asks the registry once, keeps the object, and then does `counter.value += n` or `histogram.record(seconds)`;
both cost a fraction of a microsecond, take no lock (everything runs on the loop) and start no thread. Asking twice for
the same name and labels gives the same object, so a topic's counter can also be looked up again by its name.

Names are those that the usual JMX exporter rules give to Kafka's own metrics, so dashboards made for Kafka show
Penstock; `penstock.base.metric_names` has them. A histogram is rendered as a summary, because that is what the
exporter makes of Kafka's histograms: `name{quantile="0.99"}`, `name_sum` and `name_count`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar

from penstock.base.metric_names import HELP

Labels = tuple[tuple[str, str], ...]

QUANTILES: Final = (0.5, 0.75, 0.95, 0.98, 0.99, 0.999)


class Counter:
    """A number that only grows. Hot code adds to `value` directly."""

    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 0


class Gauge:
    """A number that is read when somebody looks."""

    __slots__ = ("read",)

    def __init__(self, read: Callable[[], float]) -> None:
        self.read = read

    @property
    def value(self) -> float:
        return self.read()


_STEPS_PER_OCTAVE = 8
_OCTAVES = 44
_BUCKET_COUNT = _STEPS_PER_OCTAVE * (_OCTAVES - 4) + 16
_LARGEST = (1 << _OCTAVES) - 1


class Histogram:
    """Counts values in fixed buckets, eight to each doubling: a quantile is right to about 6 %.

    Values are seconds unless `resolution` says otherwise; everything below one `resolution` (0.1 us) is one bucket, and
    the last bucket takes what is beyond its range (20 days). Counts are kept since the start.
    """

    __slots__ = ("_buckets", "_per_unit", "count", "sum")

    def __init__(self, resolution: float = 1e-7) -> None:
        self._buckets = [0] * _BUCKET_COUNT
        self._per_unit = 1 / resolution
        self.count = 0
        self.sum = 0.0

    def record(self, value: float) -> None:
        self.count += 1
        self.sum += value
        units = int(value * self._per_unit)
        # The four highest bits of the number choose the bucket: its octave, and one of eight steps in it.
        shift = units.bit_length() - 4
        if shift <= 0:
            self._buckets[units if units > 0 else 0] += 1
        elif units <= _LARGEST:
            self._buckets[shift * _STEPS_PER_OCTAVE + (units >> shift)] += 1
        else:
            self._buckets[-1] += 1

    def percentile(self, quantile: float) -> float:
        """The value below which `quantile` (0 to 1) of the recorded ones lie; 0 when there are none."""
        if not self.count:
            return 0.0
        wanted = quantile * self.count
        seen = 0
        for index, in_bucket in enumerate(self._buckets):
            seen += in_bucket
            if in_bucket and seen >= wanted:
                low, high = _bucket_bounds(index)
                return (low + high) / 2 / self._per_unit
        return _LARGEST / self._per_unit


def _bucket_bounds(index: int) -> tuple[int, int]:
    if index < 16:
        return index, index + 1
    shift, step = divmod(index - _STEPS_PER_OCTAVE, _STEPS_PER_OCTAVE)
    low = (step + _STEPS_PER_OCTAVE) << shift
    return low, low + (1 << shift)


Metric = Counter | Gauge | Histogram
M = TypeVar("M", Counter, Gauge, Histogram)


class Metrics:
    """The registry: one family per name, one metric per set of labels in it."""

    def __init__(self) -> None:
        self._families: dict[str, dict[Labels, Metric]] = {}
        self._scales: dict[str, float] = {}

    def counter(self, name: str, **labels: str) -> Counter:
        return self._get(name, labels, Counter, Counter)

    def gauge(self, name: str, read: Callable[[], float], **labels: str) -> Gauge:
        """A later gauge of the same name and labels replaces the earlier one: its owner was opened again."""
        gauge = self._get(name, labels, Gauge, lambda: Gauge(read))
        gauge.read = read
        return gauge

    def histogram(self, name: str, *, resolution: float = 1e-7, scale: float | None = None, **labels: str) -> Histogram:
        """`scale` multiplies what is shown. By itself it is 1000 for a name in `ms`, because seconds are recorded."""
        self._scales[name] = (1000.0 if name.endswith("ms") else 1.0) if scale is None else scale
        return self._get(name, labels, Histogram, lambda: Histogram(resolution))

    def remove(self, **labels: str) -> None:
        """Forget every metric that has all these labels, as when a topic is deleted."""
        unwanted = set(labels.items())
        for family in self._families.values():
            for key in [key for key in family if unwanted <= set(key)]:
                del family[key]

    def _get(self, name: str, labels: dict[str, str], kind: type[M], make: Callable[[], M]) -> M:
        family = self._families.setdefault(name, {})
        key = tuple(sorted(labels.items()))
        metric = family.get(key)
        if metric is None:
            metric = family[key] = make()
        if not isinstance(metric, kind):
            raise TypeError(f"{name} is a {type(metric).__name__.lower()}, not a {kind.__name__.lower()}")
        return metric

    def render_prometheus(self) -> str:
        return "\n".join(line for name in sorted(self._families) for line in self._family_lines(name)) + "\n"

    def _family_lines(self, name: str) -> Iterator[str]:
        family = self._families[name]
        if not family:
            return
        if name in HELP:
            yield f"# HELP {name} {HELP[name]}"
        yield f"# TYPE {name} {_PROMETHEUS_TYPES[type(next(iter(family.values())))]}"
        for labels, metric in sorted(family.items(), key=lambda item: item[0]):
            if isinstance(metric, Histogram):
                yield from _summary_lines(name, labels, metric, self._scales[name])
            else:
                yield f"{name}{_label_text(labels)} {_number(metric.value)}"


_PROMETHEUS_TYPES: dict[type, str] = {Counter: "counter", Gauge: "gauge", Histogram: "summary"}


def _summary_lines(name: str, labels: Labels, histogram: Histogram, scale: float) -> Iterator[str]:
    for quantile in QUANTILES:
        with_quantile = (*labels, ("quantile", str(quantile)))
        yield f"{name}{_label_text(with_quantile)} {_number(histogram.percentile(quantile) * scale)}"
    yield f"{name}_sum{_label_text(labels)} {_number(histogram.sum * scale)}"
    yield f"{name}_count{_label_text(labels)} {histogram.count}"


def _label_text(labels: Labels) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


def _number(value: float) -> str:
    if isinstance(value, int):
        return str(value)
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else f"{value:.9g}"
