"""The rules that real clients depend on, one test each, against a live broker."""

from __future__ import annotations

import struct
from uuid import UUID

import pytest

from penstock.base.types import ZERO_UUID
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.create_topics import CreateTopicsRequest
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.messages.metadata import MetadataRequest
from penstock.protocol.requests import decode_response
from penstock.records.batch import read_header
from tests.integration.conftest import Connect, StartBroker
from tests.integration.driving import (
    EARLIEST,
    LATEST,
    MAX_TIMESTAMP,
    batch,
    create_topic,
    delete_topic,
    describe_topics,
    fetch,
    fetch_request,
    fetch_topic,
    list_offset,
    list_offsets,
    new_producer_id,
    new_topic,
    now_ms,
    produce,
    records_of,
    send_values,
)
from tests.support.raw_client import RawClient

SOFTWARE = ApiVersionsRequest(client_software_name="tests", client_software_version="1")


def announced(client: RawClient, version: int = 3) -> dict[int, range]:
    answer = client.call(ApiKey.API_VERSIONS, version, SOFTWARE)
    assert answer.error_code == 0
    return {row.api_key: range(row.min_version, row.max_version + 1) for row in answer.api_keys}


# -- ApiVersions ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", range(5))
def test_api_versions_has_the_short_response_header(client: RawClient, version: int) -> None:
    client.send(ApiKey.API_VERSIONS, version, SOFTWARE)
    frame = client.recv_frame()
    # Correlation id, then at once the error code, without the byte of tagged fields that a flexible header has.
    assert struct.unpack_from(">ih", frame) == (1, 0)
    count = frame[6] - 1 if version >= 3 else struct.unpack_from(">i", frame, 6)[0]
    assert count == len(announced(client, version))


@pytest.mark.parametrize("version", [5, 6, 9, 32767, -1])
def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: RawClient, version: int) -> None:
    body = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 77, -1) + bytes(10)
    client.send_raw(struct.pack(">i", len(body)) + body)
    assert client.recv_frame() == struct.pack(">ihihhh", 77, 35, 1, ApiKey.API_VERSIONS, 0, 4)
    assert announced(client), "the connection goes on"


def test_produce_is_announced_from_0(client: RawClient) -> None:
    """Older librdkafka turns compression and idempotence off otherwise (KAFKA-18659)."""
    assert announced(client)[ApiKey.PRODUCE] == range(14)


@pytest.mark.parametrize("version", [0, 1, 2])
def test_produce_below_3_closes_the_connection_as_kafka_does(connect: Connect, version: int) -> None:
    victim = connect()
    body = struct.pack(">hhihhii", ApiKey.PRODUCE, version, 1, -1, -1, 1000, 0)
    victim.send_raw(struct.pack(">i", len(body)) + body)
    assert victim.is_closed_by_peer()


def test_lowest_versions_are_those_of_kafka_4(client: RawClient) -> None:
    """KIP-896."""
    floors = {
        ApiKey.FETCH: 4,
        ApiKey.LIST_OFFSETS: 1,
        ApiKey.CREATE_TOPICS: 2,
        ApiKey.DELETE_TOPICS: 1,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
        ApiKey.DESCRIBE_CONFIGS: 1,
    }
    ranges = announced(client)
    assert {api: ranges[api].start for api in floors} == floors


def test_what_other_clients_need_at_least(client: RawClient) -> None:
    """librdkafka: zstd needs Produce 7 and Fetch 10, OffsetForLeaderEpoch 2; @platformatic/kafka: the others."""
    needed = {
        ApiKey.PRODUCE: 7,
        ApiKey.FETCH: 12,
        ApiKey.METADATA: 9,
        ApiKey.INIT_PRODUCER_ID: 3,
        ApiKey.OFFSET_FOR_LEADER_EPOCH: 2,
    }
    ranges = announced(client)
    assert all(version in ranges[api] for api, version in needed.items())


def test_telemetry_and_unfinished_apis_are_not_announced(client: RawClient) -> None:
    assert not announced(client).keys() & {71, 72, 38, 39, 40, 41, 55, 76, 77, 78, 79, 88, 89}


def test_unstable_init_producer_id_6_is_not_announced(client: RawClient) -> None:
    assert announced(client)[ApiKey.INIT_PRODUCER_ID].stop == 6


