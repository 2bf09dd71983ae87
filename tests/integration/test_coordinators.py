"""Finding coordinators, and what they keep over restarts, deletions and stops, on a live broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import create_topic, delete_topic, describe_topics
from tests.support.brokers import PenstockBroker
from tests.support.raw_client import RawClient

GROUP, TRANSACTION, SHARE = 0, 1, 2
NOT_COORDINATOR = 16


def find(client: RawClient, *keys: str, kind: int = GROUP, version: int = 6) -> Any:
    request = FindCoordinatorRequest(key=keys[0], key_type=kind, coordinator_keys=list(keys))
    return client.call(ApiKey.FIND_COORDINATOR, version, request)


def commit(client: RawClient, group: str, topic: str, offset: int, metadata: str = "") -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata=metadata)
    request = OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    ((result,),) = [each.partitions for each in client.call(ApiKey.OFFSET_COMMIT, 8, request).topics]
    code: int = result.error_code
    return code


def committed(client: RawClient, group: str, topic: str) -> tuple[int, str]:
    """Offset and metadata, as soon as the coordinator has loaded."""
    wanted = OffsetFetchRequestGroup(
        group_id=group, topics=[OffsetFetchRequestTopics(name=topic, partition_indexes=[0])]
    )
    while True:
        (answer,) = client.call(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[wanted])).groups
        if answer.error_code != 14:
            break
    assert answer.error_code == 0, answer
    ((found,),) = [each.partitions for each in answer.topics]
    return found.committed_offset, found.metadata


@pytest.mark.parametrize(("kind", "topic"), [(GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")])
def test_the_first_ones_on_an_empty_broker_all_find_their_coordinator(
    start_broker: StartBroker, connect: Connect, kind: int, topic: str
) -> None:
    own = start_broker()
    clients = [connect(own.port) for _ in range(20)]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda pair: find(pair[1], f"key-{pair[0]}", kind=kind), enumerate(clients)))
    for answer in answers:
        (found,) = answer.coordinators
        assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "127.0.0.1", own.port)
    (made,) = describe_topics(clients[0], topic)
    assert (len(made.partitions), made.is_internal) == (50, True)
    assert own.output().count(f"created topic {topic}") == 1


def test_who_is_told_of_a_coordinator_also_finds_it_there(start_broker: StartBroker, connect: Connect) -> None:
    """A topic is in the metadata a moment before its partitions are served: nobody may be sent there in between."""
    own = start_broker()
    clients = [connect(own.port) for _ in range(10)]

    def find_and_ask(number: int) -> int:
        client = clients[number]
        assert find(client, f"g-{number}").coordinators[0].error_code == 0
        wanted = OffsetFetchRequestGroup(group_id=f"g-{number}", topics=None)
        code: int = client.call(ApiKey.OFFSET_FETCH, 8, OffsetFetchRequest(groups=[wanted])).groups[0].error_code
        return code

    with ThreadPoolExecutor(10) as pool:
        # The later ones come while the first one's topic is being made.
        started = []
        for number in range(10):
            started.append(pool.submit(find_and_ask, number))
            time.sleep(0.004)
        assert [each.result() for each in started] == [0] * 10


def test_every_version_finds_it(client: RawClient) -> None:
    for version in range(4):
        answer = find(client, "g", version=version)
        assert (answer.error_code, answer.node_id, answer.host) == (0, 1, "127.0.0.1")
    for version in range(4, 7):
        answer = find(client, "g", "h", "g", version=version)
        assert [(each.key, each.error_code, each.node_id) for each in answer.coordinators] == [
            ("g", 0, 1),
            ("h", 0, 1),
            ("g", 0, 1),
        ]
    assert find(client, "t", kind=TRANSACTION, version=1).error_code == 0


def test_kinds_that_are_not_served_are_refused_key_by_key(client: RawClient) -> None:
    for kind in (SHARE, 7, -1):
        answer = find(client, "a", "b", kind=kind)
        assert [(each.error_code, each.node_id, each.host, each.port) for each in answer.coordinators] == [
            (42, -1, "", -1)
        ] * 2
        old = find(client, "a", kind=kind, version=3)
        assert (old.error_code, old.node_id, old.port) == (42, -1, -1)


def test_an_internal_topic_that_a_client_only_asks_for_is_made_as_it_must_be(
    start_broker: StartBroker, connect: Connect
) -> None:
    client = connect(start_broker(offsets_topic_num_partitions="7").port)
    (made,) = describe_topics(client, "__consumer_offsets", create=True)
    assert len(made.partitions) == 7
    resource = DescribeConfigsResource(
        resource_type=2, resource_name="__consumer_offsets", configuration_keys=["cleanup.policy"]
    )
    (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest(resources=[resource])).results
    assert [each.value for each in result.configs] == ["compact"]


def test_commits_are_synced_where_every_record_must_be(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    client = connect(start_broker(log_flush_interval_messages="1", offsets_topic_num_partitions="2").port)
    create_topic(client, topic)
    find(client, "g")
    for offset in range(5):
        assert commit(client, "g", topic, offset) == 0
    assert committed(client, "g", topic) == (4, "")


@pytest.mark.parametrize("end", [PenstockBroker.stop, PenstockBroker.kill], ids=["stop", "kill"])
def test_committed_offsets_survive_a_restart(
    start_broker: StartBroker, connect: Connect, topic: str, end: Callable[[PenstockBroker], None]
) -> None:
    own = start_broker()
    client = connect(own.port)
    create_topic(client, topic)
    find(client, "g")
    for offset in range(30):
        assert commit(client, "g", topic, offset, f"note {offset}") == 0
    assert commit(client, "h", topic, 77) == 0
    end(own)
    own.start()
    client = connect(own.port)
    assert committed(client, "g", topic) == (29, "note 29")
    assert committed(client, "h", topic) == (77, "")
    assert commit(client, "g", topic, 30) == 0


def test_offsets_go_with_their_topic(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    own = start_broker()
    client = connect(own.port)
    create_topic(client, topic)
    create_topic(client, f"{topic}-kept")
    find(client, "g")
    for name in (topic, f"{topic}-kept"):
        assert commit(client, "g", name, 5) == 0
    delete_topic(client, topic)
    assert committed(client, "g", topic) == (-1, "")
    assert committed(client, "g", f"{topic}-kept") == (5, "")
    own.kill()
    own.start()
    client = connect(own.port)
    # Also for a new topic of the same name: the old one's offsets mean nothing in it.
    create_topic(client, topic)
    assert committed(client, "g", topic) == (-1, "")
    assert committed(client, "g", f"{topic}-kept") == (5, "")


def test_a_coordinators_topic_can_be_deleted_and_comes_back_empty(
    start_broker: StartBroker, connect: Connect, topic: str
) -> None:
    client = connect(start_broker(offsets_topic_num_partitions="3").port)
    create_topic(client, topic)
    find(client, "g")
    assert commit(client, "g", topic, 5) == 0
    delete_topic(client, "__consumer_offsets")
    assert commit(client, "g", topic, 6) == NOT_COORDINATOR
    assert find(client, "g").coordinators[0].error_code == 0
    assert committed(client, "g", topic) == (-1, "")
    assert commit(client, "g", topic, 7) == 0
    assert committed(client, "g", topic) == (7, "")


def test_who_waits_in_a_group_is_told_when_the_broker_stops(start_broker: StartBroker, connect: Connect) -> None:
    own = start_broker(group_initial_rebalance_delay_ms="60000")
    client = connect(own.port)
    find(client, "g")
    request = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=60_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"")],
    )
    client.send(ApiKey.JOIN_GROUP, 0, request)
    # Answered by the same connection in order, so by then the first one waits.
    other = connect(own.port)
    find(other, "g")
    own.stop()
    frame = client.recv_frame()
    assert int.from_bytes(frame[4:6], "big") == NOT_COORDINATOR


def test_a_retention_beyond_all_time_is_taken(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    find(client, "g")
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=3)
    request = OffsetCommitRequest(
        group_id=topic,
        retention_time_ms=2**63 - 1,
        topics=[OffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )
    ((result,),) = [each.partitions for each in client.call(ApiKey.OFFSET_COMMIT, 2, request).topics]
    assert result.error_code == 0
    assert committed(client, topic, topic) == (3, "")
