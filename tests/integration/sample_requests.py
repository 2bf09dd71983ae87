"""One sensible request for every served API in every version, to be answered without an error, or with one it expects.

What a request names has to exist: see `Sample`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.api_versions import ApiVersionsRequest
from penstock.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from penstock.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from penstock.protocol.messages.describe_cluster import DescribeClusterRequest
from penstock.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from penstock.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsRequest, TopicRequest
from penstock.protocol.messages.fetch import FetchRequest
from penstock.protocol.messages.init_producer_id import InitProducerIdRequest
from penstock.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from penstock.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from penstock.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from penstock.protocol.messages.produce import ProduceRequest
from tests.integration import admin_samples, coordinator_samples
from tests.integration.driving import batch, fetch_request, fetch_topic, produce_request

SERVED: dict[ApiKey, range] = {
    ApiKey.PRODUCE: range(3, 14),
    ApiKey.FETCH: range(4, 19),
    ApiKey.LIST_OFFSETS: range(1, 12),
    ApiKey.METADATA: range(14),
    ApiKey.API_VERSIONS: range(5),
    ApiKey.CREATE_TOPICS: range(2, 8),
    ApiKey.DELETE_TOPICS: range(1, 7),
    ApiKey.INIT_PRODUCER_ID: range(6),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: range(2, 5),
    ApiKey.DESCRIBE_CONFIGS: range(1, 5),
    ApiKey.DESCRIBE_CLUSTER: range(3),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: range(1),
    **coordinator_samples.SERVED,
    **admin_samples.SERVED,
}

VERSIONS = [(api, version) for api, versions in SERVED.items() for version in versions]
VERSION_NAMES = [f"{api.name.lower()}-{version}" for api, version in VERSIONS]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A topic that exists, with one partition; a name that is free; a topic that may be deleted."""

    topic: str
    topic_id: UUID
    free: str
    doomed: str
    doomed_id: UUID


def _produce(sample: Sample, version: int) -> ProduceRequest:
    return produce_request(sample.topic_id if version >= 13 else sample.topic, {0: batch(b"value", timestamp=1000)})


def _fetch(sample: Sample, version: int) -> FetchRequest:
    return fetch_request(fetch_topic(sample.topic_id if version >= 13 else sample.topic, {0: 0}))


def _list_offsets(sample: Sample, version: int) -> ListOffsetsRequest:
    wanted = ListOffsetsPartition(partition_index=0, timestamp=-1)
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=sample.topic, partitions=[wanted])])


def _metadata(sample: Sample, version: int) -> MetadataRequest:
    by_id = MetadataRequestTopic(name=None, topic_id=sample.topic_id)
    topics = [by_id if version >= 12 else MetadataRequestTopic(name=sample.topic)]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=version < 4)


def _api_versions(sample: Sample, version: int) -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="tests", client_software_version="1.0")


def _create_topics(sample: Sample, version: int) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=f"{sample.free}-{version}",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[CreatableReplicaAssignment(partition_index=0, broker_ids=[1])],
        configs=[CreatableTopicConfig(name="retention.ms", value="100000")],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


def _delete_topics(sample: Sample, version: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[sample.doomed], timeout_ms=10_000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(topic_id=sample.doomed_id)], timeout_ms=10_000)


def _init_producer_id(sample: Sample, version: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(transaction_timeout_ms=60_000)


def _offset_for_leader_epoch(sample: Sample, version: int) -> OffsetForLeaderEpochRequest:
    wanted = OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    return OffsetForLeaderEpochRequest(
        replica_id=-2, topics=[OffsetForLeaderTopic(topic=sample.topic, partitions=[wanted])]
    )


def _describe_configs(sample: Sample, version: int) -> DescribeConfigsRequest:
    resource = DescribeConfigsResource(resource_type=2, resource_name=sample.topic, configuration_keys=["retention.ms"])
    return DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=version >= 3)


def _describe_cluster(sample: Sample, version: int) -> DescribeClusterRequest:
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def _describe_topic_partitions(sample: Sample, version: int) -> DescribeTopicPartitionsRequest:
    return DescribeTopicPartitionsRequest(topics=[TopicRequest(name=sample.topic)], response_partition_limit=100)


_MAKERS: dict[ApiKey, Callable[[Sample, int], Any]] = {
    ApiKey.PRODUCE: _produce,
    ApiKey.FETCH: _fetch,
    ApiKey.LIST_OFFSETS: _list_offsets,
    ApiKey.METADATA: _metadata,
    ApiKey.API_VERSIONS: _api_versions,
    ApiKey.CREATE_TOPICS: _create_topics,
    ApiKey.DELETE_TOPICS: _delete_topics,
    ApiKey.INIT_PRODUCER_ID: _init_producer_id,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _offset_for_leader_epoch,
    ApiKey.DESCRIBE_CONFIGS: _describe_configs,
    ApiKey.DESCRIBE_CLUSTER: _describe_cluster,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
}


def sample_request(api: ApiKey, version: int, sample: Sample) -> Any:
    if api in coordinator_samples.MAKERS:
        return coordinator_samples.MAKERS[api](sample.topic, sample.topic_id, version)
    if api in admin_samples.MAKERS:
        return admin_samples.MAKERS[api](sample.topic, version)
    return _MAKERS[api](sample, version)


def error_codes(answer: Any) -> set[int]:
    """Every error code anywhere in an answer."""
    found: set[int] = set()
    waiting = [answer]
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += each
        elif hasattr(each, "__dataclass_fields__"):
            for name in each.__dataclass_fields__:
                value = getattr(each, name)
                if name == "error_code":
                    found.add(value)
                elif not isinstance(value, (str, bytes, int)):
                    waiting.append(value)
    return found
