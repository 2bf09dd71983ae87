"""What is done for the logs again and again while the broker runs.

Retention and rolling by time, flushes by time, expiry of idle producers, and the three checkpoints, each at its own
interval. A round over very many logs lets the loop serve others in between.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from penstock.base.errors import KafkaError
from penstock.base.ports import Clock, Tasks
from penstock.storage.log import Log
from penstock.storage.manager.checkpointing import (
    HIGH_WATERMARKS,
    RECOVERY_POINTS,
    START_OFFSETS,
    Checkpointer,
    CheckpointKind,
)
from penstock.storage.manager.deferred_removal import DeferredRemoval
from penstock.storage.manager.flusher import LogFlusher
from penstock.storage.manager.periodic import PeriodicDuty
from penstock.storage.manager.registry import LogRegistry
from penstock.storage.manager.settings import LogManagerSettings
from penstock.storage.segments.segment import Segment

log = logging.getLogger(__name__)

_FLUSH_CHECK_MS = 1000
_LOGS_PER_TURN = 100


class LogDuties:
    def __init__(
        self,
        settings: LogManagerSettings,
        *,
        registry: LogRegistry,
        flusher: LogFlusher,
        checkpointer: Checkpointer,
        removal: DeferredRemoval,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        self._settings = settings
        self._registry = registry
        self._flusher = flusher
        self._checkpointer = checkpointer
        self._removal = removal
        self._clock = clock
        self._tasks = tasks
        self._running: list[PeriodicDuty] = []

    def start(self) -> None:
        settings = self._settings
        duties: list[tuple[str, Callable[[], Awaitable[None]], int]] = [
            ("log retention", self.run_retention, settings.retention_check_interval_ms),
            ("log flusher", self._flusher.flush_due, min(settings.flush_scheduler_interval_ms, _FLUSH_CHECK_MS)),
            ("producer expiry", self.expire_producers, settings.producer_id_expiration_check_interval_ms),
            ("recovery points", self._checkpoint(RECOVERY_POINTS), settings.recovery_point_checkpoint_interval_ms),
            ("start offsets", self._checkpoint(START_OFFSETS), settings.start_offset_checkpoint_interval_ms),
            ("high watermarks", self._checkpoint(HIGH_WATERMARKS), settings.high_watermark_checkpoint_interval_ms),
        ]
        for name, duty, interval_ms in duties:
            first_delay_ms = min(interval_ms, settings.initial_task_delay_ms)
            self._running.append(
                PeriodicDuty(name, duty, interval_ms=interval_ms, first_delay_ms=first_delay_ms, tasks=self._tasks)
            )

    async def stop(self) -> None:
        """End them all; rounds that are under way are waited for."""
        for duty in self._running:
            await duty.stop()
        self._running.clear()

    def _checkpoint(self, kind: CheckpointKind) -> Callable[[], Awaitable[None]]:
        return lambda: self._checkpointer.write(kind)

    async def run_retention(self) -> None:
        """Roll what is old enough, and take out the segments that retention lets go."""
        await self._for_each_log(self._retain)

    def _retain(self, found: Log) -> None:
        now_ms = self._clock.time_ms()
        found.maybe_roll_by_time(now_ms)
        removed = found.delete_old_segments(now_ms)
        if removed:
            log.info("%d segments of %s are over its retention", len(removed), found.topic_partition)
            self.remove_segments(found, removed)

    def remove_segments(self, found: Log, removed: Iterable[Segment]) -> None:
        for segment in removed:
            self._removal.schedule(found.config.file_delete_delay_ms, segment.remove_files, segment.path)

    async def expire_producers(self) -> None:
        now_ms = self._clock.time_ms()
        await self._for_each_log(lambda found: found.producers.remove_expired(now_ms))

    async def _for_each_log(self, work: Callable[[Log], object]) -> None:
        for number, found in enumerate(list(self._registry.logs.values()), 1):
            # It may have been deleted, or its directory may have failed, since the round began.
            if self._registry.logs.get(found.topic_partition) is found:
                try:
                    work(found)
                except (OSError, KafkaError) as error:
                    log.error("the log of %s could not be looked after: %s", found.topic_partition, error)
            if number % _LOGS_PER_TURN == 0:
                await asyncio.sleep(0)
