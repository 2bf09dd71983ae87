"""Who is near what: members that tell their rack (`client.rack`), and the racks of a partition's replicas (KIP-881).

Assignors prefer near partitions where that costs nothing in balance. Where racks can make no difference, because nobody
told one or every partition is in all of them, everything counts as near and assignments are as without racks.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import MemberSubscription
from penstock.client.core.types import ClusterSnapshot

_NOWHERE: frozenset[str] = frozenset()


def member_racks(subscriptions: Mapping[str, MemberSubscription]) -> dict[str, str]:
    return {member: one.rack for member, one in subscriptions.items() if one.rack}


def racks_of_topic(cluster: ClusterSnapshot, topic: str) -> list[frozenset[str]]:
    """By partition, the racks in which it has replicas."""
    return [
        frozenset(node.rack for one in each.replicas if (node := cluster.nodes.get(one)) is not None and node.rack)
        for each in cluster.topics[topic].partitions
    ]


def racks_matter(of_members: Iterable[str], of_partitions: Collection[frozenset[str]]) -> bool:
    everywhere = _NOWHERE.union(*of_partitions)
    if everywhere.isdisjoint(of_members):
        return False
    return any(racks != everywhere for racks in of_partitions)


class Racks:
    def __init__(
        self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription], topics: Iterable[str]
    ) -> None:
        self._of_members = member_racks(subscriptions)
        self._of_partitions = {
            TopicPartition(topic, number): racks
            for topic in (topics if self._of_members else ())
            for number, racks in enumerate(racks_of_topic(cluster, topic))
        }
        self.matter = racks_matter(self._of_members.values(), self._of_partitions.values())

    def is_far(self, member: str, partition: TopicPartition) -> bool:
        """Whether the member would read it from another rack."""
        rack = self._of_members.get(member) if self.matter else None
        return rack is not None and rack not in self._of_partitions.get(partition, _NOWHERE)
