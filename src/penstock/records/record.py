"""A record as a person or a program sees it: before it goes into a batch, and after it came out of one."""

from __future__ import annotations

from typing import Any, NamedTuple

Header = tuple[str, bytes | None]


class Record(NamedTuple):
    """What a producer hands over. `timestamp` is milliseconds since the epoch."""

    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class DecodedRecord(NamedTuple):
    """What a reader of a log gets; `offset` and `timestamp` are absolute."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class ConsumerRecord(NamedTuple):
    """What a consumer gets. `key` and `value` are bytes or None, or whatever the consumer's deserializers make of them.

    `timestamp_type` is 0 when the producer set the timestamp and 1 when the broker did; `leader_epoch` is -1 when it
    is not known.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[Header, ...] = ()
    leader_epoch: int = -1
