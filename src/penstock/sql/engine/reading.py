"""What all have in common that read a topic themselves: how they read it, and what they say when it is not there."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any, Final

import penstock
from penstock import KafkaError, KafkaTimeout, UnknownTopicOrPartition, aio
from penstock.base.types import TopicPartition
from penstock.client.core.types import PartitionInfo
from penstock.sql.errors import EngineError
from penstock.sql.plan.nodes import SourceNode

REFRESH_MS: Final = 5_000
"""How often whoever follows a topic looks for new partitions, and whether it is still there."""

LOOK_UP_MS: Final = 3_000
"""A topic that was made just now may not be known to every broker yet."""

READING: Final[dict[str, Any]] = {
    "isolation.level": "read_committed",
    "auto.offset.reset": "earliest",
    "enable.auto.commit": False,
    "metadata.max.age.ms": REFRESH_MS,
}


class NoTopicError(EngineError):
    """The topic of a source, or of PRINT, is not there. To ask again would not help."""

    code = 40001


def remedy(source: SourceNode) -> str:
    return f"Make the topic again, or DROP {source.kind} {source.name}."


def no_topic(topic: str, hint: str) -> NoTopicError:
    return NoTopicError(
        f"Could not find topic '{topic}', or the KSQL user does not have permissions to list the topic. "
        "Topic names are case-sensitive.",
        hint=hint,
    )


def cannot_read(topic: str, error: KafkaError) -> EngineError:
    return EngineError(f"The topic {topic} cannot be read: {sentence(error)}")


def sentence(error: Exception) -> str:
    return f"{error}".rstrip().rstrip(".") + "."


def partitions_now(consumer: penstock.Consumer, topic: str, hint: str) -> list[TopicPartition]:
    try:
        found = consumer.partitions_for(topic, LOOK_UP_MS)
    except UnknownTopicOrPartition:
        found = ()
    except KafkaTimeout:  # Nobody answered yet.
        found = consumer.partitions_for(topic)
    return _present(topic, found, hint)


async def look_up_partitions(consumer: aio.Consumer, topic: str, hint: str) -> list[TopicPartition]:
    """`partitions_now` on an event loop."""
    try:
        found = await consumer.partitions_for(topic, LOOK_UP_MS)
    except UnknownTopicOrPartition:
        found = ()
    except KafkaTimeout:
        found = await consumer.partitions_for(topic)
    return _present(topic, found, hint)


def _present(topic: str, infos: Iterable[PartitionInfo], hint: str) -> list[TopicPartition]:
    partitions = [TopicPartition(topic, info.partition) for info in infos]
    if not partitions:
        raise no_topic(topic, hint)
    return partitions


def similar_topic(name: str, names: Iterable[str]) -> str:
    """A hint for a name that no topic has."""
    by_small = {each.lower(): each for each in names}
    near = difflib.get_close_matches(name.lower(), list(by_small), n=1)
    return f"Did you mean '{by_small[near[0]]}'?" if near else "SHOW TOPICS lists those there are."
