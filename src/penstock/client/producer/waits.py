"""What the caller's side may have to wait for, as values.

The code that prepares records is the same for both faces, so it cannot wait by itself: it is a generator that yields
one of these, and the face that drives it waits in its own way, for `max.block.ms` in all.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from penstock.client.producer.memory import Ticket

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TopicWait:
    """Until the topic is known, and the partition in it, if one was named. Sent back: None."""

    topic: str
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryWait:
    """Until there is so much memory. Sent back: the granted `Ticket`."""

    size: int


Wait: TypeAlias = TopicWait | MemoryWait
Steps: TypeAlias = Generator[Wait, Ticket | None, T]
