"""Who leads a partition, told to a client that has a wrong idea of it, so that it need not ask again (KIP-951)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.protocol.hot.produce import NodeEndpoint
from penstock.server.api import Context, Request
from penstock.server.topic_view import endpoints_of

WRONG_LEADER: Final = frozenset({ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH})
"""After these a client looks for the leader."""

Leader = tuple[int, int]
"""Its id, and its epoch."""


def current_leader(context: Context, topic: str | UUID, index: int) -> Leader | None:
    """None for a partition that does not exist."""
    image = context.image
    found = image.topic_by_id(topic) if isinstance(topic, UUID) else image.topics.get(topic)
    if found is None or not 0 <= index < len(found.partitions):
        return None
    partition = found.partitions[index]
    return partition.leader, partition.leader_epoch


def endpoints(context: Context, request: Request, leaders: Iterable[Leader | None]) -> list[NodeEndpoint]:
    """Where these leaders are, by the listener through which the client came."""
    ids = {each[0] for each in leaders if each is not None}
    if not ids:
        return []
    known = endpoints_of(context.image, request.session.listener_name)
    return [NodeEndpoint(*each) for each in known if each[0] in ids]
