"""Topics made and deleted by many clients at once, and while they are used."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_topic_partitions import (
    Cursor,
    DescribeTopicPartitionsRequest,
    TopicRequest,
)
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.requests import decode_response
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    batch,
    create_topic,
    delete_topic,
    describe_topics,
    fetch_request,
    fetch_topic,
    new_topic,
    produce,
    produce_request,
    read_values,
    send_values,
)
from tests.support.raw_client import RawClient


def test_one_of_many_creators_wins(connect: Connect, topic: str) -> None:
    clients = [connect() for _ in range(20)]
    request = CreateTopicsRequest(topics=[new_topic(topic, 2)], timeout_ms=10_000)
    for each in clients:
        each.send(ApiKey.CREATE_TOPICS, 7, request)
    codes = [decode_response(ApiKey.CREATE_TOPICS, 7, each.recv_frame())[1].topics[0].error_code for each in clients]
    assert sorted(codes) == [0] + [36] * 19


def test_many_clients_create_a_topic_by_asking_for_it(connect: Connect, topic: str) -> None:
    clients = [connect() for _ in range(20)]
    request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)], allow_auto_topic_creation=True)
    for each in clients:
        each.send(ApiKey.METADATA, 12, request)
    answers = [decode_response(ApiKey.METADATA, 12, each.recv_frame())[1].topics[0] for each in clients]
    assert {answer.error_code for answer in answers} == {0}
    assert len({answer.topic_id for answer in answers}) == 1


def test_a_topic_deleted_under_its_producers_and_readers(client: RawClient, connect: Connect, topic: str) -> None:
    """Every answer before the deletion is a success, every one after it says that the topic is gone."""
    create_topic(client, topic)
    writers, readers = [connect() for _ in range(5)], [connect() for _ in range(5)]
    for _ in range(20):
        for writer in writers:
            writer.send(ApiKey.PRODUCE, 12, produce_request(topic, {0: batch(b"x")}))
        for reader in readers:
            reader.send(ApiKey.FETCH, 12, fetch_request(fetch_topic(topic, {0: 0}), max_wait_ms=100))
    delete_topic(client, topic)
    for writer in writers:
        codes = [
            decode_response(ApiKey.PRODUCE, 12, writer.recv_frame())[1].responses[0].partition_responses[0].error_code
            for _ in range(20)
        ]
        assert codes == sorted(codes)
        assert set(codes) <= {0, 3}
    for reader in readers:
        for _ in range(20):
            data = decode_response(ApiKey.FETCH, 12, reader.recv_frame())[1].responses[0].partitions[0]
            assert data.error_code in (0, 3)
    assert produce(client, topic, batch(b"x")).error_code == 3


def test_a_topic_made_and_deleted_again_and_again(client: RawClient, topic: str) -> None:
    ids: set[UUID] = set()
    for number in range(20):
        ids.add(create_topic(client, topic))
        assert send_values(client, topic, b"%d" % number) == 0
        assert read_values(client, topic) == [b"%d" % number]
        delete_topic(client, topic)
    assert len(ids) == 20


def test_several_topics_in_one_request_have_results_of_their_own(client: RawClient, topic: str) -> None:
    topics = [new_topic(topic), new_topic("bad name"), new_topic(f"{topic}-2", 0), new_topic(f"{topic}-3", 3)]
    answer = client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=topics, timeout_ms=10_000))
    found = {each.name: (each.error_code, each.num_partitions) for each in answer.topics}
    assert found == {topic: (0, 1), "bad name": (17, -1), f"{topic}-2": (37, -1), f"{topic}-3": (0, 3)}


def test_deleting_by_id(client: RawClient, topic: str) -> None:
    topic_id = create_topic(client, topic)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=topic_id)], timeout_ms=10_000)
    (first,) = client.call(ApiKey.DELETE_TOPICS, 6, request).responses
    (second,) = client.call(ApiKey.DELETE_TOPICS, 6, request).responses
    assert (first.name, first.error_code, second.error_code) == (topic, 0, 100)


@pytest.mark.parametrize(("version", "code"), [(2, 42), (6, 73)])
def test_deletion_can_be_switched_off(
    start_broker: StartBroker, connect: Connect, topic: str, version: int, code: int
) -> None:
    client = connect(start_broker(delete_topic_enable="false").port)
    create_topic(client, topic)
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=topic)], topic_names=[topic], timeout_ms=10_000)
    (refused,) = client.call(ApiKey.DELETE_TOPICS, version, request).responses
    assert (refused.name, refused.error_code) == (topic, code)
    assert describe_topics(client, topic)[0].error_code == 0


def test_pages_of_topics_join_without_gaps(client: RawClient, topic: str) -> None:
    names = [f"{topic}-{letter}" for letter in "abc"]
    for name in names:
        create_topic(client, name, partitions=3)
    cursor: Cursor | None = None
    found: list[tuple[str, int]] = []
    for _ in range(10):
        request = DescribeTopicPartitionsRequest(
            topics=[TopicRequest(name=name) for name in names], response_partition_limit=2, cursor=cursor
        )
        answer = client.call(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, request)
        found += [(each.name, partition.partition_index) for each in answer.topics for partition in each.partitions]
        cursor = answer.next_cursor
        if cursor is None:
            break
    assert found == [(name, index) for name in names for index in range(3)]
