"""What a group looks like: one shape for groups of both protocols, made from either's description."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from penstock.base.types import TopicPartition
from penstock.client.admin.enums import AclOperation, GroupState, GroupType, operations, worded
from penstock.client.core.types import Node
from penstock.protocol.codec import decode
from penstock.protocol.errors import DecodeError
from penstock.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription

_CONSUMER = "consumer"
_VERSION_SIZE = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberDescription:
    """A member of a group, and what it has."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    assignment: tuple[TopicPartition, ...]
    """What it reads now, in order."""
    subscription: tuple[str, ...] = ()
    subscription_regex: str | None = None
    rack_id: str | None = None
    target_assignment: tuple[TopicPartition, ...] | None = None
    """What it will read when all members have caught up (new protocol only)."""
    member_epoch: int | None = None
    is_upgraded: bool | None = None
    """Whether it speaks the new protocol; None if the broker does not tell."""
    metadata: bytes = b""
    """As it was sent, for groups that are not of consumers."""
    raw_assignment: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDescription:
    """A group, its state and its members."""

    group_id: str
    type: GroupType
    state: GroupState
    protocol_type: str
    assignor: str
    """The name of the assignment strategy; empty while there is none."""
    coordinator: Node
    members: tuple[MemberDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None
    group_epoch: int | None = None
    target_assignment_epoch: int | None = None

    @property
    def is_simple(self) -> bool:
        """Only offsets are committed under this name; it has had no members."""
        return self.type is GroupType.CLASSIC and not self.protocol_type


def of_consumer(group: Any, coordinator: Node) -> GroupDescription:
    """Of a line of ConsumerGroupDescribe."""
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CONSUMER,
        state=worded(GroupState, group.group_state),
        protocol_type=_CONSUMER,
        assignor=group.assignor_name,
        coordinator=coordinator,
        members=tuple(_consumer_member(each) for each in group.members),
        authorized_operations=operations(group.authorized_operations),
        group_epoch=group.group_epoch,
        target_assignment_epoch=group.assignment_epoch,
    )


def _consumer_member(member: Any) -> MemberDescription:
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=_partitions(member.assignment),
        target_assignment=_partitions(member.target_assignment),
        subscription=tuple(sorted(member.subscribed_topic_names)),
        subscription_regex=member.subscribed_topic_regex or None,
        rack_id=member.rack_id,
        member_epoch=member.member_epoch,
        # 0 is a member of the old protocol in a group of the new one, 1 a new member, -1 a broker that does not tell.
        is_upgraded=None if member.member_type < 0 else member.member_type == 1,
    )


def _partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    topics = assignment.topic_partitions
    return tuple(sorted(TopicPartition(each.topic_name, number) for each in topics for number in each.partitions))


def of_classic(group: Any, coordinator: Node) -> GroupDescription:
    """Of a line of DescribeGroups."""
    return GroupDescription(
        group_id=group.group_id,
        type=GroupType.CLASSIC,
        state=worded(GroupState, group.group_state),
        protocol_type=group.protocol_type,
        assignor=group.protocol_data,
        coordinator=coordinator,
        members=tuple(_classic_member(each, group.protocol_type) for each in group.members),
        authorized_operations=operations(group.authorized_operations),
    )


def _classic_member(member: Any, protocol_type: str) -> MemberDescription:
    is_consumer = protocol_type == _CONSUMER
    return MemberDescription(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        host=member.client_host,
        assignment=decode_assignment(member.member_assignment) if is_consumer else (),
        subscription=decode_subscription(member.member_metadata) if is_consumer else (),
        metadata=bytes(member.member_metadata),
        raw_assignment=bytes(member.member_assignment),
    )


def decode_assignment(data: bytes) -> tuple[TopicPartition, ...]:
    """The partitions of what a classic member was assigned; none if it is not in the consumers' format."""
    if len(data) < _VERSION_SIZE:
        return ()
    try:
        # Later versions only add to the end, so version 0 reads them all.
        found = decode(ConsumerProtocolAssignment, 0, False, bytes(data[_VERSION_SIZE:]))
    except DecodeError:
        return ()
    return tuple(
        sorted(TopicPartition(each.topic, number) for each in found.assigned_partitions for number in each.partitions)
    )


def decode_subscription(data: bytes) -> tuple[str, ...]:
    """The topics that a classic member subscribes to."""
    if len(data) < _VERSION_SIZE:
        return ()
    try:
        found = decode(ConsumerProtocolSubscription, 0, False, bytes(data[_VERSION_SIZE:]))
    except DecodeError:
        return ()
    return tuple(sorted(found.topics))
