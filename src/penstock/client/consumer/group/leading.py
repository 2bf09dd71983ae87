"""The leader's work: from what all members told to an assignment for each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from penstock.client.consumer.assignors.base import Assignment, Assignor, MemberSubscription
from penstock.client.consumer.assignors.racks import racks_of_topic
from penstock.client.consumer.group.wire import decode_subscription
from penstock.client.core.types import ClusterSnapshot
from penstock.client.errors import InvalidState
from penstock.protocol.messages.join_group import JoinGroupResponseMember

Shape = dict[str, tuple[frozenset[str], ...]]
"""By topic and partition the racks that matter."""


def read_members(members: Iterable[JoinGroupResponseMember]) -> dict[str, MemberSubscription]:
    return {each.member_id: decode_subscription(each.metadata, each.group_instance_id) for each in members}


def topics_of(subscriptions: Mapping[str, MemberSubscription]) -> frozenset[str]:
    return frozenset(topic for each in subscriptions.values() for topic in each.topics)


def shape_of(cluster: ClusterSnapshot, topics: Iterable[str], *, with_racks: bool) -> Shape:
    """What an assignment depends on; another shape asks for a new one."""
    if with_racks:
        return {topic: tuple(racks_of_topic(cluster, topic)) if topic in cluster.topics else () for topic in topics}
    return {topic: (frozenset(),) * cluster.partition_count(topic) for topic in topics}


def make_assignments(
    assignor: Assignor, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, Assignment]:
    """One for each member. `InvalidState` for what a user's assignor must not do."""
    given = assignor.assign(cluster, subscriptions)
    made = {
        member: own if isinstance(own, Assignment) else Assignment(partitions=tuple(own))
        for member, own in given.items()
    }
    _check(assignor.name, made, subscriptions)
    return {member: made.get(member, Assignment()) for member in subscriptions}


def _check(name: str, made: Mapping[str, Assignment], subscriptions: Mapping[str, MemberSubscription]) -> None:
    owners: dict[object, str] = {}
    for member, assignment in made.items():
        if member not in subscriptions:
            raise InvalidState(f"The assignor {name!r} gave partitions to {member!r}, which is not in the group.")
        topics = subscriptions[member].topics
        for partition in assignment.partitions:
            if partition.topic not in topics:
                raise InvalidState(
                    f"The assignor {name!r} gave {partition} to {member}, which does not read that topic."
                )
            if owners.setdefault(partition, member) != member:
                raise InvalidState(f"The assignor {name!r} gave {partition} to {owners[partition]} and to {member}.")
