"""The core on a cluster of the test's own: whom it asks, how often, and what it does when brokers go away."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.config import ClientKind
from penstock.client.core.client import ClientCore
from penstock.client.core.nodes import aside_node_id, broker_id, coordinator_node_id
from penstock.client.core.types import ClusterSnapshot, CoordinatorKind, Node
from penstock.client.errors import (
    AuthenticationFailed,
    ClientClosed,
    ClientError,
    GroupAuthorizationFailed,
    InvalidState,
    KafkaTimeout,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
    UnsupportedByBroker,
)
from penstock.network.errors import ConnectFailed, UnsupportedVersion
from penstock.network.handshake import Opening
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersion
from penstock.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from penstock.protocol.messages.fetch import FetchRequest, FetchResponse
from penstock.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from penstock.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.unit.client.core.world import Cluster
from tests.unit.network.fakes import EVERY_API, settle

LIST = ApiKey.LIST_GROUPS
GROUP = CoordinatorKind.GROUP


async def started(cluster: Cluster, kind: ClientKind = ClientKind.CONSUMER, **options: object) -> ClientCore:
    core = cluster.core(kind, **options)
    await core.start()
    return core


# Metadata.


async def test_nothing_is_asked_before_somebody_wants_something() -> None:
    cluster = Cluster()
    core = await started(cluster)
    await cluster.time.advance(1000)
    assert cluster.attempts == []
    await core.close()


async def test_a_new_topic_is_asked_for_alone_and_at_once() -> None:
    cluster = Cluster()
    for name in "ab":
        cluster.add_topic(name, [1])
    core = await started(cluster)
    await cluster.run(core.metadata.topic("a"))
    before = cluster.time.now
    assert (await cluster.run(core.metadata.topic("b"))).partitions
    assert cluster.time.now - before < 0.1
    asked = [[topic.name for topic in message.topics] for message in cluster.asked(ApiKey.METADATA)]
    assert asked == [["a"], ["b"]]
    assert set(core.metadata.snapshot.topics) == {"a", "b"}
    await core.close()


async def test_requests_for_updates_are_joined_and_pauses_kept() -> None:
    cluster = Cluster()
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    for _ in range(100):
        core.metadata.request_update("test")
        await cluster.time.advance(0.001)
    assert len(cluster.asked(ApiKey.METADATA)) <= 3
    await core.close()


async def test_metadata_is_refreshed_when_it_is_old() -> None:
    cluster = Cluster()
    cluster.add_topic("a", [1])
    core = await started(cluster, metadata_max_age_ms=60_000)
    core.metadata.want(["a"])
    await cluster.time.advance(200)
    assert len(cluster.asked(ApiKey.METADATA)) == 4
    await core.close()


async def test_a_producer_forgets_topics_that_nobody_wants_any_more() -> None:
    cluster = Cluster()
    for name in "ab":
        cluster.add_topic(name, [1])
    core = await started(cluster, ClientKind.PRODUCER, metadata_max_idle_ms=100_000)
    core.metadata.want("ab")
    await cluster.time.advance(90)
    core.metadata.want("b")
    await cluster.time.advance(20)
    assert set((await cluster.run(core.metadata.update())).topics) == {"b"}
    await core.close()


async def test_an_unknown_topic_is_asked_for_again_until_it_is_there_or_the_time_is_over() -> None:
    cluster = Cluster()
    core = await started(cluster)
    with pytest.raises(UnknownTopicOrPartition, match="topic x does not exist"):
        await cluster.run(core.metadata.topic("x", 1_000))
    waiting = asyncio.create_task(core.metadata.topic("x", 10_000))
    await cluster.time.advance(2)
    cluster.add_topic("x", [1])
    assert len((await cluster.run(waiting)).partitions) == 1
    await core.close()


async def test_those_who_gave_up_are_forgotten() -> None:
    cluster = Cluster()
    cluster.brokers[1].kill()
    core = await started(cluster)
    for _ in range(5):
        with pytest.raises(KafkaTimeout, match="topic x"):
            await cluster.run(core.metadata.topic("x", 300))
        with pytest.raises(KafkaTimeout):
            await cluster.run(core.metadata.update(300))
    assert not core.metadata._waiters
    assert not core.metadata._topic_waiters
    await core.close()


async def test_a_refusal_is_raised_at_once_but_not_remembered() -> None:
    cluster = Cluster()
    cluster.topics["x"] = MetadataResponseTopic(name="x", error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    core = await started(cluster)
    with pytest.raises(TopicAuthorizationFailed, match="topic x"):
        await cluster.run(core.metadata.topic("x"))
    cluster.add_topic("x", [1])
    assert (await cluster.run(core.metadata.topic("x"))).partitions
    await core.close()


async def test_all_topics_and_only_some() -> None:
    cluster = Cluster()
    for name in "abc":
        cluster.add_topic(name, [1])
    core = await started(cluster)
    core.metadata.want_all(True)
    assert set((await cluster.run(core.metadata.update())).topics) == {"a", "b", "c"}
    with pytest.raises(UnknownTopicOrPartition):
        await cluster.run(core.metadata.topic("d", 500))
    core.metadata.want_all(False)
    core.metadata.want_only(["b"])
    assert set(core.metadata.snapshot.topics) == {"b"}
    assert set((await cluster.run(core.metadata.update())).topics) == {"b"}
    await core.close()


async def test_changes_are_told_and_hints_are_changes() -> None:
    cluster = Cluster(2)
    cluster.add_topic("a", [1], epoch=3, topic_id=UUID(int=5))
    core = await started(cluster)
    seen: list[ClusterSnapshot] = []
    core.metadata.on_change(seen.append)
    await cluster.run(core.metadata.topic("a"))
    core.metadata.leader_changed(TopicPartition("a", 0), 2, 4, ())
    core.metadata.leader_changed(TopicPartition("a", 0), 1, 3, ())
    core.metadata.leader_changed(TopicPartition("a", 0), -1, -1, ())
    assert [each.leader(TopicPartition("a", 0)) for each in seen] == [1, 2]
    # An answer that still has the old epoch does not undo the hint.
    assert (await cluster.run(core.metadata.update())).leader(TopicPartition("a", 0)) == 2
    await core.close()


# Nodes.


async def test_other_brokers_are_asked_when_one_is_down() -> None:
    cluster = Cluster(3)
    for broker in cluster.brokers.values():
        broker.handlers[LIST] = lambda _: ListGroupsResponse()
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    cluster.brokers[1].kill()
    cluster.brokers[2].kill()
    for _ in range(5):
        await cluster.run(core.ask_any(LIST, ListGroupsRequest(), timeout_ms=2_000))
    assert cluster.brokers[3].count(LIST) == 5
    await core.close()


async def test_the_least_loaded_connection_is_asked() -> None:
    cluster = Cluster(2)
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    for node_id in (1, 2):
        await cluster.run(core.versions(node_id))
    unanswered = [core.send(1, ApiKey.HEARTBEAT, HeartbeatRequest()) for _ in range(2)]
    cluster.brokers[2].handlers[LIST] = lambda _: ListGroupsResponse()
    for _ in range(5):
        await cluster.run(core.ask_any(LIST, ListGroupsRequest()))
    assert cluster.brokers[2].count(LIST) == 5
    await core.close()
    for future in unanswered:
        assert future.exception() is not None


async def test_when_every_known_broker_is_gone_the_bootstrap_servers_are_asked_again() -> None:
    cluster = Cluster(3)
    core = await started(cluster)
    del cluster.brokers[1], cluster.attempts[:]
    survivor = Cluster(1).brokers[1]
    survivor.handlers[ApiKey.METADATA] = cluster.metadata
    cluster.brokers[1] = survivor
    await cluster.run(core.metadata.update())
    cluster.brokers[2].kill()
    cluster.brokers[3].kill()
    survivor.kill()
    with pytest.raises(KafkaTimeout, match="no broker can be reached"):
        await cluster.run(core.metadata.update(2_000))
    # The cluster comes back elsewhere: only the name of the bootstrap server still leads to it.
    survivor.is_up = True
    survivor.handlers[ApiKey.METADATA] = lambda _: MetadataResponse(
        brokers=[], cluster_id="test", controller_id=-1, topics=[]
    )
    await cluster.run(core.metadata.update(20_000))
    assert cluster.attempts[-1] == "broker-1:9092"
    await core.close()


async def test_without_rebootstrap_the_known_nodes_are_all_there_is() -> None:
    cluster = Cluster(2)
    cluster.brokers[1].handlers[ApiKey.METADATA] = lambda request: _only(cluster, 2, request)
    core = await started(cluster, metadata_recovery_strategy="none")
    await cluster.run(core.metadata.update())
    cluster.brokers[2].kill()
    del cluster.attempts[:]
    with pytest.raises(KafkaTimeout):
        await cluster.run(core.metadata.update(3_000))
    assert set(cluster.attempts) == {"broker-2:9092"}
    await core.close()


def _only(cluster: Cluster, number: int, request: Any) -> MetadataResponse:
    response = cluster.metadata(request)
    response.brokers = [each for each in response.brokers if each.node_id == number]
    return response


async def test_a_broker_may_demand_a_new_start() -> None:
    cluster = Cluster(2)
    cluster.brokers[1].handlers[ApiKey.METADATA] = lambda request: _only(cluster, 2, request)
    cluster.brokers[2].handlers[ApiKey.METADATA] = lambda _: MetadataResponse(
        error_code=ErrorCode.REBOOTSTRAP_REQUIRED, cluster_id="test"
    )
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    await cluster.run(core.metadata.update(20_000))
    assert cluster.brokers[1].count(ApiKey.METADATA) == 2
    assert cluster.brokers[2].count(ApiKey.METADATA) == 1
    await core.close()


async def test_wrong_credentials_are_raised_at_once() -> None:
    async def refuse(opening: Opening) -> None:
        raise AuthenticationFailed(opening.connection.address, "no such user")

    cluster = Cluster()
    core = await started(cluster)
    core.pool._security = core.pool._security.__class__(steps=(refuse,))
    before = cluster.time.now
    with pytest.raises(AuthenticationFailed):
        await cluster.run(core.ask_any(LIST, ListGroupsRequest()))
    with pytest.raises(AuthenticationFailed):
        await cluster.run(core.metadata.update())
    assert cluster.time.now - before < 5
    await core.close()


async def test_an_api_that_the_broker_lacks() -> None:
    cluster = Cluster()
    cluster.brokers[1].served = tuple(each for each in EVERY_API if each.api_key != LIST)
    core = await started(cluster)
    with pytest.raises(UnsupportedByBroker, match="does not serve ListGroups"):
        await cluster.run(core.ask_any(LIST, ListGroupsRequest()))
    await core.close()


async def test_a_code_of_the_whole_answer_is_retried_or_raised() -> None:
    cluster = Cluster()
    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]
    cluster.brokers[1].handlers[LIST] = lambda _: ListGroupsResponse(error_code=codes.pop(0))
    core = await started(cluster)
    await cluster.run(core.ask_any(LIST, ListGroupsRequest(), check=lambda answer: answer.error_code))
    codes.append(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    with pytest.raises(ClientError, match="may not"):
        await cluster.run(core.ask_any(LIST, ListGroupsRequest(), check=lambda answer: answer.error_code))
    await core.close()


# The controller and coordinators.


async def test_the_controller_is_followed() -> None:
    cluster = Cluster(2)

    def refuse(_: Any) -> CreateTopicsResponse:
        cluster.controller_id = 2
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)])

    cluster.brokers[1].handlers[ApiKey.CREATE_TOPICS] = refuse
    cluster.brokers[2].handlers[ApiKey.CREATE_TOPICS] = lambda _: CreateTopicsResponse(
        topics=[CreatableTopicResult(name="t")]
    )
    core = await started(cluster, ClientKind.ADMIN)
    answer = await cluster.run(
        core.ask_controller(
            ApiKey.CREATE_TOPICS,
            CreateTopicsRequest(topics=[]),
            codes=lambda answer: [topic.error_code for topic in answer.topics],
        )
    )
    assert answer.topics[0].error_code == 0
    await core.close()


def coordinated_by(cluster: Cluster, node_id: int, code: int = 0) -> None:
    def find(request: Any) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(
            coordinators=[
                Coordinator(key=key, node_id=node_id, host=f"broker-{node_id}", port=9092, error_code=code)
                for key in request.coordinator_keys
            ]
        )

    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.FIND_COORDINATOR] = find


async def test_a_coordinator_is_asked_over_its_own_connection_and_found_again_when_it_moves() -> None:
    cluster = Cluster(2)
    coordinated_by(cluster, 1)

    def move(_: Any) -> HeartbeatResponse:
        coordinated_by(cluster, 2)
        return HeartbeatResponse(error_code=ErrorCode.NOT_COORDINATOR)

    codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS]
    cluster.brokers[1].handlers[ApiKey.HEARTBEAT] = move
    cluster.brokers[2].handlers[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse(error_code=codes.pop(0))
    core = await started(cluster)
    answer = await cluster.run(
        core.ask_coordinator(GROUP, "g", ApiKey.HEARTBEAT, HeartbeatRequest(), codes=lambda answer: [answer.error_code])
    )
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS, "the caller's to understand"
    assert core.known_coordinator(GROUP, "g") == coordinator_node_id(2)
    assert broker_id(coordinator_node_id(2)) == 2
    await core.close()


async def test_a_coordinator_that_dies_is_looked_up_again() -> None:
    cluster = Cluster(2)
    coordinated_by(cluster, 1)
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    asking = asyncio.create_task(
        core.ask_coordinator(GROUP, "g", ApiKey.HEARTBEAT, HeartbeatRequest(), codes=lambda a: [a.error_code])
    )
    await cluster.time.advance(1)
    cluster.brokers[2].handlers[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse()
    coordinated_by(cluster, 2)
    cluster.brokers[1].kill()
    assert (await cluster.run(asking)).error_code == 0
    await core.close()


async def test_several_coordinators_in_one_request_or_one_by_one() -> None:
    cluster = Cluster()
    coordinated_by(cluster, 1)
    core = await started(cluster, ClientKind.ADMIN)
    assert await cluster.run(core.coordinators(GROUP, ["a", "b"])) == {"a": 1, "b": 1}
    assert cluster.brokers[1].count(ApiKey.FIND_COORDINATOR) == 1
    await core.close()

    old = Cluster()
    old.brokers[1].served = tuple(
        type(each)(api_key=each.api_key, min_version=0, max_version=3 if each.api_key == 10 else each.max_version)
        for each in EVERY_API
    )
    old.brokers[1].handlers[ApiKey.FIND_COORDINATOR] = lambda _: FindCoordinatorResponse(
        node_id=1, host="broker-1", port=9092
    )
    core = await started(old, ClientKind.ADMIN)
    assert await old.run(core.coordinators(GROUP, ["a", "b"])) == {"a": 1, "b": 1}
    assert [each.key for each in old.asked(ApiKey.FIND_COORDINATOR)] == ["a", "b"]
    await core.close()


async def test_a_refused_group_is_raised_and_an_unready_one_waited_for() -> None:
    cluster = Cluster()
    coordinated_by(cluster, -1, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    core = await started(cluster)
    with pytest.raises(GroupAuthorizationFailed, match="group g"):
        await cluster.run(core.coordinator(GROUP, "g"))
    coordinated_by(cluster, -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaTimeout, match="group g"):
        await cluster.run(core.coordinator(GROUP, "g", timeout_ms=2_000))
    await core.close()


# Life.


async def test_not_started_and_closed() -> None:
    cluster = Cluster()
    core = cluster.core()
    with pytest.raises(InvalidState, match="was not started"):
        core.send(1, LIST, ListGroupsRequest())
    await core.start()
    await core.start()
    del cluster.brokers[1].handlers[ApiKey.METADATA]
    asking = asyncio.create_task(core.ask_any(LIST, ListGroupsRequest()))
    updating = asyncio.create_task(core.metadata.topic("x"))
    await cluster.time.advance(0.5)
    await core.close()
    await core.close()
    for task in (asking, updating):
        with pytest.raises(ClientClosed):
            await task
    with pytest.raises(ClientClosed):
        core.send(1, LIST, ListGroupsRequest())
    with pytest.raises(ClientClosed):
        await core.start()


async def test_an_unknown_node_fails_through_the_future() -> None:
    cluster = Cluster()
    core = await started(cluster)
    with pytest.raises(ConnectFailed):
        await core.send(77, LIST, ListGroupsRequest())
    await core.close()


async def test_what_is_measured() -> None:
    cluster = Cluster()
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    await settle()
    numbers = core.metrics.read()
    assert numbers["connection-count"] == 1
    assert numbers["request-total"] >= 1
    assert numbers["response-total"] >= 1
    assert numbers['request-total{node-id="node--1"}'] >= 1
    assert "request-latency-avg" in numbers
    await core.close()
    assert core.metrics.read()["connection-count"] == 0


def test_names_are_like_javas() -> None:
    cluster = Cluster()
    assert cluster.core(ClientKind.PRODUCER).client_id.startswith("producer-")
    assert cluster.core(group_id="orders").client_id.startswith("consumer-orders-")
    assert cluster.core(ClientKind.ADMIN).client_id.startswith("adminclient-")
    assert cluster.core(client_id="mine").client_id == "mine"
    assert Node(1, "h", 2).rack is None


async def test_a_listener_that_fails_does_not_end_the_refreshing() -> None:
    def fail(_: ClusterSnapshot) -> None:
        raise ValueError("mine")

    cluster = Cluster()
    core = await started(cluster)
    core.metadata.on_change(fail)
    await cluster.run(core.metadata.update())
    await cluster.run(core.metadata.update())
    await core.close()


# Long polls.


async def test_a_short_question_does_not_wait_behind_a_fetch() -> None:
    cluster = Cluster()
    broker = cluster.brokers[1]
    broker.handlers[LIST] = lambda _: ListGroupsResponse()
    core = await started(cluster)
    await cluster.run(core.metadata.update())
    await cluster.run(core.send(1, LIST, ListGroupsRequest()))
    assert len(broker.transports) == 2, "the bootstrap server's and the broker's"

    fetch = core.send(1, ApiKey.FETCH, FetchRequest(max_wait_ms=60_000))
    await cluster.run(core.send(1, LIST, ListGroupsRequest()))
    await cluster.run(core.ask_any(LIST, ListGroupsRequest()))
    assert len(broker.transports) == 3, "one beside the fetch, for all of them"
    assert not fetch.done()

    next(each for each in broker.asked if each.api_key == ApiKey.FETCH).answer(FetchResponse())
    await cluster.run(fetch)
    await cluster.run(core.send(1, LIST, ListGroupsRequest()))
    assert len(broker.transports) == 3
    await core.close()


def test_the_broker_behind_each_kind_of_id() -> None:
    assert [broker_id(each) for each in (7, coordinator_node_id(7), aside_node_id(7), -1)] == [7, 7, 7, -1]


# Very old brokers.


def with_metadata_up_to(version: int) -> tuple[ApiVersion, ...]:
    limit = ApiVersion(api_key=ApiKey.METADATA, min_version=0, max_version=version)
    return tuple(limit if each.api_key == ApiKey.METADATA else each for each in EVERY_API)


async def test_all_topics_of_a_broker_that_is_too_old_to_be_asked_for_them() -> None:
    """It was an error of the codec."""
    cluster = Cluster()
    cluster.brokers[1].served = with_metadata_up_to(0)
    core = await started(cluster)
    core.metadata.want_all(True)
    with pytest.raises(UnsupportedVersion, match="Metadata"):
        await cluster.run(core.metadata.update())
    await core.close()


async def test_all_topics_of_an_old_broker() -> None:
    cluster = Cluster()
    cluster.add_topic("t", [1])
    cluster.brokers[1].served = with_metadata_up_to(1)
    core = await started(cluster)
    core.metadata.want_all(True)
    assert list((await cluster.run(core.metadata.update())).topics) == ["t"]
    await core.close()
