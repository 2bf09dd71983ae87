"""Messages of the transactional APIs, and the codes in their answers."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)

PartitionCodes = dict[TopicPartition, ErrorCode]


def add_partitions_request(
    transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    """In the form for clients, version 3; later ones are for brokers."""
    topics: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in sorted(partitions):
        topics[topic].append(partition)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=producer_id,
        v3_and_below_producer_epoch=producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=ids) for name, ids in topics.items()],
    )


def add_partitions_codes(response: AddPartitionsToTxnResponse) -> PartitionCodes:
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.partition_error_code)
        for topic in response.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    }


def offset_commit_request(
    transactional_id: str,
    producer_id: int,
    producer_epoch: int,
    group: ConsumerGroupMetadata,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> TxnOffsetCommitRequest:
    topics: defaultdict[str, list[TxnOffsetCommitRequestPartition]] = defaultdict(list)
    for (topic, partition), offset in sorted(offsets.items()):
        topics[topic].append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=[TxnOffsetCommitRequestTopic(name=name, partitions=rows) for name, rows in topics.items()],
    )


def offset_commit_codes(response: TxnOffsetCommitResponse) -> PartitionCodes:
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode.of(each.error_code)
        for topic in response.topics
        for each in topic.partitions
    }
