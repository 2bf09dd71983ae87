"""What the integration tests say to a broker, in few words: topics, batches, produce, fetch, offsets.

Every function takes a `RawClient`, so that a test decides about connections, and a version where it matters.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from penstock.base.types import ZERO_UUID
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic, PartitionData
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    TopicProduceData,
)
from penstock.records.batch import iter_batches
from penstock.records.builder import DecodedRecord, Record, build_batch, read_records
from tests.support.raw_client import RawClient

EARLIEST, LATEST, MAX_TIMESTAMP = -2, -1, -3


def now_ms() -> int:
    return int(time.time() * 1000)


# -- Topics --------------------------------------------------------------------------------------------------------


def new_topic(name: str, partitions: int = 1, factor: int = 1, /, **configs: str) -> CreatableTopic:
    """Settings are keyword arguments with `_` for `.`."""
    return CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=factor,
        configs=[CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()],
    )


def create_topic(client: RawClient, name: str, partitions: int = 1, **configs: str) -> UUID:
    """A topic that must not have been there; its id."""
    topic = new_topic(name, partitions, 1, **configs)
    (result,) = client.call(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics=[topic])).topics
    assert result.error_code == 0, result
    topic_id: UUID = result.topic_id
    return topic_id


def delete_topic(client: RawClient, name: str) -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=10_000)
    (result,) = client.call(ApiKey.DELETE_TOPICS, 6, request).responses
    assert result.error_code == 0, result


def describe_topics(client: RawClient, *names: str, version: int = 12, create: bool = False) -> list[Any]:
    """Metadata of the named topics."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(name=name) for name in names], allow_auto_topic_creation=create
    )
    topics: list[Any] = client.call(ApiKey.METADATA, version, request).topics
    return topics


# -- Producing -----------------------------------------------------------------------------------------------------


def batch(*values: bytes, key: bytes | None = b"k", timestamp: int | None = None, **options: Any) -> bytes:
    moment = now_ms() if timestamp is None else timestamp
    return build_batch([Record(moment, key, value) for value in values], **options)


def produce_request(
    topic: str | UUID, partitions: Mapping[int, bytes | None], *, acks: int = -1, transactional_id: str | None = None
) -> ProduceRequest:
    data = [PartitionProduceData(index=index, records=records) for index, records in partitions.items()]
    named = (
        TopicProduceData(topic_id=topic, partition_data=data)
        if isinstance(topic, UUID)
        else TopicProduceData(name=topic, partition_data=data)
    )
    return ProduceRequest(acks=acks, timeout_ms=10_000, topic_data=[named], transactional_id=transactional_id)


def produce(
    client: RawClient,
    topic: str | UUID,
    records: bytes | None,
    *,
    partition: int = 0,
    version: int | None = None,
    acks: int = -1,
) -> PartitionProduceResponse:
    """The answer for one partition."""
    if version is None:
        version = 13 if isinstance(topic, UUID) else 12
    answer = client.call(ApiKey.PRODUCE, version, produce_request(topic, {partition: records}, acks=acks))
    ((result,),) = [each.partition_responses for each in answer.responses]
    assert isinstance(result, PartitionProduceResponse)
    return result


def send_values(client: RawClient, topic: str, *values: bytes, partition: int = 0, **options: Any) -> int:
    """Produce a batch that must be taken; the offset of its first record."""
    result = produce(client, topic, batch(*values, **options), partition=partition)
    assert result.error_code == 0, result
    return result.base_offset


def new_producer_id(client: RawClient) -> int:
    answer = client.call(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(transaction_timeout_ms=60_000))
    assert answer.error_code == 0
    producer_id: int = answer.producer_id
    return producer_id


# -- Reading -------------------------------------------------------------------------------------------------------


def fetch_topic(topic: str | UUID, offsets: Mapping[int, int], *, partition_max_bytes: int = 1 << 20) -> FetchTopic:
    partitions = [
        FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=partition_max_bytes)
        for index, offset in offsets.items()
    ]
    if isinstance(topic, UUID):
        return FetchTopic(topic_id=topic, partitions=partitions)
    return FetchTopic(topic=topic, partitions=partitions)


def fetch_request(
    *topics: FetchTopic,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 << 20,
    session_id: int = 0,
    session_epoch: int = -1,
    forgotten: Sequence[ForgottenTopic] = (),
    isolation_level: int = 0,
) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        session_id=session_id,
        session_epoch=session_epoch,
        topics=list(topics),
        forgotten_topics_data=list(forgotten),
        isolation_level=isolation_level,
    )


def fetch(
    client: RawClient,
    topic: str | UUID,
    offset: int = 0,
    *,
    partition: int = 0,
    version: int | None = None,
    partition_max_bytes: int = 1 << 20,
    **options: Any,
) -> PartitionData:
    """The answer for one partition."""
    if version is None:
        version = 17 if isinstance(topic, UUID) else 12
    wanted = fetch_topic(topic, {partition: offset}, partition_max_bytes=partition_max_bytes)
    answer = client.call(ApiKey.FETCH, version, fetch_request(wanted, **options))
    assert answer.error_code == 0, answer
    ((data,),) = [each.partitions for each in answer.responses]
    assert isinstance(data, PartitionData)
    return data


def records_of(records: bytes | None) -> list[DecodedRecord]:
    """The records of all whole batches."""
    assert records is not None
    found: list[DecodedRecord] = []
    for position, header in iter_batches(records):
        found += read_records(records, position, header)
    return found


def read_all(
    client: RawClient, topic: str | UUID, *, partition: int = 0, offset: int | None = None
) -> list[DecodedRecord]:
    """Everything from an offset (or from the start of the log) to the high watermark."""
    if offset is None:
        offset = list_offset(client, topic, EARLIEST, partition=partition) if isinstance(topic, str) else 0
    found: list[DecodedRecord] = []
    while True:
        data = fetch(client, topic, offset, partition=partition)
        assert data.error_code == 0, data
        records = [record for record in records_of(data.records) if record.offset >= offset]
        found += records
        if not records:
            assert offset == data.high_watermark
            return found
        offset = records[-1].offset + 1


def read_values(client: RawClient, topic: str | UUID, *, partition: int = 0) -> list[bytes | None]:
    return [record.value for record in read_all(client, topic, partition=partition)]


def list_offsets(client: RawClient, topic: str, timestamp: int, *, partition: int = 0, version: int = 9) -> Any:
    """The answer for one partition."""
    wanted = ListOffsetsPartition(partition_index=partition, timestamp=timestamp)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[wanted])])
    ((answer,),) = [each.partitions for each in client.call(ApiKey.LIST_OFFSETS, version, request).topics]
    return answer


def list_offset(client: RawClient, topic: str, timestamp: int, *, partition: int = 0) -> int:
    answer = list_offsets(client, topic, timestamp, partition=partition)
    assert answer.error_code == 0, answer
    offset: int = answer.offset
    return offset


def topic_id_of(client: RawClient, name: str) -> UUID:
    (topic,) = describe_topics(client, name)
    assert topic.topic_id != ZERO_UUID
    topic_id: UUID = topic.topic_id
    return topic_id
