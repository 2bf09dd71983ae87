"""Incremental fetch sessions (KIP-227): the broker remembers what a client reads, the client sends only changes.

A session is made by a full fetch with epoch 0 and used by fetches with epochs 1, 2, 3 ... A full fetch with epoch
-1 ends it. Partitions keep their order; the ones that just gave records go to the end, so that a small `max_bytes`
cannot starve the others. The cache is bounded: an idle session makes room for a new one, otherwise the new client
goes without. Keys of partitions are topic names for Fetch 4-12 and topic ids from 13 on; a session never mixes the
two.
"""

from __future__ import annotations

import random
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
NO_SESSION = 0
EVICTION_IDLE_SECONDS = 120.0
"""A session that was used this recently is not evicted for a new one (`min.incremental.fetch.session.eviction.ms`)."""


class PartitionKey(NamedTuple):
    topic: str | UUID
    partition: int


class FetchTarget(NamedTuple):
    """What a client wants of one partition."""

    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


@dataclass(slots=True)
class CachedPartition:
    """A partition of a session: what is wanted, and what the client was told last."""

    target: FetchTarget
    high_watermark: int = -1
    log_start_offset: int = -1
    reported_error: bool = False

    def is_news(self, *, error: int, high_watermark: int, log_start_offset: int, has_records: bool) -> bool:
        """Whether an incremental answer must mention the partition; remembers what it is told then."""
        news = (
            has_records
            or error != 0
            or self.reported_error
            or high_watermark != self.high_watermark
            or log_start_offset != self.log_start_offset
        )
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.reported_error = error != 0
        return news


@dataclass(slots=True)
class FetchSession:
    id: int
    epoch: int
    uses_topic_ids: bool
    partitions: OrderedDict[PartitionKey, CachedPartition]
    last_used: float


def next_epoch(epoch: int) -> int:
    """Epochs count from 1 and wrap around to 1; 0 and -1 have other meanings."""
    return 1 if epoch == 2**31 - 1 else epoch + 1


class FetchSessions:
    """The bounded cache of all sessions, least recently used first."""

    def __init__(self, *, clock: Clock, rng: random.Random, slots_max: int) -> None:
        self._clock = clock
        self._rng = rng
        self._slots_max = slots_max
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self.evictions = 0

    def __len__(self) -> int:
        return len(self._sessions)

    @property
    def partition_count(self) -> int:
        return sum(len(session.partitions) for session in self._sessions.values())

    def close(self, session_id: int) -> None:
        self._sessions.pop(session_id, None)

    def maybe_create(
        self, wanted: Iterable[tuple[PartitionKey, FetchTarget]], *, uses_topic_ids: bool
    ) -> FetchSession | None:
        """A new session for a full fetch, or None when there is no room for it."""
        partitions = OrderedDict((key, CachedPartition(target)) for key, target in wanted)
        if not self._make_room():
            return None
        session = FetchSession(self._new_id(), 1, uses_topic_ids, partitions, self._clock.monotonic())
        self._sessions[session.id] = session
        return session

    def resume(
        self,
        session_id: int,
        epoch: int,
        *,
        changed: Iterable[tuple[PartitionKey, FetchTarget]],
        forgotten: Iterable[PartitionKey],
        uses_topic_ids: bool,
    ) -> FetchSession | None:
        """The session of an incremental fetch with its changes applied; None when that left nothing to read."""
        session = self._sessions.get(session_id)
        if session is None:
            raise KafkaError(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, f"no fetch session {session_id}")
        if epoch != session.epoch:
            raise KafkaError(
                ErrorCode.INVALID_FETCH_SESSION_EPOCH, f"fetch session {session_id} expects epoch {session.epoch}"
            )
        if uses_topic_ids != session.uses_topic_ids:
            raise KafkaError(
                ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR, f"fetch session {session_id} mixes topic names and topic ids"
            )
        for key in forgotten:
            session.partitions.pop(key, None)
        for key, target in changed:
            cached = session.partitions.get(key)
            if cached is None:
                session.partitions[key] = CachedPartition(target)
            else:
                cached.target = target
        if not session.partitions:
            self.close(session_id)
            return None
        session.epoch = next_epoch(epoch)
        session.last_used = self._clock.monotonic()
        self._sessions.move_to_end(session_id)
        return session

    def _make_room(self) -> bool:
        if len(self._sessions) < self._slots_max:
            return True
        if not self._sessions:
            return False
        oldest = next(iter(self._sessions.values()))
        if self._clock.monotonic() - oldest.last_used < EVICTION_IDLE_SECONDS:
            return False
        self.close(oldest.id)
        self.evictions += 1
        return True

    def _new_id(self) -> int:
        while True:
            candidate = self._rng.randrange(1, 2**31)
            if candidate not in self._sessions:
                return candidate
