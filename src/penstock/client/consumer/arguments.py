"""What users give as topics, partitions, offsets and times, checked and in one form. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from penstock.base.types import TopicPartition
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import InvalidState

Partitions = TopicPartition | Iterable[TopicPartition]
Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]

_FOR_EVER_S: Final = 10.0 * 365 * 24 * 3600


def seconds_of(timeout_ms: float | None) -> float:
    if timeout_ms is None:
        return _FOR_EVER_S
    if not isinstance(timeout_ms, int | float):
        raise TypeError(f"a time-out is a number of milliseconds, or None, not {timeout_ms!r}")
    return max(timeout_ms, 0.0) / 1000


def topic_names(topics: Iterable[str]) -> list[str]:
    if not isinstance(topics, Iterable):
        raise TypeError(f"topics are given as a list of names, as one name or as a compiled pattern, not as {topics!r}")
    names = list(topics)
    for name in names:
        if not isinstance(name, str) or not name.strip():
            raise InvalidState(f"{name!r} is not the name of a topic.")
    return names


def as_pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidState(f"The pattern {text!r} is no regular expression: {error}.") from error


def as_partitions(partitions: Partitions | Any) -> list[TopicPartition]:
    """One partition, or several; plain tuples will do."""
    if isinstance(partitions, TopicPartition):
        return [partitions]
    if isinstance(partitions, str) or not isinstance(partitions, Iterable):
        return [as_partition(partitions)]  # which refuses it
    return [as_partition(each) for each in partitions]


def as_partition(given: Any) -> TopicPartition:
    if isinstance(given, TopicPartition):
        return given
    if isinstance(given, tuple | list) and [type(each) for each in given] == [str, int]:
        return TopicPartition(*given)
    raise TypeError(f"{given!r} is not a partition: give TopicPartition(topic, number), or a tuple of the two")


def as_offsets(offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
    if offsets is None:
        return None
    chosen = {}
    for partition, offset in offsets.items():
        where = as_partition(partition)
        known = offset if isinstance(offset, OffsetAndMetadata) else OffsetAndMetadata(offset)
        if not isinstance(known.offset, int):
            raise TypeError(f"the offset of {where} is a number or an OffsetAndMetadata, not {offset!r}")
        if known.offset < 0:
            raise InvalidState(f"Offset {known.offset} of {where} cannot be committed: offsets count from 0.")
        chosen[where] = known
    return chosen
