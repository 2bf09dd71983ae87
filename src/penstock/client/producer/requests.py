"""Produce, versions 3 to 13, from the producer's side: batches into a request without copying them.

A request is a list of parts: the bytes between the batches are built here, the batches go to the socket from where they
are. Versions: 9 is flexible, 13 names topics by id.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final, NamedTuple
from uuid import UUID

from penstock.base.ports import Buffer
from penstock.base.types import TopicPartition
from penstock.client.producer.batch import ProducerBatch
from penstock.network.encoding import EncodedBody
from penstock.protocol.messages.produce import PartitionProduceResponse, ProduceResponse
from penstock.protocol.primitives import compact_string, legacy_string, nullable_compact_string, nullable_legacy_string
from penstock.protocol.primitives import varint as uvarint

LOWEST_VERSION: Final = 3
IDS_FROM: Final = 13
_FLEXIBLE_FROM: Final = 9
_HEAD: Final = struct.Struct(">hi")
_INT32: Final = struct.Struct(">i")
_TWO: Final = struct.Struct(">ii")


class TopicBatches(NamedTuple):
    """One topic's part of a request."""

    name: str
    topic_id: UUID
    batches: Sequence[ProducerBatch]


def encode_produce(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Sequence[TopicBatches]
) -> EncodedBody:
    """The body of a request; every batch is sealed."""
    if version >= _FLEXIBLE_FROM:
        return EncodedBody(_flexible(version, transactional_id, acks, timeout_ms, topics))
    return EncodedBody(_legacy(transactional_id, acks, timeout_ms, topics))


def _flexible(
    version: int, transactional_id: str | None, acks: int, timeout_ms: int, topics: Sequence[TopicBatches]
) -> list[Buffer]:
    parts: list[Buffer] = []
    text = nullable_compact_string(transactional_id) + _HEAD.pack(acks, timeout_ms) + uvarint(len(topics) + 1)
    for name, topic_id, batches in topics:
        text += topic_id.bytes if version >= IDS_FROM else compact_string(name)
        text += uvarint(len(batches) + 1)
        for batch in batches:
            assert batch.sealed is not None
            parts.append(text + _INT32.pack(batch.tp.partition) + uvarint(len(batch.sealed) + 1))
            parts.append(batch.sealed)
            text = b"\x00"  # the partition has no tagged fields
        text += b"\x00"
    parts.append(text + b"\x00")
    return parts


def _legacy(transactional_id: str | None, acks: int, timeout_ms: int, topics: Sequence[TopicBatches]) -> list[Buffer]:
    parts: list[Buffer] = []
    text = nullable_legacy_string(transactional_id) + _HEAD.pack(acks, timeout_ms) + _INT32.pack(len(topics))
    for name, _, batches in topics:
        text += legacy_string(name) + _INT32.pack(len(batches))
        for batch in batches:
            assert batch.sealed is not None
            parts.append(text + _TWO.pack(batch.tp.partition, len(batch.sealed)))
            parts.append(batch.sealed)
            text = b""
    if text:
        parts.append(text)
    return parts


def answers_by_partition(
    response: ProduceResponse, names_by_id: dict[UUID, str]
) -> dict[TopicPartition, PartitionProduceResponse]:
    """What the broker said of each partition."""
    found: dict[TopicPartition, PartitionProduceResponse] = {}
    for topic in response.responses:
        name = topic.name or names_by_id.get(topic.topic_id, "")
        for partition in topic.partition_responses:
            found[TopicPartition(name, partition.index)] = partition
    return found
