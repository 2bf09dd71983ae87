"""Requests for offsets in every version, decoded again by the generated readers."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.base.types import TopicPartition
from penstock.client.consumer.group.offsets_wire import (
    commit_codes,
    commit_request,
    fetch_code,
    fetch_request,
    fetched_offsets,
)
from penstock.client.core.types import ConsumerGroupMetadata, OffsetAndMetadata
from penstock.protocol.codec import decode, encode
from penstock.protocol.messages import offset_commit as commit
from penstock.protocol.messages import offset_fetch as fetch

IDS = {"t": UUID(int=7), "u": UUID(int=8)}
T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)
OFFSETS = {T1: OffsetAndMetadata(5, "why", 2), U0: OffsetAndMetadata(0), T0: OffsetAndMetadata(9)}


@pytest.mark.parametrize("version", range(2, 11))
def test_commit_requests(version: int) -> None:
    request = commit_request(ConsumerGroupMetadata("g", 4, "m", "i"), OFFSETS, IDS)
    told = decode(commit.OffsetCommitRequest, version, version >= 8, encode(request, version, version >= 8))
    assert (told.group_id, told.generation_id_or_member_epoch, told.member_id) == ("g", 4, "m")
    assert told.group_instance_id == ("i" if version >= 7 else None)
    topics = [topic.topic_id if version >= 10 else topic.name for topic in told.topics]
    assert topics == ([IDS["t"], IDS["u"]] if version >= 10 else ["t", "u"])
    one = told.topics[0].partitions[1]
    assert (one.partition_index, one.committed_offset, one.committed_metadata) == (1, 5, "why")
    assert one.committed_leader_epoch == (2 if version >= 6 else -1)


@pytest.mark.parametrize("version", [2, 9, 10])
def test_commit_answers(version: int) -> None:
    partitions = [commit.OffsetCommitResponsePartition(partition_index=1, error_code=22)]
    topic = commit.OffsetCommitResponseTopic(name="t", topic_id=IDS["t"], partitions=partitions)
    answer = commit.OffsetCommitResponse(topics=[topic])
    told = decode(commit.OffsetCommitResponse, version, version >= 8, encode(answer, version, version >= 8))
    assert commit_codes(told, IDS) == {T1: 22}


@pytest.mark.parametrize("version", range(1, 11))
def test_fetch_requests(version: int) -> None:
    request = fetch_request("g", [T1, T0, U0], IDS)
    told = decode(fetch.OffsetFetchRequest, version, version >= 6, encode(request, version, version >= 6))
    asked = told.groups[0].topics if version >= 8 else told.topics
    assert asked is not None
    assert [each.partition_indexes for each in asked] == [[0, 1], [0]]
    assert (told.groups[0].group_id if version >= 8 else told.group_id) == "g"
    assert told.require_stable == (version >= 7)


@pytest.mark.parametrize("version", range(1, 11))
def test_fetch_answers(version: int) -> None:
    old = fetch.OffsetFetchResponsePartition(
        partition_index=1, committed_offset=5, committed_leader_epoch=2, metadata="w"
    )
    new = fetch.OffsetFetchResponsePartitions(
        partition_index=1, committed_offset=5, committed_leader_epoch=2, metadata="w"
    )
    group = fetch.OffsetFetchResponseGroup(
        group_id="g", topics=[fetch.OffsetFetchResponseTopics(name="t", topic_id=IDS["t"], partitions=[new])]
    )
    answer = fetch.OffsetFetchResponse(
        groups=[group], topics=[fetch.OffsetFetchResponseTopic(name="t", partitions=[old])]
    )
    told = decode(fetch.OffsetFetchResponse, version, version >= 6, encode(answer, version, version >= 6))
    assert fetch_code(told) == 0
    epoch = 2 if version >= 5 else -1
    assert list(fetched_offsets(told, IDS)) == [(T1, 0, OffsetAndMetadata(5, "w", epoch))]
