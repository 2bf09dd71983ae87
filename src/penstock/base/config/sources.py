"""Where a value comes from, as DescribeConfigs tells it, and one setting with its origin for people."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple


class Source(IntEnum):
    """The number is the code on the wire."""

    UNKNOWN = 0
    DYNAMIC_TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6


class Setting(NamedTuple):
    text: str
    origin: str
    """`server.properties:12`, `KAFKA_NODE_ID`, `flag`, `development profile`."""
