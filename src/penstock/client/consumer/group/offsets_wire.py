"""OffsetCommit and OffsetFetch: requests of every version from offsets, and back.

Fields of all versions are filled in; the encoder takes those that the chosen one has. From version 10 on topics go by
their ids, which a client may not know (then a lower version is used, see `VERSION_BY_NAME`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from uuid import UUID

from penstock.base.types import ZERO_UUID, TopicPartition
from penstock.client.consumer.assignors.balancing import by_topic
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)

VERSION_BY_NAME: Final = 9
"""The last version in which topics have names."""

Ids = Mapping[str, UUID]
Fetched = tuple[TopicPartition, int, OffsetAndMetadata]
"""Partition, error code, offset (-1: none was committed)."""


def commit_request(
    member: ConsumerGroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], ids: Ids
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        topics=[
            OffsetCommitRequestTopic(
                name=topic,
                topic_id=ids.get(topic, ZERO_UUID),
                partitions=[_commit_partition(number, offsets[TopicPartition(topic, number)]) for number in numbers],
            )
            for topic, numbers in by_topic(offsets).items()
        ],
    )


def _commit_partition(number: int, offset: OffsetAndMetadata) -> OffsetCommitRequestPartition:
    return OffsetCommitRequestPartition(
        partition_index=number,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def commit_codes(response: OffsetCommitResponse, ids: Ids) -> dict[TopicPartition, int]:
    """The code of each partition of the answer."""
    names = {topic_id: name for name, topic_id in ids.items()}
    return {
        TopicPartition(topic.name or names.get(topic.topic_id, ""), each.partition_index): each.error_code
        for topic in response.topics
        for each in topic.partitions
    }


def fetch_request(group_id: str, partitions: Iterable[TopicPartition], ids: Ids) -> OffsetFetchRequest:
    topics = by_topic(partitions)
    named = [OffsetFetchRequestTopic(name=topic, partition_indexes=numbers) for topic, numbers in topics.items()]
    in_group = [
        OffsetFetchRequestTopics(name=topic, topic_id=ids.get(topic, ZERO_UUID), partition_indexes=numbers)
        for topic, numbers in topics.items()
    ]
    return OffsetFetchRequest(
        group_id=group_id,
        topics=named,
        groups=[OffsetFetchRequestGroup(group_id=group_id, topics=in_group)],
        # Offsets of an open transaction may still change (KIP-447): wait for its end.
        require_stable=True,
    )


def fetch_code(response: OffsetFetchResponse) -> int:
    """The code of the group as a whole."""
    return response.groups[0].error_code if response.groups else response.error_code


def fetched_offsets(response: OffsetFetchResponse, ids: Ids) -> Iterator[Fetched]:
    names = {topic_id: name for name, topic_id in ids.items()}
    for group in response.groups:
        for grouped in group.topics:
            name = grouped.name or names.get(grouped.topic_id, "")
            for one in grouped.partitions:
                offset = OffsetAndMetadata(one.committed_offset, one.metadata or "", one.committed_leader_epoch)
                yield TopicPartition(name, one.partition_index), one.error_code, offset
    for topic in response.topics:
        for each in topic.partitions:
            offset = OffsetAndMetadata(each.committed_offset, each.metadata or "", each.committed_leader_epoch)
            yield TopicPartition(topic.name, each.partition_index), each.error_code, offset
