"""What the log manager is told by the broker's configuration."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.storage.producers.state import DEFAULT_EXPIRATION_MS

NEVER_MS = (1 << 63) - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogManagerSettings:
    """Kafka's keys behind the names, and Kafka's defaults."""

    recovery_threads_per_data_dir: int = 2
    """num.recovery.threads.per.data.dir"""
    retention_check_interval_ms: int = 300_000
    """log.retention.check.interval.ms"""
    flush_scheduler_interval_ms: int = NEVER_MS
    """log.flush.scheduler.interval.ms; while it is never, a topic's own flush.ms is looked after each second."""
    recovery_point_checkpoint_interval_ms: int = 60_000
    """log.flush.offset.checkpoint.interval.ms"""
    start_offset_checkpoint_interval_ms: int = 60_000
    """log.flush.start.offset.checkpoint.interval.ms"""
    high_watermark_checkpoint_interval_ms: int = 5_000
    """replica.high.watermark.checkpoint.interval.ms"""
    producer_id_expiration_ms: int = DEFAULT_EXPIRATION_MS
    """producer.id.expiration.ms"""
    producer_id_expiration_check_interval_ms: int = 600_000
    """producer.id.expiration.check.interval.ms"""
    initial_task_delay_ms: int = 30_000
    """log.initial.task.delay.ms"""
