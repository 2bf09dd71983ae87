"""The settings of the group coordinator, as plain values."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSettings:
    """Defaults are Kafka's; the names of the keys are beside the fields."""

    commit_timeout_ms: int = 5000
    """offsets.commit.timeout.ms"""
    min_session_timeout_ms: int = 6000
    """group.min.session.timeout.ms"""
    max_session_timeout_ms: int = 1_800_000
    """group.max.session.timeout.ms"""
    initial_rebalance_delay_ms: int = 3000
    """group.initial.rebalance.delay.ms"""
    max_size: int = 2**31 - 1
    """group.max.size"""
    new_member_join_timeout_ms: int = 300_000
    """How long the first JoinGroup of a member may be parked; Kafka has no key for it."""
    offset_metadata_max_size: int = 4096
    """offset.metadata.max.bytes"""
    offsets_retention_ms: int = 10_080 * 60_000
    """offsets.retention.minutes"""
    retention_check_interval_ms: int = 600_000
    """offsets.retention.check.interval.ms"""
