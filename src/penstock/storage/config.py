"""The values of a topic's configuration that its logs need.

The caller builds one from the topic's overrides and the broker's defaults; the defaults here are Kafka's. A log takes
a changed one by `Log.update_config`.
"""

from __future__ import annotations

from dataclasses import dataclass
from zlib import crc32

UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class LogConfig:
    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 3_600_000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 * 1024 * 1024
    index_interval_bytes: int = 4096
    retention_ms: int = 7 * 24 * 3_600_000
    """-1 keeps records for ever."""
    retention_bytes: int = UNLIMITED
    cleanup_delete: bool = True
    """Whether `cleanup.policy` has `delete`: only then retention by time and size trims the log."""
    cleanup_compact: bool = False
    file_delete_delay_ms: int = 60_000
    flush_messages: int = (1 << 63) - 1
    flush_ms: int = (1 << 63) - 1

    def jitter_for(self, name: str, base_offset: int) -> int:
        """How much earlier than `segment.ms` a segment rolls, so that partitions created together do not roll together.

        It is derived from the segment's name and not drawn, so that a run repeats.
        """
        bound = min(self.segment_jitter_ms, self.segment_ms)
        return crc32(f"{name}/{base_offset}".encode()) % bound if bound > 0 else 0
