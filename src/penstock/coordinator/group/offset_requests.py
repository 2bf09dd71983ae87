"""OffsetCommit, OffsetFetch and OffsetDelete on their way to the shards.

Topics are looked up here, in the cluster's metadata: a commit for one that does not exist fails by itself and does not
spoil the others. Newer versions name topics by id; in the log it is the name that counts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.committing import Committer, OffsetToCommit, PartitionResult
from penstock.coordinator.group.fetching import INVALID_OFFSET, FetchedTopic, TopicToFetch
from penstock.coordinator.group.later import MaybeLater, when_done
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.shard import Result
from penstock.metadata.image import ClusterImage, TopicState
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)

_TOPIC_IDS_FROM = 10

R = TypeVar("R")
Response = TypeVar("Response")


class Places(Protocol):
    """Where groups live."""

    @property
    def runtime(self) -> CoordinatorRuntime[GroupShard]: ...

    def partition_for(self, group_id: str) -> int: ...

    def write(self, partition: int, name: str, operation: Callable[[GroupShard], Result[R]]) -> asyncio.Future[R]: ...


class _Slot(Protocol):
    """A place in a response for the outcome of one partition."""

    error_code: int


class OffsetRequests:
    def __init__(self, places: Places, image: Callable[[], ClusterImage]) -> None:
        self._places = places
        self._image = image

    # -- Committing --------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, api_version: int) -> MaybeLater[OffsetCommitResponse]:
        response = OffsetCommitResponse()
        offsets: list[OffsetToCommit] = []
        slots: list[_Slot] = []
        for topic in request.topics:
            answers = OffsetCommitResponseTopic(topic_id=topic.topic_id, name=topic.name)
            response.topics.append(answers)
            found, missing = self._find(topic, api_version)
            for partition in topic.partitions:
                slot = OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=missing)
                answers.partitions.append(slot)
                if found is None or not 0 <= partition.partition_index < len(found.partitions):
                    continue
                slot.error_code = ErrorCode.NONE
                slots.append(slot)
                offsets.append(
                    OffsetToCommit(
                        found.name,
                        partition.partition_index,
                        partition.committed_offset,
                        partition.committed_leader_epoch,
                        partition.committed_metadata,
                        found.id,
                    )
                )
        if not offsets:
            return response
        group_id = request.group_id
        committer = Committer(request.member_id, request.group_instance_id, request.generation_id_or_member_epoch)
        retention_ms = request.retention_time_ms
        future = self._places.write(
            self._places.partition_for(group_id),
            "commit-offsets",
            lambda shard: shard.commit_offsets(
                group_id, committer, offsets, api_version=api_version, retention_ms=retention_ms
            ),
        )
        return when_done(
            future, lambda results: _fill(response, slots, results), lambda code: _fill_all(response, slots, code)
        )

    def _find(self, topic: OffsetCommitRequestTopic, api_version: int) -> tuple[TopicState | None, ErrorCode]:
        """The topic, and what is wrong with partitions that are not in it."""
        image = self._image()
        if api_version < _TOPIC_IDS_FROM:
            return image.topics.get(topic.name), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        found = image.topic_by_id(topic.topic_id)
        return found, ErrorCode.UNKNOWN_TOPIC_ID if found is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    # -- Fetching ----------------------------------------------------------------------------------------------------

    def fetch(
        self, request: OffsetFetchRequestGroup, *, require_stable: bool, api_version: int
    ) -> MaybeLater[OffsetFetchResponseGroup]:
        """One group's offsets, in the shape of version 8 and later."""
        group_id = request.group_id
        use_ids = api_version >= _TOPIC_IDS_FROM
        unknown: list[OffsetFetchResponseTopics] = []
        topics = None if request.topics is None else self._topics_to_fetch(request, use_ids, unknown)

        def convert(fetched: list[FetchedTopic]) -> OffsetFetchResponseGroup:
            shown = fetched if topics is not None or not use_ids else list(self._with_ids(fetched))
            return OffsetFetchResponseGroup(group_id=group_id, topics=[*map(_fetched_topic, shown), *unknown])

        partition = self._places.partition_for(group_id)
        if require_stable:
            future = self._places.write(
                partition,
                "fetch-offsets",
                lambda shard: shard.fetch_stable_offsets(group_id, topics),
            )
            return when_done(future, convert, lambda code: _fetch_failure(group_id, code))
        try:
            return convert(self._places.runtime.read(partition, lambda shard: shard.fetch_offsets(group_id, topics)))
        except KafkaError as error:
            return _fetch_failure(group_id, error.code)

    def _topics_to_fetch(
        self, request: OffsetFetchRequestGroup, use_ids: bool, unknown: list[OffsetFetchResponseTopics]
    ) -> list[TopicToFetch]:
        """The topics by name; ids that nobody has are answered by themselves."""
        topics: list[TopicToFetch] = []
        image = self._image()
        for topic in request.topics or ():
            if not use_ids:
                topics.append(TopicToFetch(topic.name, topic.partition_indexes))
            elif (found := image.topic_by_id(topic.topic_id)) is not None:
                topics.append(TopicToFetch(found.name, topic.partition_indexes, topic.topic_id))
            else:
                unknown.append(
                    OffsetFetchResponseTopics(
                        topic_id=topic.topic_id,
                        partitions=[
                            _no_offset(partition, ErrorCode.UNKNOWN_TOPIC_ID) for partition in topic.partition_indexes
                        ],
                    )
                )
        return topics

    def _with_ids(self, fetched: list[FetchedTopic]) -> Iterator[FetchedTopic]:
        """All topics of a group, for a client that knows them by id: those that are gone have none."""
        known = self._image().topics
        for topic in fetched:
            if topic.name in known:
                yield topic._replace(topic_id=known[topic.name].id)

    # -- Deleting ----------------------------------------------------------------------------------------------------

    def delete(self, request: OffsetDeleteRequest) -> MaybeLater[OffsetDeleteResponse]:
        group_id = request.group_id
        if not group_id:
            return OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        response = OffsetDeleteResponse()
        partitions: list[tuple[str, int]] = []
        slots: list[_Slot] = []
        for topic in request.topics:
            answers = OffsetDeleteResponseTopic(name=topic.name)
            response.topics.append(answers)
            count = self._partition_count(topic.name)
            for partition in topic.partitions:
                slot = OffsetDeleteResponsePartition(partition_index=partition.partition_index)
                answers.partitions.append(slot)
                if 0 <= partition.partition_index < count:
                    slots.append(slot)
                    partitions.append((topic.name, partition.partition_index))
                else:
                    slot.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        future = self._places.write(
            self._places.partition_for(group_id),
            "delete-offsets",
            lambda shard: shard.delete_offsets(group_id, partitions),
        )
        return when_done(
            future,
            lambda results: _fill(response, slots, results),
            lambda code: OffsetDeleteResponse(error_code=code),
        )

    def _partition_count(self, topic: str) -> int:
        found = self._image().topics.get(topic)
        return 0 if found is None else len(found.partitions)


