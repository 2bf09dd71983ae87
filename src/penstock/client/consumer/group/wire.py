"""What members tell one another through the coordinator: subscriptions to the leader, assignments back.

Each is a version followed by the message of that version. A later version than ours is read as ours: what it adds
stands at the end.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final, TypeVar

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.balancing import by_topic
from penstock.client.consumer.assignors.base import Assignment, MemberSubscription
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages.consumer_protocol import (
    AssignmentTopicPartition,
    ConsumerProtocolAssignment,
    ConsumerProtocolSubscription,
    SubscriptionTopicPartition,
)
from penstock.protocol.schema import Message

PROTOCOL_TYPE: Final = "consumer"
VERSION: Final = 3
_VERSION = struct.Struct(">h")

M = TypeVar("M", bound=Message)


def encode_subscription(subscription: MemberSubscription) -> bytes:
    return _encode(
        ConsumerProtocolSubscription(
            topics=sorted(subscription.topics),
            user_data=subscription.user_data,
            owned_partitions=[
                SubscriptionTopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(subscription.owned).items()
            ],
            generation_id=subscription.generation_id,
            rack_id=subscription.rack,
        )
    )


def decode_subscription(data: bytes, instance_id: str | None = None) -> MemberSubscription:
    told = _decode(ConsumerProtocolSubscription, data)
    return MemberSubscription(
        topics=tuple(told.topics),
        owned=tuple(_partitions((each.topic, each.partitions) for each in told.owned_partitions)),
        user_data=told.user_data,
        generation_id=told.generation_id,
        rack=told.rack_id,
        instance_id=instance_id,
    )


def encode_assignment(assignment: Assignment) -> bytes:
    return _encode(
        ConsumerProtocolAssignment(
            assigned_partitions=[
                AssignmentTopicPartition(topic=topic, partitions=numbers)
                for topic, numbers in by_topic(assignment.partitions).items()
            ],
            user_data=assignment.user_data,
        )
    )


def decode_assignment(data: bytes) -> Assignment:
    """No bytes at all are no partitions: the leader knew nothing of this member."""
    if not data:
        return Assignment()
    told = _decode(ConsumerProtocolAssignment, data)
    partitions = _partitions((each.topic, each.partitions) for each in told.assigned_partitions)
    return Assignment(partitions=tuple(partitions), user_data=told.user_data)


def _partitions(topics: Iterable[tuple[str, list[int]]]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, numbers in topics for number in numbers]


def _encode(message: Message) -> bytes:
    return _VERSION.pack(VERSION) + encode(message, VERSION, False)


def _decode(kind: type[M], data: bytes) -> M:
    (version,) = _VERSION.unpack_from(data)
    return decode(kind, min(max(version, 0), VERSION), False, bytes(data[_VERSION.size :]))
