"""Values that several keys give together, by Kafka's precedence."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from penstock.base.config import broker_keys as keys
from penstock.base.config.declaration import Key

T = TypeVar("T")
_MINUTE_MS = 60_000
_HOUR_MS = 3_600_000


class Values(Protocol):
    def __getitem__(self, key: Key[T], /) -> T: ...


def log_directories(values: Values) -> tuple[str, ...]:
    """`log.dirs`, or `log.dir` when it is not set."""
    return values[keys.LOG_DIRS] or values[keys.LOG_DIR]


def log_retention_ms(values: Values) -> int:
    """-1 for ever; else milliseconds over minutes over hours."""
    millis, minutes = values[keys.LOG_RETENTION_MS], values[keys.LOG_RETENTION_MINUTES]
    if millis is None:
        hours = values[keys.LOG_RETENTION_HOURS]
        millis = hours * _HOUR_MS if minutes is None else minutes * _MINUTE_MS
    return max(millis, -1)


def log_roll_ms(values: Values) -> int:
    millis = values[keys.LOG_ROLL_MS]
    return values[keys.LOG_ROLL_HOURS] * _HOUR_MS if millis is None else millis


def log_roll_jitter_ms(values: Values) -> int:
    millis = values[keys.LOG_ROLL_JITTER_MS]
    return values[keys.LOG_ROLL_JITTER_HOURS] * _HOUR_MS if millis is None else millis


def effective_min_isr(min_insync_replicas: int, replica_count: int) -> int:
    """`min.insync.replicas`, but never more than there are replicas: otherwise nothing could ever be acknowledged."""
    return min(min_insync_replicas, max(replica_count, 1))


def connections_per_ip_overrides(values: Values) -> dict[str, int]:
    """`max.connections.per.ip.overrides` as a mapping; ValueError names a pair that is none."""
    overrides = {}
    for pair in filter(None, (part.strip() for part in values[keys.MAX_CONNECTIONS_PER_IP_OVERRIDES].split(","))):
        host, separator, count = pair.rpartition(":")
        if not separator or not host.strip() or not count.strip().isascii() or not count.strip().isdigit():
            raise ValueError(f"{pair} is not of the form address:count")
        overrides[host.strip().strip("[]")] = int(count)
    return overrides


class PlainValues:
    """Values by name, seen through keys."""

    __slots__ = ("_values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = values

    def __getitem__(self, key: Key[T], /) -> T:
        value: T = self._values[key.name]
        return value