def _fill(response: Response, slots: Sequence[_Slot], results: Sequence[PartitionResult]) -> Response:
    for slot, result in zip(slots, results, strict=True):
        slot.error_code = result.code
    return response


def _fill_all(response: Response, slots: Sequence[_Slot], code: ErrorCode) -> Response:
    for slot in slots:
        slot.error_code = code
    return response


def _fetch_failure(group_id: str, code: ErrorCode) -> OffsetFetchResponseGroup:
    """Consumers give up on COORDINATOR_NOT_AVAILABLE here, but look for the coordinator again on NOT_COORDINATOR."""
    told = ErrorCode.NOT_COORDINATOR if code is ErrorCode.COORDINATOR_NOT_AVAILABLE else code
    return OffsetFetchResponseGroup(group_id=group_id, error_code=told)


def _fetched_topic(topic: FetchedTopic) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        topic_id=topic.topic_id,
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartitions(
                partition_index=partition,
                committed_offset=offset,
                committed_leader_epoch=leader_epoch,
                metadata=metadata,
                error_code=code,
            )
            for partition, offset, leader_epoch, metadata, code in topic.partitions
        ],
    )


def _no_offset(partition: int, code: ErrorCode) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=partition, committed_offset=INVALID_OFFSET, metadata="", error_code=code
    )
