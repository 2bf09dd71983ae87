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
Topics = str | Iterable[str] | re.Pattern[str]

_FOR_EVER_S: Final = 10.0 * 365 * 24 * 3600


def seconds_of(timeout_ms: float | None) -> float:
    if timeout_ms is None:
        return _FOR_EVER_S
    if not isinstance(timeout_ms, int | float):
        raise TypeError(f"a time-out is a number of milliseconds, or None, not {timeout_ms!r}")
    return max(timeout_ms, 0.0) / 1000


def as_topics(topics: Topics | Any) -> list[str] | re.Pattern[str]:
    """Names, or a pattern. One text is one name, never a list of letters."""
    if isinstance(topics, str):
        return _as_pattern(topics) if topics.startswith("^") else topic_names([topics])
    if isinstance(topics, re.Pattern):
        return topics
    if isinstance(topics, bytes | Mapping) or not isinstance(topics, Iterable):
        raise TypeError(f"topics are given as a list of names, as one name or as a compiled pattern, not as {topics!r}")
    return topic_names(topics)


def topic_names(topics: Iterable[str]) -> list[str]:
    names = list(topics)
    for name in names:
        check_topic(name)
    return names


def check_topic(name: str | Any) -> None:
    if not isinstance(name, str):
        raise TypeError(f"the name of a topic is text, not {name!r}")
    if not name.strip():
        raise InvalidState(f"{name!r} is not the name of a topic.")
    if name.startswith("^"):
        raise InvalidState(
            f"{name!r} is not the name of a topic. A pattern is given to subscribe() by itself, not in a list: "
            f"subscribe({name!r}), or subscribe(re.compile(...)); join several with |."
        )


def _as_pattern(text: str) -> re.Pattern[str]:
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


def as_times(timestamps: Mapping[TopicPartition, int] | Any) -> dict[TopicPartition, int]:
    if not isinstance(timestamps, Mapping):
        raise TypeError(
            f"timestamps are a dict of partition to time, as {{TopicPartition('t', 0): 0}}, not {timestamps!r}"
        )
    times = {as_partition(partition): timestamp for partition, timestamp in timestamps.items()}
    for partition, timestamp in times.items():
        if not isinstance(timestamp, int):
            raise TypeError(
                f"the time for {partition} is a whole number of milliseconds since 1970, such as "
                f"int(when.timestamp() * 1000), not {timestamp!r}"
            )
        if timestamp < 0:
            raise InvalidState(f"The time {timestamp} for {partition} is before 1970.")
    return times


def as_offsets(offsets: Offsets | Any) -> dict[TopicPartition, OffsetAndMetadata]:
    if not isinstance(offsets, Mapping):
        raise TypeError(
            f"offsets to commit are a dict of partition to offset, as {{TopicPartition('t', 0): 5}}, not {offsets!r}; "
            "without any the positions are committed"
        )
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
