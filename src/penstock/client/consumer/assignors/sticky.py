"""Sticky and cooperative-sticky: even shares, and every member keeps as much as it can of what it had.

`sticky` is eager: members give everything up, then most get the same back; what a member had travels in its user data,
in the form of Java's assignor. `cooperative-sticky` takes what members say they own right now (KIP-429). A partition
that is to move is left out for the generation in which its old owner still holds it; giving it up makes the old owner
join again, and that rebalance hands it to the new one.

Members that tell their rack get partitions near to them as far as shares stay even, also such as were another's.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import ClassVar

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.balancing import Claim, Given, balance, by_topic, owners_of
from penstock.client.consumer.assignors.base import (
    NO_GENERATION,
    Assignment,
    AssignorBase,
    MemberSubscription,
    RebalanceProtocol,
    in_order,
    members_by_topic,
    partitions_of,
)
from penstock.client.consumer.assignors.racks import Racks
from penstock.client.core.types import ClusterSnapshot, ConsumerGroupMetadata

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


class StickyAssignor(AssignorBase):
    """Balanced, and each member keeps as much as it can; everything stops during a rebalance."""

    name = "sticky"

    def __init__(self) -> None:
        self._had: tuple[TopicPartition, ...] | None = None
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return None if self._had is None else encode_sticky(self._had, self._generation)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._had = assignment.partitions
        self._generation = metadata.generation_id

    def assign(self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]) -> Given:
        """Who gets what."""
        return _assign(cluster, subscriptions, {member: _sticky_claim(one) for member, one in subscriptions.items()})


class CooperativeStickyAssignor(AssignorBase):
    """Balanced, and each member keeps as much as it can and goes on reading it during a rebalance."""

    name = "cooperative-sticky"
    # Eager as well, as in Java: members can go over to it by two restarts, one after the other.
    protocols: ClassVar = (RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER)

    def __init__(self) -> None:
        self._generation = NO_GENERATION

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return _INT32.pack(self._generation)

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self._generation = metadata.generation_id

    def assign(self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]) -> Given:
        """Who gets what."""
        claims = {member: _cooperative_claim(one) for member, one in subscriptions.items()}
        return _hold_back(_assign(cluster, subscriptions, claims), subscriptions)


def _assign(
    cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription], claims: Mapping[str, Claim]
) -> Given:
    readers = members_by_topic(cluster, subscriptions)
    racks = Racks(cluster, subscriptions, readers)
    return balance(in_order(subscriptions), readers, partitions_of(cluster, readers), owners_of(claims), racks.is_far)


def _hold_back(given: Given, subscriptions: Mapping[str, MemberSubscription]) -> Given:
    """Without partitions for a member that does not own them while somebody else says it does."""
    holders: dict[TopicPartition, set[str]] = {}
    for member, one in subscriptions.items():
        for partition in one.owned:
            holders.setdefault(partition, set()).add(member)

    def is_free_for(member: str, partition: TopicPartition) -> bool:
        holding = holders.get(partition)
        return holding is None or member in holding

    return {member: [each for each in own if is_free_for(member, each)] for member, own in given.items()}


def _cooperative_claim(one: MemberSubscription) -> Claim:
    data = one.user_data
    told = _INT32.unpack(data)[0] if data is not None and len(data) == _INT32.size else NO_GENERATION
    return Claim(one.owned, max(one.generation_id, told))


def _sticky_claim(one: MemberSubscription) -> Claim:
    if one.user_data is None:
        return Claim(one.owned, one.generation_id)
    try:
        return Claim(*decode_sticky(one.user_data))
    except (struct.error, UnicodeDecodeError, IndexError):
        # Somebody else's assignor of the same name: the member counts as new.
        return Claim((), NO_GENERATION)


def encode_sticky(partitions: tuple[TopicPartition, ...], generation: int) -> bytes:
    """Java's form: an array of (topic, array of partitions), then the generation."""
    topics = by_topic(partitions)
    out = bytearray(_INT32.pack(len(topics)))
    for topic, numbers in topics.items():
        name = topic.encode()
        out += _INT16.pack(len(name)) + name
        out += struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
    return bytes(out + _INT32.pack(generation))


def decode_sticky(data: bytes) -> tuple[list[TopicPartition], int]:
    """The form with a generation, or the older one without."""
    partitions: list[TopicPartition] = []
    (topics,) = _INT32.unpack_from(data, 0)
    position = _INT32.size
    for _ in range(topics):
        (length,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        name = data[position : position + length].decode()
        position += length
        (count,) = _INT32.unpack_from(data, position)
        # Checked before the format is built: the count comes from another process.
        if not 0 <= count <= (len(data) - position) // _INT32.size:
            raise struct.error("more partitions than bytes")
        numbers = struct.unpack_from(f">{count}i", data, position + _INT32.size)
        position += _INT32.size * (count + 1)
        partitions.extend(TopicPartition(name, number) for number in numbers)
    if position == len(data):
        return partitions, NO_GENERATION
    return partitions, int(_INT32.unpack_from(data, position)[0])
