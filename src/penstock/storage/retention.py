"""Which of the oldest segments of a log may go: those before its start offset, those over its size, those too old.

Only whole segments go, from the oldest on, and only below the high watermark, so that the start of a log never passes
it. Retention by size and time applies where `cleanup.policy` has `delete`. A segment's age is that of its newest
record; the active one goes as well when even that is too old (the log rolls first).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from penstock.storage.config import LogConfig
from penstock.storage.segments.segment import Segment
from penstock.storage.segments.segment_list import SegmentList


def count_deletable(
    segments: SegmentList,
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
) -> int:
    """How many of the oldest segments may be deleted, the active one perhaps among them."""
    limit = _count_below(segments, log_end_offset, high_watermark)
    rules: list[Callable[[int], bool]] = [_before_start(segments, log_start_offset)]
    if config.cleanup_delete and config.retention_bytes >= 0:
        rules.append(_over_size(segments, config.retention_bytes))
    if config.cleanup_delete and config.retention_ms >= 0:
        rules.append(lambda index: now_ms - segments[index].largest_timestamp > config.retention_ms)
    count = 0
    # One rule after the other, each going on where the one before stopped, as Kafka applies them.
    for rule in rules:
        while count < limit and rule(count):
            count += 1
    return count


def _count_below(segments: SegmentList, log_end_offset: int, high_watermark: int) -> int:
    """How many segments end at the high watermark or before; an empty active one has nothing to delete."""
    count = 0
    for index, segment in enumerate(segments):
        following = segments.after(index)
        end = log_end_offset if following is None else following.base_offset
        if high_watermark < end or (following is None and segment.size == 0):
            break
        count += 1
    return count


def _before_start(segments: SegmentList, log_start_offset: int) -> Callable[[int], bool]:
    def rule(index: int) -> bool:
        following: Segment | None = segments.after(index)
        return following is not None and following.base_offset <= log_start_offset

    return rule


def _over_size(segments: SegmentList, retention_bytes: int) -> Callable[[int], bool]:
    """A segment goes when what is kept after it still has the size to keep."""
    bytes_up_to = list(accumulate(segment.size for segment in segments))
    return lambda index: bytes_up_to[-1] - bytes_up_to[index] >= retention_bytes
