"""Checks that need more than one key, and the warnings that a start should print.

Each check returns problems instead of raising, so that all of them are reported together. A key whose own text is bad
has its default here, which makes no further problem.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from penstock.base.config import broker_keys as keys
from penstock.base.config.declaration import Key, Problem
from penstock.base.config.effective import (
    PlainValues,
    connections_per_ip_overrides,
    log_directories,
    log_retention_ms,
    log_roll_jitter_ms,
    log_roll_ms,
)
from penstock.base.config.listener_checks import check_listeners
from penstock.base.config.listeners import Listener
from penstock.base.config.resolving import problem_with
from penstock.base.config.sources import Setting
from penstock.base.config.warnings import collect_warnings


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    problems: tuple[Problem, ...]
    warnings: tuple[str, ...]
    listeners: tuple[Listener, ...]
    advertised_listeners: tuple[Listener, ...]


# The left must not exceed the right.
_ORDERED: tuple[tuple[Key[int], Key[int]], ...] = (
    (keys.REPLICA_FETCH_WAIT_MAX_MS, keys.REPLICA_SOCKET_TIMEOUT_MS),
    (keys.REPLICA_FETCH_WAIT_MAX_MS, keys.REPLICA_LAG_TIME_MAX_MS),
    (keys.LOG_CLEANER_MIN_COMPACTION_LAG_MS, keys.LOG_CLEANER_MAX_COMPACTION_LAG_MS),
    (keys.GROUP_MIN_SESSION_TIMEOUT_MS, keys.GROUP_MAX_SESSION_TIMEOUT_MS),
    (keys.GROUP_CONSUMER_MIN_SESSION_TIMEOUT_MS, keys.GROUP_CONSUMER_SESSION_TIMEOUT_MS),
    (keys.GROUP_CONSUMER_SESSION_TIMEOUT_MS, keys.GROUP_CONSUMER_MAX_SESSION_TIMEOUT_MS),
    (keys.GROUP_CONSUMER_MIN_HEARTBEAT_INTERVAL_MS, keys.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS),
    (keys.GROUP_CONSUMER_HEARTBEAT_INTERVAL_MS, keys.GROUP_CONSUMER_MAX_HEARTBEAT_INTERVAL_MS),
)


def check_values(values: dict[str, Any], settings: Mapping[str, Setting], hostname: str) -> Report:
    seen = PlainValues(values)
    report = check_listeners(seen, settings, hostname)
    problems = (*_check_identity(seen, settings), *_check_numbers(seen, settings), *report.problems)
    return Report(
        problems=problems,
        warnings=collect_warnings(seen, settings, left_closed=report.left_closed),
        listeners=report.listeners,
        advertised_listeners=report.advertised_listeners,
    )


def _check_identity(values: PlainValues, settings: Mapping[str, Setting]) -> Iterator[Problem]:
    if values[keys.NODE_ID] != values[keys.BROKER_ID] and keys.BROKER_ID.name in settings:
        reason = f"must be the same as {keys.NODE_ID.name}, which is {values[keys.NODE_ID]}"
        yield problem_with(keys.BROKER_ID, settings, reason)
    elif values[keys.NODE_ID] < 0:
        yield problem_with(keys.BROKER_ID, settings, "a broker id must be at least 0")
    if not log_directories(values):
        yield problem_with(keys.LOG_DIRS, settings, "name at least one directory")


def _check_numbers(values: PlainValues, settings: Mapping[str, Setting]) -> Iterator[Problem]:
    for low, high in _ORDERED:
        if values[low] > values[high]:
            reason = f"must not be above {high.name}, which is {values[high]}"
            yield problem_with(low if low.name in settings else high, settings, reason)
    if log_retention_ms(values) == 0:
        yield problem_with(keys.LOG_RETENTION_MS, settings, "must be at least 1, or -1 to keep records for ever")
    if log_roll_ms(values) < 1:
        yield problem_with(keys.LOG_ROLL_MS, settings, "must be at least 1")
    if log_roll_jitter_ms(values) < 0:
        yield problem_with(keys.LOG_ROLL_JITTER_MS, settings, "must be at least 0")
    queued, largest = values[keys.QUEUED_MAX_REQUEST_BYTES], values[keys.SOCKET_REQUEST_MAX_BYTES]
    if 0 < queued < largest:
        reason = f"must be at least {keys.SOCKET_REQUEST_MAX_BYTES.name}, which is {largest}, or -1 for no limit"
        yield problem_with(keys.QUEUED_MAX_REQUEST_BYTES, settings, reason)
    if not 0 <= values[keys.OFFSETS_TOPIC_COMPRESSION_CODEC] <= 4:
        reason = "must be 0 (none), 1 (gzip), 2 (snappy), 3 (lz4) or 4 (zstd)"
        yield problem_with(keys.OFFSETS_TOPIC_COMPRESSION_CODEC, settings, reason)
    yield from _check_connection_limits(values, settings)


def _check_connection_limits(values: PlainValues, settings: Mapping[str, Setting]) -> Iterator[Problem]:
    try:
        overrides = connections_per_ip_overrides(values)
    except ValueError as error:
        yield problem_with(keys.MAX_CONNECTIONS_PER_IP_OVERRIDES, settings, str(error))
        return
    if values[keys.MAX_CONNECTIONS_PER_IP] == 0 and not overrides:
        reason = f"0 admits nobody unless {keys.MAX_CONNECTIONS_PER_IP_OVERRIDES.name} is set"
        yield problem_with(keys.MAX_CONNECTIONS_PER_IP, settings, reason)
