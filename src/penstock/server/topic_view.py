"""How clients are shown the cluster: brokers on their own listener, partitions with the right error code.

Shared by Metadata, DescribeCluster and DescribeTopicPartitions, which differ only in the message they fill.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from penstock.base.errors import ErrorCode
from penstock.metadata.image import ClusterImage, PartitionState


class BrokerEndpoint(NamedTuple):
    broker_id: int
    host: str
    port: int
    rack: str | None


def endpoints_of(image: ClusterImage, listener_name: str) -> Iterator[BrokerEndpoint]:
    """The brokers that have this listener, with the address they advertise on it."""
    for broker_id, broker in sorted(image.brokers.items()):
        for endpoint in broker.endpoints:
            if endpoint.listener == listener_name:
                yield BrokerEndpoint(broker_id, endpoint.host, endpoint.port, broker.rack)


def partition_error(image: ClusterImage, partition: PartitionState) -> ErrorCode:
    if partition.leader not in image.brokers:
        return ErrorCode.LEADER_NOT_AVAILABLE
    return ErrorCode.NONE


def offline_replicas(image: ClusterImage, partition: PartitionState) -> list[int]:
    return [replica for replica in partition.replicas if replica not in image.brokers]


def partition_fields(image: ClusterImage, index: int, partition: PartitionState) -> dict[str, Any]:
    """What Metadata and DescribeTopicPartitions say alike of a partition."""
    return {
        "error_code": partition_error(image, partition),
        "partition_index": index,
        "leader_id": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replica_nodes": list(partition.replicas),
        "isr_nodes": list(partition.isr),
        "offline_replicas": offline_replicas(image, partition),
    }
