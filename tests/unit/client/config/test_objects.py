"""Keys whose values are objects are refused when the client is made, all at once, with key and remedy."""

from __future__ import annotations

from typing import Any

import pytest

import penstock
from penstock import aio

SERVERS = "localhost:9092"


class NeedsArguments:
    name, protocols = "mine", ()

    def __init__(self, needed: int) -> None: ...

    def partition(self, *_: Any) -> int:
        return 0


@pytest.mark.parametrize(
    ("options", "key", "remedy"),
    [
        ({"partition_assignment_strategy": ["rangee"]}, "partition.assignment.strategy", "did you mean 'range'"),
        ({"partition_assignment_strategy": [object()]}, "partition.assignment.strategy", "AssignorBase"),
        ({"partition_assignment_strategy": [NeedsArguments]}, "partition.assignment.strategy", "give the object"),
        ({"offset_store": object()}, "penstock.offset.store", "load(group, partitions)"),
        ({"offset_store": penstock.DbApiOffsetStore}, "penstock.offset.store", "not an object of it"),
        ({"key_deserializer": "jsn"}, "key.deserializer", "did you mean 'json'"),
        ({"value_deserializer": 5}, "value.deserializer", "give a function"),
    ],
)
@pytest.mark.parametrize("client", [penstock.Consumer, aio.Consumer], ids=["blocking", "aio"])
def test_a_consumer_refuses(client: Any, options: dict[str, Any], key: str, remedy: str) -> None:
    with pytest.raises(penstock.ConfigErrors) as raised:
        client(bootstrap_servers=SERVERS, **options)
    (problem,) = raised.value.problems
    assert problem.key == key
    assert remedy in problem.reason


@pytest.mark.parametrize(
    ("options", "key", "remedy"),
    [
        ({"key_serializer": "jsn"}, "key.serializer", "did you mean 'json'"),
        ({"value_serializer": object()}, "value.serializer", "give a function"),
        ({"partitioner": object()}, "partitioner.class", "give a function of (topic"),
        ({"partitioner": "com.example.Mine"}, "partitioner.class", "give a function of (topic"),
        ({"partitioner": NeedsArguments}, "partitioner.class", "without arguments"),
        ({"partitioner": "consistent_random"}, "partitioner.class", "zlib.crc32(key_bytes"),
    ],
)
@pytest.mark.parametrize("client", [penstock.Producer, aio.Producer], ids=["blocking", "aio"])
def test_a_producer_refuses(client: Any, options: dict[str, Any], key: str, remedy: str) -> None:
    with pytest.raises(penstock.ConfigErrors) as raised:
        client(bootstrap_servers=SERVERS, **options)
    (problem,) = raised.value.problems
    assert problem.key == key
    assert remedy in problem.reason


def test_all_problems_come_together() -> None:
    with pytest.raises(penstock.ConfigErrors) as raised:
        aio.Producer(bootstrap_servers=SERVERS, key_serializer="x", value_serializer="y", partitioner=5)  # type: ignore[arg-type,unused-ignore]
    assert len(raised.value.problems) == 3


def test_an_assignor_is_made_once() -> None:
    consumer = aio.Consumer(bootstrap_servers=SERVERS, partition_assignment_strategy=["sticky", penstock.RangeAssignor])
    strategy = consumer.config[penstock.client.config.consumer_keys.PARTITION_ASSIGNMENT_STRATEGY]
    assert [each.name for each in strategy] == ["sticky", "range"]
