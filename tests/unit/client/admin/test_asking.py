"""Whom the administration client asks, on a cluster of the test's own: leaders that move, brokers that go."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import TopicPartition
from penstock.client.admin.asking import Asker, while_throttled
from penstock.client.admin.errors import AdminErrors, Outcome, failure
from penstock.client.admin.groups import list_groups
from penstock.client.admin.leaders import UNKNOWN_GRACE_MS
from penstock.client.admin.log_dirs import describe_log_dirs
from penstock.client.admin.offsets import OffsetSpec, list_offsets
from penstock.client.admin.topics import create_topics
from penstock.client.config import ClientKind
from penstock.client.errors import KafkaTimeout
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from penstock.protocol.messages.describe_log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult
from penstock.protocol.messages.list_groups import ListedGroup, ListGroupsResponse
from penstock.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tests.unit.client.core.world import Cluster

TP0, TP1 = TopicPartition("t", 0), TopicPartition("t", 1)
LATEST = {TP0: OffsetSpec.LATEST, TP1: OffsetSpec.LATEST}


def offsets(request: Any, code: int = 0) -> ListOffsetsResponse:
    """Each partition's offset is ten times its number."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=each.partition_index, error_code=code, offset=each.partition_index * 10
                    )
                    for each in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    cluster = Cluster(3)
    cluster.add_topic("t", [2, 3])
    for broker in cluster.brokers.values():
        broker.handlers[ApiKey.LIST_OFFSETS] = offsets
    return cluster


@pytest.fixture
async def asker(cluster: Cluster) -> AsyncIterator[Asker]:
    core = cluster.core(ClientKind.ADMIN)
    await core.start()
    yield Asker(core)
    await core.close()


async def test_each_leader_is_asked_for_what_it_leads(cluster: Cluster, asker: Asker) -> None:
    found = await cluster.run(list_offsets(asker, LATEST))
    assert {tp: each.offset for tp, each in found.items()} == {TP0: 0, TP1: 10}
    assert [cluster.brokers[each].count(ApiKey.LIST_OFFSETS) for each in (1, 2, 3)] == [0, 1, 1]


async def test_a_leader_that_has_moved_is_found(cluster: Cluster, asker: Asker) -> None:
    def moved(request: Any) -> ListOffsetsResponse:
        cluster.add_topic("t", [1, 3])
        return offsets(request, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    cluster.brokers[2].handlers[ApiKey.LIST_OFFSETS] = moved
    assert len(await cluster.run(list_offsets(asker, LATEST))) == 2
    # The partition that had been answered is not asked for again.
    assert [cluster.brokers[each].count(ApiKey.LIST_OFFSETS) for each in (1, 2, 3)] == [1, 1, 1]


async def test_a_leader_that_is_gone_is_asked_again_elsewhere(cluster: Cluster, asker: Asker) -> None:
    def dies(request: Any) -> None:
        cluster.add_topic("t", [3, 3])
        cluster.brokers[2].kill()

    cluster.brokers[2].handlers[ApiKey.LIST_OFFSETS] = dies
    assert len(await cluster.run(list_offsets(asker, LATEST))) == 2


async def test_a_topic_that_is_just_being_made_is_waited_for(cluster: Cluster, asker: Asker) -> None:
    cluster.time.call_later(UNKNOWN_GRACE_MS / 2000, lambda: cluster.add_topic("new", [1]))
    tp = TopicPartition("new", 0)
    assert (await cluster.run(list_offsets(asker, {tp: OffsetSpec.LATEST})))[tp].offset == 0


async def test_an_unknown_topic_fails_after_its_grace_and_not_later(cluster: Cluster, asker: Asker) -> None:
    started = cluster.time.now
    with pytest.raises(AdminErrors) as caught:
        await cluster.run(list_offsets(asker, {TP0: OffsetSpec.LATEST, TopicPartition("no", 0): OffsetSpec.LATEST}))
    assert set(caught.value.successes) == {TP0}
    assert UNKNOWN_GRACE_MS / 1000 <= cluster.time.now - started < UNKNOWN_GRACE_MS / 1000 + 3


async def test_a_partition_without_a_leader_times_out_with_the_reason(cluster: Cluster, asker: Asker) -> None:
    cluster.add_topic("t", [-1, 3])
    with pytest.raises(KafkaTimeout, match="partition t-0: the partition has no leader"):
        await cluster.run(list_offsets(asker, {TP0: OffsetSpec.LATEST}, timeout_ms=3000))
    # What was done in time is not lost.
    with pytest.raises(AdminErrors, match="1 of 2 failed: ListOffsets did not succeed within 3000 ms") as caught:
        await cluster.run(list_offsets(asker, LATEST, timeout_ms=3000))
    assert set(caught.value.successes) == {TP1}


async def test_a_refusal_is_not_asked_again(cluster: Cluster, asker: Asker) -> None:
    cluster.brokers[2].handlers[ApiKey.LIST_OFFSETS] = lambda request: offsets(
        request, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    )
    with pytest.raises(AdminErrors, match="1 of 2 failed: partition t-0: the user may not"):
        await cluster.run(list_offsets(asker, LATEST))
    assert cluster.brokers[2].count(ApiKey.LIST_OFFSETS) == 1


async def test_all_brokers_list_their_groups_and_one_that_loads_is_asked_again(cluster: Cluster, asker: Asker) -> None:
    def listing(number: int) -> Any:
        codes = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE] if number == 2 else [ErrorCode.NONE]

        def answer(_: Any) -> ListGroupsResponse:
            code = codes.pop(0)
            groups = [] if code else [ListedGroup(group_id=f"g{number}", group_state="Empty", group_type="classic")]
            return ListGroupsResponse(error_code=code, groups=groups)

        return answer

    for number, broker in cluster.brokers.items():
        broker.handlers[ApiKey.LIST_GROUPS] = listing(number)
    assert list(await cluster.run(list_groups(asker))) == ["g1", "g2", "g3"]


