"""Who leads a partition, for a client that asked with a wrong idea of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from uuid import UUID

from penstock.metadata.image import BrokerRegistration, ClusterImage, Endpoint, PartitionState, TopicState
from penstock.server.leadership import current_leader, endpoints

TOPIC_ID = UUID(int=7)


def context() -> Any:
    partition = PartitionState(replicas=(2, 1), isr=(2,), leader=2, leader_epoch=5)
    brokers = {
        number: BrokerRegistration(
            id=number,
            epoch=1,
            rack="r",
            endpoints=(
                Endpoint(listener="INSIDE", host=f"in{number}", port=9092),
                Endpoint(listener="OUTSIDE", host=f"out{number}", port=19092),
            ),
        )
        for number in (1, 2)
    }
    topic = TopicState(name="t", id=TOPIC_ID, partitions=(partition,))
    return SimpleNamespace(image=ClusterImage(brokers=brokers, topics={"t": topic}, topic_names={TOPIC_ID: "t"}))


def request(listener: str) -> Any:
    return SimpleNamespace(session=SimpleNamespace(listener_name=listener))


def test_the_leader_is_found_by_name_and_by_id() -> None:
    assert current_leader(context(), "t", 0) == current_leader(context(), TOPIC_ID, 0) == (2, 5)
    assert current_leader(context(), "t", 1) is None
    assert current_leader(context(), "other", 0) is None


def test_its_address_is_that_of_the_listener_through_which_the_client_came() -> None:
    assert endpoints(context(), request("OUTSIDE"), [(2, 5), None, (2, 5)]) == [(2, "out2", 19092, "r")]
    assert endpoints(context(), request("INSIDE"), [(2, 5)]) == [(2, "in2", 9092, "r")]
    assert endpoints(context(), request("INSIDE"), [None]) == []
