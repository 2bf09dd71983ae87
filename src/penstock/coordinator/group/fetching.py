"""OffsetFetch: what a group has committed.

Ordinary readers see committed state alone. A reader that wants stable offsets (`require_stable`, KIP-447) sees the
newest state, and gets it when that is committed; what a transaction is about to change is UNSTABLE_OFFSET_COMMIT for
it, so it comes back when the transaction has ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.base.types import ZERO_UUID
from penstock.coordinator.group.offset_store import CommittedOffset, OffsetStore

INVALID_OFFSET = -1


class TopicToFetch(NamedTuple):
    name: str
    partitions: Iterable[int]
    topic_id: UUID = ZERO_UUID


class FetchedOffset(NamedTuple):
    partition: int
    offset: int = INVALID_OFFSET
    leader_epoch: int = -1
    metadata: str = ""
    code: ErrorCode = ErrorCode.NONE


class FetchedTopic(NamedTuple):
    name: str
    topic_id: UUID
    partitions: list[FetchedOffset]


def fetch(
    store: OffsetStore, group_id: str, topics: Iterable[TopicToFetch] | None, *, require_stable: bool
) -> list[FetchedTopic]:
    """The offsets of these partitions, None for all that the group has. What was never committed is -1."""
    if topics is None:
        topics = _all_topics(store, group_id, require_stable)
    offsets = store.of_group(group_id) if require_stable else store.of_group_committed(group_id)
    fetched: list[FetchedTopic] = []
    for name, partitions, topic_id in topics:
        answers: list[FetchedOffset] = []
        for partition in partitions:
            if require_stable and store.has_pending(group_id, name, partition):
                answers.append(FetchedOffset(partition, code=ErrorCode.UNSTABLE_OFFSET_COMMIT))
                continue
            found = None
            if offsets is not None:
                key = (name, partition)
                found = offsets.get(key) if require_stable else offsets.get_committed(key)
            answers.append(_answer(partition, found, topic_id))
        fetched.append(FetchedTopic(name, topic_id, answers))
    return fetched


def _answer(partition: int, found: CommittedOffset | None, topic_id: UUID) -> FetchedOffset:
    if found is None:
        return FetchedOffset(partition)
    value = found.value
    if topic_id != ZERO_UUID != value.topic_id != topic_id:
        # Committed for a topic of the same name that is gone.
        return FetchedOffset(partition)
    return FetchedOffset(partition, value.offset, value.leader_epoch, value.metadata)


def _all_topics(store: OffsetStore, group_id: str, require_stable: bool) -> list[TopicToFetch]:
    offsets = store.of_group(group_id) if require_stable else store.of_group_committed(group_id)
    if offsets is None:
        return []
    by_topic: dict[str, list[int]] = {}
    for topic, partition in offsets if require_stable else offsets.keys_committed():
        by_topic.setdefault(topic, []).append(partition)
    return [TopicToFetch(topic, partitions) for topic, partitions in by_topic.items()]
