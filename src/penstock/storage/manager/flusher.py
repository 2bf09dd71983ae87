"""Making logs durable: on request, after a roll, and when a topic's `flush.ms` is over.

Requests for the same log share a sync: one that is under way cannot serve a later request, but the next one serves all
that came meanwhile. So a topic with `flush.messages=1` costs one sync per disk turn and not one per record.
"""

from __future__ import annotations

import logging

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.metrics import Histogram
from penstock.base.ports import Clock, Tasks
from penstock.storage.log import Log
from penstock.storage.manager.registry import LogRegistry
from penstock.storage.manager.settings import NEVER_MS
from penstock.storage.manager.shared_runs import SharedRuns

log = logging.getLogger(__name__)


class LogFlusher:
    def __init__(
        self, registry: LogRegistry, runs: SharedRuns, *, clock: Clock, tasks: Tasks, times: Histogram
    ) -> None:
        self._registry = registry
        self._runs = runs
        self._clock = clock
        self._tasks = tasks
        self._times = times
        self._targets: dict[Log, int] = {}

    async def flush(self, log_to_flush: Log, up_to_offset: int | None = None) -> None:
        """Return when the log is durable up to an offset, by default its present end.

        KAFKA_STORAGE_ERROR: the disk refused, and the log directory is offline now.
        """
        target = log_to_flush.log_end_offset if up_to_offset is None else up_to_offset
        if target <= log_to_flush.recovery_point:
            return
        self._targets[log_to_flush] = max(target, self._targets.get(log_to_flush, 0))
        await self._runs.run(log_to_flush, lambda: self._flush_once(log_to_flush))

    async def _flush_once(self, log_to_flush: Log) -> None:
        # A truncation since the request may have moved the end below what was asked for.
        target = min(self._targets.pop(log_to_flush, 0), log_to_flush.log_end_offset)
        plan = log_to_flush.flush_plan(target)
        if plan is None:
            return
        started = self._clock.monotonic()
        try:
            durable_up_to = await self._tasks.run_blocking(plan)
        except OSError as error:
            raise self._failed(log_to_flush, error) from error
        self._times.record(self._clock.monotonic() - started)
        log_to_flush.flushed(durable_up_to)

    def _failed(self, log_to_flush: Log, error: OSError) -> KafkaError:
        topic_partition = log_to_flush.topic_partition
        if self._registry.logs.get(topic_partition) is log_to_flush:
            self._registry.fail_directory(self._registry.home(topic_partition), f"a sync failed: {error}")
        return KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"A sync of the log of {topic_partition} failed: {error}")

    def flush_after_roll(self, rolled: Log) -> None:
        """Everything before the active segment is written for good: make it durable in the background."""
        self._tasks.spawn(
            self._flush_quietly(rolled, rolled.active_base_offset), name=f"flush of {rolled.topic_partition}"
        )

    async def _flush_quietly(self, log_to_flush: Log, up_to_offset: int | None = None) -> None:
        try:
            await self.flush(log_to_flush, up_to_offset)
        except KafkaError as error:
            # The directory went offline with it, which was logged; there is no client to tell.
            log.debug("%s", error.message)

    async def flush_due(self) -> None:
        """Flush every log whose `flush.ms` is over."""
        now_ms = self._clock.time_ms()
        for candidate in list(self._registry.logs.values()):
            flush_ms = candidate.config.flush_ms
            if flush_ms < NEVER_MS and now_ms - candidate.last_flush_ms >= flush_ms:
                await self._flush_quietly(candidate)
