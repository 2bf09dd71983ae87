"""Other replicas for a partition, decided with Kafka's codes.

A new order of the present replicas, and fewer of them as long as one that stays is in sync, need no copying and are
done at once. So nothing is ever under way here, and there is never anything to cancel or to list. Replicas on brokers
that have none yet must copy the log first; that is refused until there are brokers that could.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.partitions import elect
from penstock.controller.topics import check_assignment
from penstock.metadata.deltas import Delta, PartitionChanged
from penstock.metadata.image import ClusterImage, PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class Reassignment:
    """`replicas` are the broker ids that shall hold the partition; None cancels what is under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReassignmentResult:
    topic: str
    partition: int
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def plan_reassign_partitions(
    image: ClusterImage, request: Sequence[Reassignment], *, may_change_factor: bool
) -> tuple[list[Delta], list[ReassignmentResult]]:
    """One result for each reassignment, in their order."""
    deltas: list[Delta] = []
    results = []
    for wanted in request:
        try:
            deltas += _plan_partition(image, wanted, may_change_factor)
        except KafkaError as error:
            refused = ReassignmentResult(
                topic=wanted.topic, partition=wanted.partition, error=error.code, message=error.message
            )
            results.append(refused)
        else:
            results.append(ReassignmentResult(topic=wanted.topic, partition=wanted.partition))
    return deltas, results


def _plan_partition(image: ClusterImage, wanted: Reassignment, may_change_factor: bool) -> list[Delta]:
    topic = image.topics.get(wanted.topic)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {wanted.topic}.")
    if not 0 <= wanted.partition < len(topic.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {wanted.topic}:{wanted.partition}."
        )
    state = topic.partitions[wanted.partition]
    if wanted.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS, "No partition reassignment is in progress.")
    check_assignment(image, wanted.replicas, None)
    if not may_change_factor and len(wanted.replicas) != len(state.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The replication factor is changed from {len(state.replicas)} to {len(wanted.replicas)}",
        )
    changed = _reassigned(state, tuple(wanted.replicas), image)
    return [] if changed is None else [PartitionChanged(topic_id=topic.id, partition=wanted.partition, state=changed)]


def _reassigned(state: PartitionState, replicas: tuple[int, ...], image: ClusterImage) -> PartitionState | None:
    if replicas == state.replicas:
        return None
    isr = tuple(broker for broker in state.isr if broker in replicas)
    if not isr or not set(replicas) <= set(state.replicas):
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"The replicas {list(replicas)} would have to be copied from {list(state.replicas)} first, which is not "
            "done yet; name replicas that are there and in sync.",
        )
    smaller = PartitionState(
        replicas=replicas,
        isr=isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch + 1,
    )
    return elect(smaller, image.brokers.keys())
