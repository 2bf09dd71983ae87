"""The common core against real brokers: metadata, the controller, coordinators, brokers that go away."""

from __future__ import annotations

import asyncio

import pytest

from penstock.base.types import TopicPartition
from penstock.client.config import ClientKind
from penstock.client.core.client import ClientCore
from penstock.client.core.types import CoordinatorKind
from penstock.client.errors import (
    ClientClosed,
    InvalidTopic,
    KafkaTimeout,
    NoBrokersReachable,
    UnknownTopicOrPartition,
)
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup
from tests.clients.support import TopicMaker, core_config
from tests.support.brokers import Broker
from tests.support.ports import free_port


@pytest.fixture
async def core(bootstrap: str):
    core = ClientCore(core_config(bootstrap, ClientKind.CONSUMER, allow_auto_create_topics=False))
    await core.start()
    yield core
    await core.close()


async def test_a_topic_is_found_with_its_leaders(core: ClientCore, topic: TopicMaker) -> None:
    name = topic(partitions=3)
    info = await core.metadata.topic(name, 10_000)
    assert [each.partition for each in info.partitions] == [0, 1, 2]
    snapshot = core.metadata.snapshot
    assert snapshot.leader(TopicPartition(name, 2)) in snapshot.nodes
    assert snapshot.names_by_id[info.topic_id] == name
    assert snapshot.available_partitions(name) == (0, 1, 2)


async def test_a_topic_that_does_not_exist_is_waited_for_and_named(core: ClientCore, topic: TopicMaker) -> None:
    name = topic.name()
    with pytest.raises(UnknownTopicOrPartition, match=name):
        await core.metadata.topic(name, 400)


async def test_a_bad_name_fails_at_once(core: ClientCore) -> None:
    with pytest.raises(InvalidTopic, match="no good"):
        await asyncio.wait_for(core.metadata.topic("no good!", 20_000), 10)


async def test_a_topic_that_appears_while_it_is_waited_for(core: ClientCore, topic: TopicMaker) -> None:
    name = topic.name()
    waiting = asyncio.create_task(core.metadata.topic(name, 20_000))
    await core.metadata.update(10_000)
    await asyncio.to_thread(topic, 2, None, name)
    assert len((await waiting).partitions) == 2


async def test_all_topics_and_new_partitions(core: ClientCore, topic: TopicMaker) -> None:
    name = topic()
    core.metadata.want_all(True)
    assert name in (await core.metadata.update(10_000)).topics
    await asyncio.to_thread(topic.grow, name, 4)
    assert (await core.metadata.update(10_000)).partition_count(name) == 4


async def test_a_coordinator_is_found_remembered_and_found_again(core: ClientCore) -> None:
    node_id = await core.coordinator(CoordinatorKind.GROUP, "a-group", timeout_ms=20_000)
    assert core.known_coordinator(CoordinatorKind.GROUP, "a-group") == node_id
    assert node_id not in core.metadata.snapshot.nodes, "a connection of its own"
    core.coordinator_lost(CoordinatorKind.GROUP, "a-group")
    found = await core.coordinators(CoordinatorKind.GROUP, ["a-group", "b-group"], timeout_ms=20_000)
    assert found["a-group"] == node_id
    group = OffsetFetchRequestGroup(group_id="a-group", topics=None)
    answer = await core.ask_coordinator(
        CoordinatorKind.GROUP,
        "a-group",
        ApiKey.OFFSET_FETCH,
        OffsetFetchRequest(groups=[group]),
        timeout_ms=20_000,
        at_least=8,
        at_most=9,
        codes=lambda answer: [each.error_code for each in answer.groups],
    )
    assert answer.groups[0].error_code == 0


async def test_any_node_and_versions(core: ClientCore) -> None:
    answer = await core.ask_any(
        ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["x"]), timeout_ms=10_000, at_least=4
    )
    assert answer.coordinators
    await core.metadata.update(10_000)
    node_id = next(iter(core.metadata.snapshot.nodes))
    assert (await core.versions(node_id)).pick(ApiKey.METADATA) >= 9


async def test_closing_ends_what_waits(core: ClientCore, topic: TopicMaker) -> None:
    waiting = asyncio.create_task(core.metadata.topic(topic.name(), 30_000))
    await core.metadata.update(10_000)
    await core.close()
    with pytest.raises(ClientClosed):
        await waiting
    with pytest.raises(ClientClosed):
        await core.ask_any(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["x"]))


async def test_nobody_listens() -> None:
    core = ClientCore(core_config(f"127.0.0.1:{free_port()}"))
    await core.start()
    with pytest.raises(KafkaTimeout, match=r"bootstrap\.servers") as raised:
        await core.ask_any(ApiKey.FIND_COORDINATOR, FindCoordinatorRequest(coordinator_keys=["x"]), timeout_ms=300)
    assert isinstance(raised.value.__cause__, NoBrokersReachable)
    with pytest.raises(KafkaTimeout, match="nothing listens"):
        await core.metadata.update(300)
    await core.close()


async def test_a_restarted_broker_is_found_again(restartable: Broker) -> None:
    core = ClientCore(core_config(restartable.bootstrap, ClientKind.PRODUCER))
    await core.start()
    await core.metadata.update(10_000)
    await asyncio.to_thread(restartable.stop)
    with pytest.raises(KafkaTimeout):
        await core.metadata.update(500)
    await asyncio.to_thread(restartable.start)
    assert (await core.metadata.update(30_000)).nodes
    await core.close()
