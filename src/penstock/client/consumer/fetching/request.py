"""A planned fetch as the message of its version."""

from __future__ import annotations

from typing import Final
from uuid import UUID

from penstock.client.consumer.fetching.session import SessionFetch
from penstock.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

FETCH_VERSION_BY_NAME_MAX: Final = 12
"""From 13 on topics are named by their ids."""


def fetch_request(
    fetch: SessionFetch, *, max_wait_ms: int, min_bytes: int, max_bytes: int, isolation_level: int, rack_id: str
) -> FetchRequest:
    """Both name and id are filled in: each version writes what it knows."""
    topics: dict[tuple[str, UUID], list[FetchPartition]] = {}
    for (topic, partition), target in fetch.send.items():
        topics.setdefault((topic, target.topic_id), []).append(
            FetchPartition(
                partition=partition,
                current_leader_epoch=target.leader_epoch,
                fetch_offset=target.offset,
                partition_max_bytes=target.max_bytes,
            )
        )
    return FetchRequest(
        max_wait_ms=max_wait_ms,
        min_bytes=min_bytes,
        max_bytes=max_bytes,
        isolation_level=isolation_level,
        session_id=fetch.session_id,
        session_epoch=fetch.epoch,
        topics=[
            FetchTopic(topic=name, topic_id=topic_id, partitions=each) for (name, topic_id), each in topics.items()
        ],
        forgotten_topics_data=_forgotten(fetch),
        rack_id=rack_id,
    )


def _forgotten(fetch: SessionFetch) -> list[ForgottenTopic]:
    topics: dict[tuple[str, UUID], list[int]] = {}
    for (topic, partition), topic_id in fetch.forget.items():
        topics.setdefault((topic, topic_id), []).append(partition)
    return [ForgottenTopic(topic=name, topic_id=each, partitions=indexes) for (name, each), indexes in topics.items()]
