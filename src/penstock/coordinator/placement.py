"""Which partition of an internal topic a group or a transactional id belongs to, by Kafka's hash of its name."""

from __future__ import annotations

from functools import lru_cache


def java_hash(text: str) -> int:
    """Java's `String.hashCode`: over UTF-16 units, in signed 32 bits."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for position in range(0, len(units), 2):
        value = (31 * value + (units[position] << 8) + units[position + 1]) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


# The same few names come in all the time.
@lru_cache(maxsize=10_000)
def partition_for(key: str, count: int) -> int:
    """The partition of `count`. The one number without a positive counterpart becomes 0, as in Kafka's `Utils.abs`."""
    value = java_hash(key)
    return 0 if value == -(1 << 31) else abs(value) % count
