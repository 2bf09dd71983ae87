"""What the broker tells of itself when somebody looks: the cluster, its caches, the process.

Nothing is measured in between. The process is read from /proc where there is one.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Callable
from enum import IntEnum

from penstock.base import metric_names as names
from penstock.base.metrics import Metrics
from penstock.base.ports import Clock
from penstock.metadata.image import ClusterImage
from penstock.server.fetch_sessions import FetchSessions
from penstock.server.loop_idle import LoopIdle

_PAGE_BYTES = resource.getpagesize()


class BrokerState(IntEnum):
    """Kafka's numbers for the life of a broker."""

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    SHUTTING_DOWN = 7


def add_cluster_gauges(metrics: Metrics, node_id: int, image: Callable[[], ClusterImage]) -> None:
    metrics.gauge(names.ACTIVE_CONTROLLER_COUNT, lambda: image().controller_id == node_id)
    metrics.gauge(names.ACTIVE_BROKER_COUNT, lambda: len(image().brokers))
    metrics.gauge(names.GLOBAL_TOPIC_COUNT, lambda: len(image().topics))
    metrics.gauge(names.GLOBAL_PARTITION_COUNT, lambda: sum(len(topic.partitions) for topic in image().topics.values()))
    metrics.gauge(names.OFFLINE_PARTITIONS_COUNT, lambda: _leaderless_partitions(image()))


def _leaderless_partitions(image: ClusterImage) -> int:
    partitions = (partition for topic in image.topics.values() for partition in topic.partitions)
    return sum(partition.leader not in image.brokers for partition in partitions)


def add_fetch_session_gauges(metrics: Metrics, sessions: FetchSessions) -> None:
    metrics.gauge(names.FETCH_SESSIONS, lambda: len(sessions))
    metrics.gauge(names.FETCH_SESSION_EVICTIONS, lambda: sessions.evictions)


def add_process_gauges(metrics: Metrics, clock: Clock) -> None:
    started = clock.time_ms() / 1000
    metrics.gauge(names.START_TIME, lambda: started)
    metrics.gauge(names.CPU_SECONDS, time.process_time)
    metrics.gauge(names.OPEN_FILES, _open_files)
    metrics.gauge(names.MAX_FILES, lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    metrics.gauge(names.RESIDENT_MEMORY, _resident_bytes)
    idle = LoopIdle(monotonic=clock.monotonic, thread_seconds=time.thread_time)
    metrics.gauge(names.NETWORK_IDLE, idle.read)


def _open_files() -> float:
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return -1


def _resident_bytes() -> float:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * _PAGE_BYTES
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
