"""Changes of one partition: the leader's wish for another ISR, and elections.

Every change grows the partition epoch; a change of the leader grows the leader epoch too. A request names the epochs it
was made under, so one that was overtaken changes nothing, and it names the broker epoch of each member, so a follower
that died and came back empty in between cannot enter an ISR on the strength of its earlier life.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.metadata.deltas import Delta, PartitionChanged
from penstock.metadata.image import NO_LEADER, BrokerRegistration, ClusterImage, PartitionState

ANY_BROKER_EPOCH = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class AlterPartition:
    """A leader's request. `isr` are (broker id, broker epoch)."""

    broker_id: int
    broker_epoch: int
    topic_id: UUID
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[tuple[int, int]]


def plan_alter_partition(image: ClusterImage, request: AlterPartition) -> tuple[list[Delta], PartitionState]:
    """The partition as it will be; KafkaError with AlterPartition's codes."""
    check_broker_epoch(image, request.broker_id, request.broker_epoch)
    state = _find_partition(image, request)
    _check_epochs(request, state)
    _check_isr(request, state, image.brokers)
    isr = tuple(broker for broker, _ in request.isr)
    if set(isr) == set(state.isr):
        return [], state
    changed = PartitionState(
        replicas=state.replicas,
        isr=isr,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch + 1,
    )
    return [PartitionChanged(topic_id=request.topic_id, partition=request.partition, state=changed)], changed


def check_broker_epoch(image: ClusterImage, broker_id: int, broker_epoch: int) -> None:
    registration = image.brokers.get(broker_id)
    if registration is None:
        raise KafkaError(ErrorCode.STALE_BROKER_EPOCH, f"No broker registration found for broker id {broker_id}")
    if registration.epoch != broker_epoch:
        raise KafkaError(
            ErrorCode.STALE_BROKER_EPOCH,
            f"Expected broker epoch {registration.epoch}, but got broker epoch {broker_epoch}",
        )


def _find_partition(image: ClusterImage, request: AlterPartition) -> PartitionState:
    topic = image.topic_by_id(request.topic_id)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID, f"There is no topic with id {request.topic_id}.")
    if not 0 <= request.partition < len(topic.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {topic.name}-{request.partition}."
        )
    return topic.partitions[request.partition]


def _check_epochs(request: AlterPartition, state: PartitionState) -> None:
    if request.leader_epoch > state.leader_epoch or request.partition_epoch > state.partition_epoch:
        # The leader knows more than this controller, so this one has been replaced.
        raise KafkaError(ErrorCode.NOT_CONTROLLER, "The leader has seen a newer state of the partition.")
    if request.leader_epoch < state.leader_epoch:
        raise KafkaError(
            ErrorCode.FENCED_LEADER_EPOCH, f"The leader epoch is {state.leader_epoch}, not {request.leader_epoch}."
        )
    if request.broker_id != state.leader:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The leader is {state.leader}, not {request.broker_id}.")
    if request.partition_epoch < state.partition_epoch:
        raise KafkaError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"The partition epoch is {state.partition_epoch}, not {request.partition_epoch}.",
        )


def _check_isr(request: AlterPartition, state: PartitionState, brokers: Mapping[int, BrokerRegistration]) -> None:
    members = [broker for broker, _ in request.isr]
    if len(set(members)) != len(members) or not set(members) <= set(state.replicas):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The ISR {members} is not a subset of {list(state.replicas)}.")
    if state.leader not in members:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"The ISR {members} does not hold the leader {state.leader}.")
    for broker, epoch in request.isr:
        registration = brokers.get(broker)
        if registration is None:
            raise KafkaError(ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker} is not registered.")
        if epoch not in (ANY_BROKER_EPOCH, registration.epoch):
            raise KafkaError(
                ErrorCode.INELIGIBLE_REPLICA, f"Broker {broker} has epoch {registration.epoch}, not {epoch}."
            )


def elect(state: PartitionState, live: Collection[int], *, leader_restarted: bool = False) -> PartitionState:
    """The partition led by the first live replica of its ISR, by its present leader if that one can stay.

    The ISR itself is never emptied: whoever is left in it is the only one that has every committed record.
    `leader_restarted` gives even a leader that stays a new epoch.
    """
    stays = state.leader in live and state.leader in state.isr
    leader = state.leader
    if not stays:
        leader = next((each for each in state.replicas if each in live and each in state.isr), NO_LEADER)
    if leader == state.leader and not leader_restarted:
        return state
    return PartitionState(
        replicas=state.replicas,
        isr=state.isr,
        leader=leader,
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
    )


def leave_isr(state: PartitionState, broker: int, live: Collection[int]) -> PartitionState:
    """Without `broker` in the ISR, unless it is the only member; another leader if it led."""
    if broker not in state.isr or len(state.isr) == 1:
        return elect(state, live)
    smaller = PartitionState(
        replicas=state.replicas,
        isr=tuple(each for each in state.isr if each != broker),
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch + 1,
    )
    return elect(smaller, live)