async def test_one_broker_that_fails_does_not_hide_the_others(cluster: Cluster, asker: Asker) -> None:
    for number, broker in cluster.brokers.items():
        code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if number == 2 else ErrorCode.NONE
        answer = DescribeLogDirsResponse(error_code=code, results=[DescribeLogDirsResult(log_dir="/d")])
        broker.handlers[ApiKey.DESCRIBE_LOG_DIRS] = lambda _, answer=answer: answer
    with pytest.raises(AdminErrors, match="1 of 3 failed: broker 2: the user may not") as caught:
        await cluster.run(describe_log_dirs(asker))
    assert {number: list(each) for number, each in caught.value.successes.items()} == {1: ["/d"], 3: ["/d"]}


async def test_a_controller_that_has_moved_is_followed(cluster: Cluster, asker: Asker) -> None:
    def create(request: Any) -> CreateTopicsResponse:
        return CreateTopicsResponse(topics=[CreatableTopicResult(name=each.name) for each in request.topics])

    def refuse(request: Any) -> CreateTopicsResponse:
        cluster.controller_id = 3
        code = ErrorCode.NOT_CONTROLLER
        return CreateTopicsResponse(
            topics=[CreatableTopicResult(name=it.name, error_code=code) for it in request.topics]
        )

    cluster.brokers[1].handlers[ApiKey.CREATE_TOPICS] = refuse
    cluster.brokers[3].handlers[ApiKey.CREATE_TOPICS] = create
    assert set(await cluster.run(create_topics(asker, ["a", "b"]))) == {"a", "b"}


async def test_what_a_quota_refused_is_asked_again_after_the_pause(cluster: Cluster, asker: Asker) -> None:
    asked: list[list[str]] = []

    async def ask(names: list[str], remaining_ms: float) -> tuple[Outcome[str, int], float]:
        asked.append(names)
        outcome: Outcome[str, int] = Outcome()
        for number, name in enumerate(names):
            code = ErrorCode.THROTTLING_QUOTA_EXCEEDED if number or len(asked) == 2 else ErrorCode.NONE
            outcome.add(name, 1, code, name)
        return outcome, 2000

    started = cluster.time.now
    outcome = await cluster.run(while_throttled(asker, ["a", "b"], ask, 60_000))
    assert outcome.result() == {"a": 1, "b": 1}
    assert asked == [["a", "b"], ["b"], ["b"]]
    assert cluster.time.now - started >= 4


async def test_a_quota_that_lasts_longer_than_the_time_is_told(cluster: Cluster, asker: Asker) -> None:
    async def ask(names: list[str], remaining_ms: float) -> tuple[Outcome[str, int], float]:
        refused: KafkaError = failure("a", ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        return Outcome(failed={"a": refused}), 5000

    outcome = await cluster.run(while_throttled(asker, ["a"], ask, 1000))
    with pytest.raises(KafkaError, match="the quota of the user"):
        outcome.result()
