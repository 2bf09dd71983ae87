"""Brokers that come and go, and what that means for the partitions they hold.

A registration gives the broker the version it is committed at as its epoch, so an epoch is never used twice.

A broker that stopped cleanly has every record it ever acknowledged: it keeps its place in each ISR and its leader
epochs. One that did not may have lost the end of its logs, so it first leaves every ISR that has another member and
must catch up as a follower. Where it is the only member nobody else has more, so it leads again, but under a new leader
epoch: a client that read records which are gone now can tell, because offsets of the old epoch end where the log did.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.controller.partitions import elect, leave_isr
from penstock.metadata.deltas import BrokerRegistered, BrokerUnregistered, Delta, PartitionChanged
from penstock.metadata.image import BrokerRegistration, ClusterImage, Endpoint, PartitionState


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterBroker:
    broker_id: int
    endpoints: tuple[Endpoint, ...]
    rack: str | None = None
    incarnation: UUID
    clean: bool
    """Whether the last life of this broker ended with its clean-shutdown marker."""


def plan_register_broker(image: ClusterImage, request: RegisterBroker) -> list[Delta]:
    """Nothing when this very process is registered as it asks."""
    known = image.brokers.get(request.broker_id)
    registration = BrokerRegistration(
        id=request.broker_id,
        epoch=image.version + 1,
        endpoints=request.endpoints,
        rack=request.rack,
        incarnation=request.incarnation,
    )
    same_life = known is not None and known.incarnation == request.incarnation
    if same_life:
        return []
    broker = request.broker_id
    live = {*image.brokers, broker}

    def returned(state: PartitionState) -> PartitionState:
        if request.clean or broker not in state.isr:
            return elect(state, live)
        if state.isr == (broker,):
            return elect(state, live, leader_restarted=True)
        return leave_isr(state, broker, live)

    return [BrokerRegistered(broker=registration), *_partition_changes(image, broker, returned)]


def plan_unregister_broker(image: ClusterImage, broker_id: int) -> list[Delta]:
    """The broker is gone: its partitions get other leaders where the ISR has one."""
    if broker_id not in image.brokers:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"Broker ID {broker_id} is not currently registered")
    live = image.brokers.keys() - {broker_id}
    changes = _partition_changes(image, broker_id, lambda state: leave_isr(state, broker_id, live))
    return [BrokerUnregistered(broker_id=broker_id), *changes]


def _partition_changes(
    image: ClusterImage, broker: int, change: Callable[[PartitionState], PartitionState]
) -> Iterator[Delta]:
    for topic in image.topics.values():
        for index, state in enumerate(topic.partitions):
            if broker in state.replicas and (changed := change(state)) is not state:
                yield PartitionChanged(topic_id=topic.id, partition=index, state=changed)
