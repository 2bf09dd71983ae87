"""What an assignor is told and what it answers.

A user's own assignor is any object with `name`, `protocols` and `assign`; `AssignorBase` has the rest as defaults.
`assign` gives each member's partitions, as a plain sequence or, with user data, as an `Assignment`.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from penstock.base.types import TopicPartition
from penstock.client.core.types import ClusterSnapshot, ConsumerGroupMetadata

NO_GENERATION = -1


class RebalanceProtocol(enum.IntEnum):
    """Whether members give up everything before a rebalance (eager) or only what moves (cooperative)."""

    EAGER = 0
    """All partitions are given up before a member joins again."""
    COOPERATIVE = 1
    """A member keeps its partitions over a rebalance; what moves is given up in one generation, taken in the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSubscription:
    """What one member told the leader."""

    topics: tuple[str, ...]
    owned: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None
    generation_id: int = NO_GENERATION
    rack: str | None = None
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """What one member gets."""

    partitions: tuple[TopicPartition, ...] = ()
    user_data: bytes | None = None


Assigned = Mapping[str, Sequence[TopicPartition]] | Mapping[str, Assignment]


class Assignor(Protocol):
    @property
    def name(self) -> str:
        """The name on the wire; members of other clients with an assignor of that name can be in the same group."""

    @property
    def protocols(self) -> Sequence[RebalanceProtocol]: ...

    def assign(self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]) -> Assigned:
        """By member id: its partitions. Called in the leader only."""

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """What this member tells the leader's assignor about itself."""

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """Called in every member with what it got."""


class AssignorBase:
    """Defaults for assignors that need nothing more than `assign`."""

    protocols: ClassVar[Sequence[RebalanceProtocol]] = (RebalanceProtocol.EAGER,)

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        """What this member tells the leader beside its topics; None for nothing."""
        return None

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        """This member got so much; for assignors that remember it."""


def in_order(subscriptions: Mapping[str, MemberSubscription]) -> list[str]:
    """Member ids in Kafka's order: static members first, by instance id, so that a restart changes nothing."""

    def rank(member: str) -> tuple[bool, str]:
        instance = subscriptions[member].instance_id
        return instance is None, instance if instance is not None else member

    return sorted(subscriptions, key=rank)


def members_by_topic(
    cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]
) -> dict[str, tuple[str, ...]]:
    """By topic that exists, the members that read it, in order; topics sorted."""
    found: dict[str, list[str]] = defaultdict(list)
    for member in in_order(subscriptions):
        for topic in frozenset(subscriptions[member].topics):
            found[topic].append(member)
    return {topic: tuple(found[topic]) for topic in sorted(found) if cluster.partition_count(topic)}


def partitions_of(cluster: ClusterSnapshot, topics: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic in topics for number in range(cluster.partition_count(topic))]
