"""Elections that somebody asks for: the preferred leader, or any leader at all, decided with Kafka's codes.

The preferred leader is the first replica; it can lead when it is alive and in sync. An unclean election is only for
partitions without a leader, and takes any live replica: what that one lacks is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

import msgspec

from penstock.base.errors import ErrorCode, KafkaError
from penstock.metadata.deltas import Delta, PartitionChanged
from penstock.metadata.image import NO_LEADER, ClusterImage, PartitionState


class ElectionType(IntEnum):
    """The number is the code on the wire."""

    PREFERRED = 0
    UNCLEAN = 1


class Election(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionResult:
    election: Election
    error: ErrorCode = ErrorCode.NONE
    message: str | None = None


def plan_elect_leaders(
    image: ClusterImage, kind: ElectionType, wanted: Mapping[str, Sequence[int]] | None
) -> tuple[list[Delta], list[ElectionResult]]:
    """One result for each partition; where all are meant (None), those that need no election are left out."""
    deltas: list[Delta] = []
    results = []
    for election in _everything(image) if wanted is None else _named(wanted):
        try:
            deltas.append(_elect(image, kind, election))
        except KafkaError as error:
            if wanted is not None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
                results.append(ElectionResult(election=election, error=error.code, message=error.message))
        else:
            results.append(ElectionResult(election=election))
    return deltas, results


def _everything(image: ClusterImage) -> Iterable[Election]:
    return (Election(topic.name, index) for topic in image.topics.values() for index in range(len(topic.partitions)))


def _named(wanted: Mapping[str, Sequence[int]]) -> Iterable[Election]:
    return (Election(topic, index) for topic, indexes in wanted.items() for index in indexes)


def _elect(image: ClusterImage, kind: ElectionType, election: Election) -> PartitionChanged:
    topic = image.topics.get(election.topic)
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {election.topic}")
    if not 0 <= election.partition < len(topic.partitions):
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {election.topic}-{election.partition}"
        )
    state = topic.partitions[election.partition]
    elected = _preferred(state, image) if kind is ElectionType.PREFERRED else _any_leader(state, image)
    return PartitionChanged(topic_id=topic.id, partition=election.partition, state=elected)


def _preferred(state: PartitionState, image: ClusterImage) -> PartitionState:
    preferred = state.replicas[0]
    if state.leader == preferred:
        raise _not_needed()
    if preferred not in image.brokers or preferred not in state.isr:
        raise KafkaError(
            ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE, f"Broker {preferred} is not available, or not in sync."
        )
    return _led_by(state, preferred, state.isr)


def _any_leader(state: PartitionState, image: ClusterImage) -> PartitionState:
    if state.leader != NO_LEADER:
        raise _not_needed()
    live = [replica for replica in state.replicas if replica in image.brokers]
    if not live:
        raise KafkaError(ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE, "No replica of the partition is available.")
    in_sync = [replica for replica in live if replica in state.isr]
    return _led_by(state, in_sync[0], state.isr) if in_sync else _led_by(state, live[0], (live[0],))


def _led_by(state: PartitionState, leader: int, isr: tuple[int, ...]) -> PartitionState:
    return msgspec.structs.replace(
        state,
        leader=leader,
        isr=isr,
        leader_epoch=state.leader_epoch + 1,
        partition_epoch=state.partition_epoch + 1,
    )


def _not_needed() -> KafkaError:
    return KafkaError(ErrorCode.ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.")
