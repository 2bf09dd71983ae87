"""The picture of the cluster, made from Metadata answers. Pure.

A newer answer replaces an older one topic by topic. Two things of the older one may survive: topics that were not asked
for this time, and a partition whose leader epoch was higher (an answer of a broker that lags behind, KIP-320), unless
the topic has been made anew or the cluster is another one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.base.types import ZERO_UUID, TopicPartition
from penstock.client.core.types import ClusterSnapshot, Node, PartitionInfo, TopicInfo
from penstock.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

NO_CLUSTER = ClusterSnapshot()


def merge(old: ClusterSnapshot, answer: MetadataResponse, *, keep: Collection[str] = ()) -> ClusterSnapshot:
    """The snapshot after an answer; `keep` names topics that were not asked for and stay."""
    if answer.cluster_id != old.cluster_id:
        old = replace(NO_CLUSTER, version=old.version)
    topics = {name: info for name in keep if (info := old.topics.get(name)) is not None}
    for topic in answer.topics:
        if topic.name is not None:
            topics[topic.name] = _topic(topic.name, topic, old.topics.get(topic.name))
    return ClusterSnapshot(
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        nodes=MappingProxyType(
            {each.node_id: Node(each.node_id, each.host, each.port, each.rack) for each in answer.brokers}
        ),
        topics=MappingProxyType(topics),
        names_by_id=_names_by_id(topics),
        version=old.version + 1,
    )


def _names_by_id(topics: Mapping[str, TopicInfo]) -> Mapping[UUID, str]:
    return MappingProxyType({info.topic_id: name for name, info in topics.items() if info.topic_id != ZERO_UUID})


def _topic(name: str, topic: MetadataResponseTopic, old: TopicInfo | None) -> TopicInfo:
    # An id that changed belongs to a topic that was deleted and made again: its epochs start anew.
    known = old.partitions if old is not None and old.topic_id == topic.topic_id else ()
    by_number = {each.partition_index: each for each in topic.partitions}
    count = max(by_number, default=-1) + 1
    return TopicInfo(
        name=name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        error=ErrorCode.of(topic.error_code),
        partitions=tuple(
            _partition(name, number, by_number.get(number), known[number] if number < len(known) else None)
            for number in range(count)
        ),
    )


def _partition(
    topic: str, number: int, told: MetadataResponsePartition | None, old: PartitionInfo | None
) -> PartitionInfo:
    if told is None:
        return PartitionInfo(topic=topic, partition=number, leader=None)
    if old is not None and -1 < told.leader_epoch < old.leader_epoch:
        return old
    return PartitionInfo(
        topic=topic,
        partition=number,
        leader=told.leader_id if told.leader_id >= 0 else None,
        leader_epoch=told.leader_epoch,
        replicas=tuple(told.replica_nodes),
        isr=tuple(told.isr_nodes),
        offline=tuple(told.offline_replicas),
    )


def with_leader(
    old: ClusterSnapshot, tp: TopicPartition, leader: int, leader_epoch: int, nodes: Iterable[Node] = ()
) -> ClusterSnapshot:
    """The snapshot after a hint of a broker that no longer leads (KIP-951); the same one when it brings nothing new."""
    info = old.partition(tp)
    if info is None or leader_epoch <= info.leader_epoch:
        return old
    known = MappingProxyType({**old.nodes, **{node.id: node for node in nodes}})
    if leader not in known:
        return old
    topic = old.topics[tp.topic]
    partitions = list(topic.partitions)
    partitions[tp.partition] = replace(info, leader=leader, leader_epoch=leader_epoch)
    topics = {**old.topics, tp.topic: replace(topic, partitions=tuple(partitions))}
    return replace(old, nodes=known, topics=MappingProxyType(topics), version=old.version + 1)


def without(old: ClusterSnapshot, topics: Collection[str]) -> ClusterSnapshot:
    """The snapshot without some topics."""
    left = {name: info for name, info in old.topics.items() if name not in topics}
    if len(left) == len(old.topics):
        return old
    return replace(old, topics=MappingProxyType(left), names_by_id=_names_by_id(left), version=old.version + 1)


_PASSING = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.LISTENER_NOT_FOUND)


def is_incomplete(answer: MetadataResponse) -> bool:
    """Whether asking again soon may tell more: a topic that is being made, a partition without a leader."""
    return any(
        ErrorCode.of(topic.error_code).retriable or any(each.error_code in _PASSING for each in topic.partitions)
        for topic in answer.topics
    )
