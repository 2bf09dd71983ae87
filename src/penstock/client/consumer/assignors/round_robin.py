"""Round-robin: all partitions of all topics in order, dealt to the members in turn; one that does not read the topic
is passed over."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import (
    AssignorBase,
    MemberSubscription,
    in_order,
    members_by_topic,
    partitions_of,
)
from penstock.client.core.types import ClusterSnapshot


class RoundRobinAssignor(AssignorBase):
    """All partitions of all topics, dealt out to the members in turn."""

    name = "roundrobin"

    def assign(
        self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        """Who gets what."""
        given: dict[str, list[TopicPartition]] = {member: [] for member in subscriptions}
        turn = itertools.cycle(in_order(subscriptions))
        topics = {member: frozenset(one.topics) for member, one in subscriptions.items()}
        for partition in partitions_of(cluster, members_by_topic(cluster, subscriptions)):
            # Some member reads it, else the topic would not be there: the search ends within one round.
            given[next(member for member in turn if partition.topic in topics[member])].append(partition)
        return given
