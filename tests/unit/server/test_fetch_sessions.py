"""Incremental fetch sessions: epochs, changes, the bounded cache."""

from __future__ import annotations

import random

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.server.fetch_sessions import (
    EVICTION_IDLE_SECONDS,
    CachedPartition,
    FetchSession,
    FetchSessions,
    FetchTarget,
    PartitionKey,
    next_epoch,
)


class ManualClock:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now

    def time_ms(self) -> int:
        return int(self.now * 1000)


def target(offset: int = 0) -> FetchTarget:
    return FetchTarget(-1, offset, -1, -1, 1024)


def make_sessions(slots_max: int = 2) -> tuple[FetchSessions, ManualClock]:
    clock = ManualClock()
    return FetchSessions(clock=clock, rng=random.Random(1), slots_max=slots_max), clock


def open_session(sessions: FetchSessions, *keys: PartitionKey) -> FetchSession:
    session = sessions.maybe_create([(key, target()) for key in keys], uses_topic_ids=False)
    assert session is not None
    return session


A0, A1, B0 = PartitionKey("a", 0), PartitionKey("a", 1), PartitionKey("b", 0)


def test_session_follows_changes_and_epochs() -> None:
    sessions, _ = make_sessions()
    session = open_session(sessions, A0, A1)
    assert session.epoch == 1
    resumed = sessions.resume(
        session.id, 1, changed=[(B0, target()), (A0, target(7))], forgotten=[A1], uses_topic_ids=False
    )
    assert resumed is session
    assert list(session.partitions) == [A0, B0]
    assert session.partitions[A0].target.fetch_offset == 7
    assert session.epoch == 2


def test_unknown_session_wrong_epoch_and_mixed_ids_are_refused() -> None:
    sessions, _ = make_sessions()
    session = open_session(sessions, A0)
    for session_id, epoch, uses_ids, code in [
        (session.id + 1, 1, False, ErrorCode.FETCH_SESSION_ID_NOT_FOUND),
        (session.id, 5, False, ErrorCode.INVALID_FETCH_SESSION_EPOCH),
        (session.id, 1, True, ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR),
    ]:
        with pytest.raises(KafkaError) as raised:
            sessions.resume(session_id, epoch, changed=[], forgotten=[], uses_topic_ids=uses_ids)
        assert raised.value.code is code
    assert session.epoch == 1


def test_session_without_partitions_is_closed() -> None:
    sessions, _ = make_sessions()
    session = open_session(sessions, A0)
    assert sessions.resume(session.id, 1, changed=[], forgotten=[A0], uses_topic_ids=False) is None
    assert len(sessions) == 0


def test_full_cache_evicts_only_idle_sessions() -> None:
    sessions, clock = make_sessions(slots_max=2)
    first, second = open_session(sessions, A0), open_session(sessions, A1)
    assert sessions.maybe_create([(B0, target())], uses_topic_ids=False) is None
    clock.now = EVICTION_IDLE_SECONDS + 1
    sessions.resume(first.id, 1, changed=[], forgotten=[], uses_topic_ids=False)
    open_session(sessions, B0)
    assert sessions.evictions == 1
    with pytest.raises(KafkaError):
        sessions.resume(second.id, 1, changed=[], forgotten=[], uses_topic_ids=False)
    sessions.resume(first.id, 2, changed=[], forgotten=[], uses_topic_ids=False)


def test_no_slots_means_no_sessions() -> None:
    sessions, _ = make_sessions(slots_max=0)
    assert sessions.maybe_create([(A0, target())], uses_topic_ids=False) is None


def test_only_news_is_told_and_an_error_is_followed_by_its_recovery() -> None:
    cached = CachedPartition(target())
    told = {"error": 0, "high_watermark": 5, "log_start_offset": 0, "has_records": False}
    assert cached.is_news(**told)
    assert not cached.is_news(**told)
    assert cached.is_news(**{**told, "has_records": True})
    assert cached.is_news(**{**told, "high_watermark": 6})
    assert cached.is_news(**{**told, "high_watermark": 6, "error": 3})
    assert cached.is_news(**{**told, "high_watermark": 6})
    assert not cached.is_news(**{**told, "high_watermark": 6})


def test_epoch_wraps_to_one() -> None:
    assert next_epoch(1) == 2
    assert next_epoch(2**31 - 1) == 1
