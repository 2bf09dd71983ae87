"""Range: each topic by itself, its partitions in numeric order cut into one run for each member.

The first `partitions % members` members get one more. Topics with the same members and the same number of partitions
are thus cut at the same places: a member has the same numbers of both (co-partitioning). Members that tell their rack
get partitions with a replica there first where that changes nothing in the counts, and topics that are co-partitioned
stay so (KIP-881).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import AssignorBase, MemberSubscription, members_by_topic
from penstock.client.consumer.assignors.racks import member_racks, racks_matter, racks_of_topic
from penstock.client.core.types import ClusterSnapshot

Racks = Mapping[str, str]


class RangeAssignor(AssignorBase):
    """Each topic by itself: neighbouring partitions go to the same member."""

    name = "range"

    def assign(
        self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Who gets what."""
        racks = member_racks(subscriptions)
        topics = [
            _Topic(cluster, topic, members, racks)
            for topic, members in members_by_topic(cluster, subscriptions).items()
        ]
        if any(topic.is_rack_aware for topic in topics):
            _match_racks(topics)
        for topic in topics:
            topic.assign_runs(lambda _member, _number: True)
        return {
            member: [TopicPartition(topic.name, number) for topic in topics for number in topic.given.get(member, ())]
            for member in subscriptions
        }


class _Topic:
    """One topic while it is handed out."""

    def __init__(self, cluster: ClusterSnapshot, name: str, members: tuple[str, ...], racks: Racks) -> None:
        self.name = name
        self.members = members
        self.count = cluster.partition_count(name)
        self.given: dict[str, list[int]] = {}
        self._left = list(range(self.count))
        self._least, self._extras_left = divmod(self.count, len(members))
        self._member_racks = {member: racks[member] for member in members if member in racks}
        self._partition_racks = racks_of_topic(cluster, name) if self._member_racks else []
        self.is_rack_aware = racks_matter(self._member_racks.values(), self._partition_racks)

    def room(self, member: str) -> int:
        return self._least + (self._extras_left > 0) - len(self.given.get(member, ()))

    def matches(self, member: str, number: int) -> bool:
        rack = self._member_racks.get(member)
        return rack is None or rack in self._partition_racks[number]

    def give(self, member: str, numbers: Sequence[int]) -> None:
        mine = self.given.setdefault(member, [])
        mine.extend(numbers)
        self._extras_left -= len(mine) > self._least
        taken = frozenset(numbers)
        self._left = [number for number in self._left if number not in taken]

    def assign_runs(self, may_have: Callable[[str, int], bool]) -> None:
        for member in self.members:
            room = self.room(member)
            fitting = [number for number in self._left if may_have(member, number)][: max(0, room)]
            if fitting:
                self.give(member, fitting)


def _match_racks(topics: Iterable[_Topic]) -> None:
    alike: dict[tuple[tuple[str, ...], int], list[_Topic]] = defaultdict(list)
    for topic in topics:
        alike[topic.members, topic.count].append(topic)
    for together in alike.values():
        if len(together) > 1:
            _match_racks_together(together)
        elif together[0].is_rack_aware:
            together[0].assign_runs(together[0].matches)


def _match_racks_together(topics: Sequence[_Topic]) -> None:
    """The same number of all these topics goes to the same member, or is left for the second round."""
    for number in range(topics[0].count):
        for member in topics[0].members:
            if all(topic.room(member) > 0 and topic.matches(member, number) for topic in topics):
                for topic in topics:
                    topic.give(member, [number])
                break
