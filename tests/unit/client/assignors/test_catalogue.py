from __future__ import annotations

import pytest

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import AssignorBase, RebalanceProtocol
from penstock.client.consumer.assignors.catalogue import common_protocol, resolve_assignors
from penstock.client.errors import InvalidState


class Mine(AssignorBase):
    name = "mine"

    def assign(self, cluster: object, subscriptions: object) -> dict[str, list[TopicPartition]]:
        return {}


def test_names_java_names_classes_and_objects() -> None:
    mine = Mine()
    specs = ["range", "org.apache.kafka.clients.consumer.RoundRobinAssignor", "StickyAssignor", mine]
    found = resolve_assignors(specs)
    assert [one.name for one in found] == ["range", "roundrobin", "sticky", "mine"]
    assert found[-1] is mine
    assert resolve_assignors([Mine])[0].name == "mine"


@pytest.mark.parametrize(
    ("specs", "text"),
    [
        (["rang"], "did you mean 'range'"),
        (["zzz"], "known are range"),
        ([], "is empty"),
        (["range", "range"], "two assignors named 'range'"),
        ([object()], "has no 'name'"),
    ],
)
def test_bad_ones(specs: list[object], text: str) -> None:
    with pytest.raises(InvalidState, match=text):
        resolve_assignors(specs)


def test_the_protocol_is_the_highest_that_all_know() -> None:
    assert common_protocol(resolve_assignors(["range", "cooperative-sticky"])) is RebalanceProtocol.EAGER
    assert common_protocol(resolve_assignors(["cooperative-sticky"])) is RebalanceProtocol.COOPERATIVE
    alone = Mine()
    alone.protocols = (RebalanceProtocol.COOPERATIVE,)  # type: ignore[misc]
    with pytest.raises(InvalidState, match="no rebalance protocol in common"):
        common_protocol([alone, *resolve_assignors(["range"])])
