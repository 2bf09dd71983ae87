"""Where replicas are, and who leads: reassignments of partitions, and elections."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker, by_topic
from penstock.client.admin.enums import ElectionType
from penstock.client.admin.errors import Outcome, failure
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages import alter_partition_reassignments as altering
from penstock.protocol.messages import elect_leaders as electing
from penstock.protocol.messages import list_partition_reassignments as listing


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReassignment:
    """A reassignment under way."""

    replicas: tuple[int, ...]
    """All of them now: the old ones and those to come."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """What became of an election; it is not needed where the right replica leads already."""

    was_needed: bool


async def alter_partition_reassignments(
    asker: Asker,
    targets: Mapping[TopicPartition, Sequence[int] | None],
    *,
    allow_replication_factor_change: bool = True,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, None]:
    """Move replicas of partitions to these brokers, the preferred leader first; None cancels a move under way."""
    wanted = {
        checks.partition(tp): None if brokers is None else checks.numbers(brokers, f"brokers of {tp}")
        for tp, brokers in checks.mapping(targets, "brokers by partition").items()
    }
    topics = [
        altering.ReassignableTopic(
            name=topic,
            partitions=[
                altering.ReassignablePartition(partition_index=each, replicas=wanted[TopicPartition(topic, each)])
                for each in numbers
            ],
        )
        for topic, numbers in by_topic(wanted).items()
    ]
    answer = await asker.controller(
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        altering.AlterPartitionReassignmentsRequest(
            topics=topics,
            timeout_ms=asker.server_ms(timeout_ms),
            allow_replication_factor_change=allow_replication_factor_change,
        ),
        timeout_ms=timeout_ms,
        at_least=0 if allow_replication_factor_change else 1,
        codes=lambda it: (it.error_code,),
    )
    if answer.error_code:
        raise failure("reassigning partitions", answer.error_code, answer.error_message)
    outcome: Outcome[TopicPartition, None] = Outcome()
    for topic in answer.responses:
        for each in topic.partitions:
            tp = TopicPartition(topic.name, each.partition_index)
            outcome.add(tp, None, each.error_code, f"partition {tp}", each.error_message)
    outcome.missing({tp: f"partition {tp}" for tp in wanted})
    return outcome.result()


async def list_partition_reassignments(
    asker: Asker, partitions: Iterable[TopicPartition] | None = None, *, timeout_ms: float | None = None
) -> dict[TopicPartition, PartitionReassignment]:
    """The moves under way, of all partitions or of those that are named."""
    topics = None
    if partitions is not None:
        wanted = by_topic(checks.partitions(partitions))
        topics = [
            listing.ListPartitionReassignmentsTopics(name=name, partition_indexes=each) for name, each in wanted.items()
        ]
    answer = await asker.controller(
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        listing.ListPartitionReassignmentsRequest(topics=topics, timeout_ms=asker.server_ms(timeout_ms)),
        timeout_ms=timeout_ms,
        codes=lambda it: (it.error_code,),
    )
    if answer.error_code:
        raise failure("listing reassignments", answer.error_code, answer.error_message)
    return {
        TopicPartition(topic.name, each.partition_index): PartitionReassignment(
            replicas=tuple(each.replicas),
            adding=tuple(each.adding_replicas),
            removing=tuple(each.removing_replicas),
        )
        for topic in answer.topics
        for each in topic.partitions
    }


async def elect_leaders(
    asker: Asker,
    election: ElectionType | str = ElectionType.PREFERRED,
    partitions: Iterable[TopicPartition] | None = None,
    *,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, Election]:
    """Let the preferred replica lead again (or any live one, if unclean), for these partitions or for all."""
    kind = checks.member(election, ElectionType, "the kind of election")
    wanted = None if partitions is None else by_topic(checks.partitions(partitions))
    topics = None if wanted is None else [
        electing.TopicPartitions(topic=name, partitions=each) for name, each in wanted.items()
    ]  # fmt: skip
    answer = await asker.controller(
        ApiKey.ELECT_LEADERS,
        electing.ElectLeadersRequest(
            election_type=kind, topic_partitions=topics, timeout_ms=asker.server_ms(timeout_ms)
        ),
        timeout_ms=timeout_ms,
        at_least=1 if kind is ElectionType.UNCLEAN else 0,
        codes=lambda it: (it.error_code,),
    )
    if answer.error_code:
        raise failure("electing leaders", answer.error_code)
    return _elected(answer).result()


def _elected(answer: Any) -> Outcome[TopicPartition, Election]:
    outcome: Outcome[TopicPartition, Election] = Outcome()
    for topic in answer.replica_election_results:
        for each in topic.partition_result:
            tp = TopicPartition(topic.topic, each.partition_id)
            needed = each.error_code != ErrorCode.ELECTION_NOT_NEEDED
            code = each.error_code if needed else ErrorCode.NONE
            outcome.add(tp, Election(was_needed=needed), code, f"partition {tp}", each.error_message)
    return outcome
