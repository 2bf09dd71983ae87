"""A record as a person or a program sees it: before it goes into a batch, and after it came out of one."""

from __future__ import annotations

from typing import NamedTuple

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """What a producer hands over. `timestamp` is milliseconds since the epoch."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class DecodedRecord(NamedTuple):
    """What a consumer gets; `offset` and `timestamp` are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
