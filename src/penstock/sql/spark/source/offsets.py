"""Offsets of partitions, in the shape of Spark's Kafka connector: {"topic": {"0": 23, "1": -2}}."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from penstock.base.types import TopicPartition

Offsets = dict[TopicPartition, int]

LATEST: Final = -1
EARLIEST: Final = -2


def to_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    return found


def from_json(data: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in data.items()
        for partition, offset in partitions.items()
    }


def parse_offsets(text: str, option: str) -> Offsets:
    """The value of an option; raises ValueError that names it."""
    return from_json(_parsed(text, option, '{"topic":{"0":23,"1":-2}}'))


def parse_partitions(text: str, option: str) -> tuple[TopicPartition, ...]:
    """The value of `assign`: {"topic": [0, 1]}."""
    example = '{"topic":[0,1]}'
    data = _parsed(text, option, example)
    try:
        return tuple(TopicPartition(topic, int(each)) for topic, numbers in data.items() for each in numbers)
    except (TypeError, ValueError) as error:
        raise _no_json(text, option, example) from error


def _parsed(text: str, option: str, example: str) -> dict[str, Any]:
    try:
        data = json.loads(text)
        if isinstance(data, dict) and all(isinstance(each, dict | list) for each in data.values()):
            return data
    except ValueError:
        pass
    raise _no_json(text, option, example)


def _no_json(text: str, option: str, example: str) -> ValueError:
    return ValueError(f"option {option}: {text!r} is not understood; write JSON such as {example}")


def described(offsets: Mapping[TopicPartition, int]) -> str:
    """For messages: `orders-0 at 23, orders-1 at 40`."""
    return ", ".join(f"{partition} at {offsets[partition]}" for partition in sorted(offsets))