def test_features_with_lowest_level_0_are_hidden_in_version_3(client: RawClient) -> None:
    """KAFKA-17011."""
    answer = client.call(ApiKey.API_VERSIONS, 3, SOFTWARE)
    assert all(feature.min_version > 0 for feature in answer.supported_features)


@pytest.mark.parametrize("name", ["", "-x", "x y", "x-"])
def test_a_bad_software_name_is_refused(client: RawClient, name: str) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version="1")
    assert client.call(ApiKey.API_VERSIONS, 3, request).error_code == 42


# -- Topic ids -----------------------------------------------------------------------------------------------------


def test_topic_ids_are_the_same_everywhere(client: RawClient, topic: str) -> None:
    created = create_topic(client, topic)
    assert created != ZERO_UUID
    for version in (10, 11, 12, 13):
        (described,) = describe_topics(client, topic, version=version)
        assert described.topic_id == created
    assert produce(client, created, batch(b"by id")).error_code == 0
    assert produce(client, topic, batch(b"by name")).error_code == 0
    for version in range(13, 19):
        data = fetch(client, created, version=version)
        assert [record.value for record in records_of(data.records)] == [b"by id", b"by name"]


def test_a_topic_made_anew_has_a_new_id(client: RawClient, topic: str) -> None:
    first = create_topic(client, topic)
    delete_topic(client, topic)
    second = create_topic(client, topic)
    assert first != second
    assert fetch(client, first).error_code == 100
    assert produce(client, first, batch(b"x")).error_code == 100
    assert fetch(client, second).error_code == 0


def test_unknown_topic_ids(client: RawClient) -> None:
    unknown = UUID(int=7)
    assert fetch(client, unknown).error_code == 100
    assert produce(client, unknown, batch(b"x")).error_code == 100


# -- Fetch ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0, 1, 4, 5, 7, 9])
def test_a_fetch_inside_a_batch_returns_the_whole_batch(client: RawClient, topic: str, offset: int) -> None:
    create_topic(client, topic)
    send_values(client, topic, *(b"%d" % number for number in range(5)))
    send_values(client, topic, *(b"%d" % number for number in range(5, 10)))
    records = fetch(client, topic, offset).records
    assert records is not None
    assert read_header(records).base_offset == (0 if offset < 5 else 5)
    assert records_of(records)[-1].value == b"9"


@pytest.mark.parametrize("version", range(4, 19))
def test_empty_records_are_zero_long_and_not_null(client: RawClient, topic: str, version: int) -> None:
    """librdkafka stumbles over null."""
    named = create_topic(client, topic) if version >= 13 else topic
    if version < 13:
        create_topic(client, topic)
    assert fetch(client, named, version=version).records == b""
    refused = fetch(client, named, 5, version=version)
    assert (refused.error_code, refused.records) == (1, b"")


# -- What clones get wrong first -----------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [0, 3, 4, 9, 13])
def test_metadata_creates_missing_topics(client: RawClient, topic: str, version: int) -> None:
    name = f"{topic}-{version}"
    (created,) = describe_topics(client, name, version=version, create=version >= 4)
    assert created.error_code == 0
    assert len(created.partitions) == 1
    send_values(client, name, b"usable at once")


def test_metadata_does_not_create_when_asked_not_to(client: RawClient, topic: str) -> None:
    for _ in range(2):
        (missing,) = describe_topics(client, topic, create=False)
        assert missing.error_code == 3


def test_auto_creation_can_be_switched_off(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    own = connect(start_broker(auto_create_topics_enable="false").port)
    for version in (1, 9):
        (missing,) = describe_topics(own, topic, version=version, create=version >= 4)
        assert missing.error_code == 3
    create_topic(own, topic)
    assert describe_topics(own, topic)[0].error_code == 0


def test_auto_created_topics_have_the_brokers_defaults(start_broker: StartBroker, connect: Connect, topic: str) -> None:
    own = connect(start_broker(num_partitions="4").port)
    (created,) = describe_topics(own, topic, create=True)
    assert len(created.partitions) == 4


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a/b", "ü", "x" * 250])
def test_invalid_topic_names(client: RawClient, name: str) -> None:
    (described,) = describe_topics(client, name, create=True)
    assert described.error_code == 17
    (created,) = client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[new_topic(name)])).topics
    assert created.error_code == 17


