"""Value types every layer shares: topic partitions, offsets with epochs, and topic ids as text."""

from __future__ import annotations

import base64
import random
from typing import NamedTuple
from uuid import UUID

ZERO_UUID = UUID(int=0)
"""The wire's word for "no id"."""

_RESERVED_UUIDS = (ZERO_UUID, UUID(int=1))


class TopicPartition(NamedTuple):
    """One partition of one topic; a plain tuple (topic, number) will do wherever one is wanted."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class OffsetAndEpoch(NamedTuple):
    offset: int
    epoch: int


def new_uuid(rng: random.Random) -> UUID:
    """A random id as Kafka makes them: never reserved, and its text never starts with a dash."""
    while True:
        candidate = UUID(int=rng.getrandbits(128), version=4)
        if candidate not in _RESERVED_UUIDS and not uuid_to_text(candidate).startswith("-"):
            return candidate


def uuid_to_text(value: UUID) -> str:
    """Kafka's 22-character form, as in `partition.metadata` and `meta.properties`."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode()


def uuid_from_text(text: str) -> UUID:
    """Read the 22-character form; ValueError names the text when it is not one."""
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise ValueError(f"not an id: {text!r}") from error
    if len(raw) != 16:
        raise ValueError(f"not an id: {text!r}")
    return UUID(bytes=raw)