def test_metadata_null_means_all_topics_and_empty_means_none(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    for version in range(1, 14):
        everything = client.call(ApiKey.METADATA, version, MetadataRequest(topics=None))
        assert topic in {each.name for each in everything.topics}
        assert client.call(ApiKey.METADATA, version, MetadataRequest(topics=[])).topics == []
    everything = client.call(ApiKey.METADATA, 0, MetadataRequest(topics=[]))
    assert topic in {each.name for each in everything.topics}


def test_keyless_records_on_a_compacted_topic(client: RawClient, topic: str) -> None:
    create_topic(client, topic, cleanup_policy="compact")
    refused = produce(client, topic, batch(b"no key", key=None))
    assert refused.error_code == 87
    assert [error.batch_index for error in refused.record_errors] == [0]
    assert refused.error_message
    assert list_offset(client, topic, LATEST) == 0
    assert produce(client, topic, batch(b"a key", key=b"k")).error_code == 0


def test_message_too_large(client: RawClient, topic: str) -> None:
    create_topic(client, topic, max_message_bytes="1000")
    assert produce(client, topic, batch(b"x" * 1000)).error_code == 10
    assert list_offset(client, topic, LATEST) == 0
    assert produce(client, topic, batch(b"x" * 900)).error_code == 0


def test_list_offsets_special_timestamps(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    start = now_ms()
    for timestamp in (-1, -2, -3, start):
        empty = list_offsets(client, topic, timestamp)
        assert (empty.error_code, empty.offset) == (0, -1 if timestamp in (MAX_TIMESTAMP, start) else 0)
    for distance in (0, 500, 100):
        send_values(client, topic, b"a", b"b", timestamp=start + distance)
    assert list_offset(client, topic, EARLIEST) == 0
    assert list_offset(client, topic, LATEST) == 6
    found = list_offsets(client, topic, MAX_TIMESTAMP)
    assert (found.offset, found.timestamp) == (2, start + 500)


def test_list_offsets_by_timestamp(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    start = now_ms()
    for distance in (0, 100, 200):
        send_values(client, topic, b"a", b"b", timestamp=start + distance)
    for distance, offset in [(-50, 0), (0, 0), (1, 2), (100, 2), (101, 4), (200, 4), (201, -1)]:
        found = list_offsets(client, topic, start + distance)
        assert (found.error_code, found.offset) == (0, offset)


def test_special_timestamps_need_their_version(client: RawClient, topic: str) -> None:
    create_topic(client, topic)
    since = {-3: 7, -4: 8, -5: 9, -6: 11}
    for timestamp, first in since.items():
        for version in range(1, 12):
            answer = list_offsets(client, topic, timestamp, version=version)
            assert answer.error_code == (0 if version >= first else 35), (timestamp, version)


def test_describe_configs_lists_every_default(client: RawClient, topic: str) -> None:
    create_topic(client, topic, retention_ms="777")
    for kind, name, at_least in [(2, topic, 33), (4, "1", 200)]:
        resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=None)
        request = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
        (result,) = client.call(ApiKey.DESCRIBE_CONFIGS, 4, request).results
        assert result.error_code == 0
        assert len(result.configs) >= at_least
        rows = {row.name: row for row in result.configs}
        assert all(row.documentation and row.config_type for row in rows.values())
        own = rows["retention.ms"] if kind == 2 else rows["log.retention.ms"]
        assert own.value == ("777" if kind == 2 else None)
    assert rows["node.id"].config_source == 4


def test_producer_ids_are_never_given_twice(client: RawClient, connect: Connect) -> None:
    given = [new_producer_id(client) for _ in range(5)] + [new_producer_id(connect()) for _ in range(5)]
    assert len(set(given)) == 10


def test_fetch_answers_go_by_the_version_of_their_request(client: RawClient, topic: str) -> None:
    """Pipelined in different versions on one connection, as a client that upgrades while it runs."""
    topic_id = create_topic(client, topic)
    send_values(client, topic, b"x")
    versions = [4, 18, 11, 13, 7]
    sent = [
        client.send(ApiKey.FETCH, version, fetch_request(fetch_topic(topic_id if version >= 13 else topic, {0: 0})))
        for version in versions
    ]
    for expected, version in zip(sent, versions, strict=True):
        correlation_id, answer = decode_response(ApiKey.FETCH, version, client.recv_frame())
        assert correlation_id == expected
        assert records_of(answer.responses[0].partitions[0].records)[0].value == b"x"
