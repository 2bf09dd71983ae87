"""Fetch (1), versions 4-18: records as slices of log files, long polls, sessions.

The wanted partitions come from the request, or from the client's session and the request's changes to it (from
version 7 on). Too few bytes: the fetch is parked until there are enough, something is wrong, or its time is up; it
is dropped when its client leaves. Records are never null, only empty (librdkafka). Version 12 adds divergence, 13
topic ids, 16 the leader and its address for a client that asked with a wrong idea of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from penstock.base.config import broker_keys
from penstock.base.errors import ErrorCode, KafkaError
from penstock.protocol.apis import ApiKey
from penstock.protocol.hot.fetch import FetchPartitionResult, FetchRequest, decode_fetch, encode_fetch_response
from penstock.replication.fetching import FetchIsolation, FetchPartition, FetchResult, release_results
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.fetch_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    NO_SESSION,
    FetchSession,
    FetchTarget,
    PartitionKey,
)
from penstock.server.leadership import WRONG_LEADER, current_leader, endpoints
from penstock.server.output import Answer, Ready

_TOPIC_IDS_FROM = 13
_LEADERS_FROM = 16
_READ_COMMITTED = 1

Wanted = list[tuple[PartitionKey, FetchTarget]]


class _Plan(NamedTuple):
    """What to read, and for which session."""

    wanted: Wanted
    session: FetchSession | None
    is_incremental: bool


def handle(context: Context, request: Request) -> Answer:
    fetch = decode_fetch(request.api_version, request.frame, request.position)
    try:
        plan = _plan(context, fetch, uses_topic_ids=request.api_version >= _TOPIC_IDS_FROM)
    except KafkaError as error:
        return _encode(context, request, NO_SESSION, error.code, [])
    max_bytes = min(fetch.max_bytes, context.config[broker_keys.FETCH_MAX_BYTES])
    found = context.replicas.fetch(
        [_read_of(key, target) for key, target in plan.wanted],
        min_bytes=min(fetch.min_bytes, max_bytes),
        max_bytes=max_bytes,
        max_wait_ms=fetch.max_wait_ms,
        isolation=_isolation(fetch),
        replica_id=fetch.replica_id,
        replica_epoch=fetch.replica_epoch,
    )
    if isinstance(found, list):
        return _answer(context, request, plan, found)
    return _answer_later(context, request, plan, found)


def _isolation(fetch: FetchRequest) -> FetchIsolation:
    if fetch.replica_id >= 0:
        return FetchIsolation.LOG_END
    return FetchIsolation.COMMITTED if fetch.isolation_level == _READ_COMMITTED else FetchIsolation.HIGH_WATERMARK


def _read_of(key: PartitionKey, target: FetchTarget) -> FetchPartition:
    topic = key.topic
    name, topic_id = (None, topic) if isinstance(topic, UUID) else (topic, None)
    return FetchPartition(
        name,
        topic_id,
        key.partition,
        target.fetch_offset,
        target.max_bytes,
        target.current_leader_epoch,
        target.last_fetched_epoch,
        target.log_start_offset,
    )


def _plan(context: Context, fetch: FetchRequest, *, uses_topic_ids: bool) -> _Plan:
    sessions = context.fetch_sessions
    asked = list(_asked(fetch))
    if fetch.session_epoch in (INITIAL_EPOCH, FINAL_EPOCH):
        if fetch.session_id != NO_SESSION:
            sessions.close(fetch.session_id)
        session = None
        if fetch.session_epoch == INITIAL_EPOCH:
            session = sessions.maybe_create(asked, uses_topic_ids=uses_topic_ids)
        return _Plan(asked, session, is_incremental=False)
    forgotten = [
        PartitionKey(name if name is not None else topic_id, index)  # type: ignore[arg-type]  # one of the two is set
        for name, topic_id, indexes in fetch.forgotten_topics
        for index in indexes
    ]
    session = sessions.resume(
        fetch.session_id, fetch.session_epoch, changed=asked, forgotten=forgotten, uses_topic_ids=uses_topic_ids
    )
    if session is None:
        return _Plan([], None, is_incremental=True)
    return _Plan([(key, cached.target) for key, cached in session.partitions.items()], session, is_incremental=True)


def _asked(fetch: FetchRequest) -> Iterator[tuple[PartitionKey, FetchTarget]]:
    for name, topic_id, partitions in fetch.topics:
        topic = name if name is not None else topic_id
        assert topic is not None
        for index, leader_epoch, offset, last_epoch, log_start, max_bytes in partitions:
            yield PartitionKey(topic, index), FetchTarget(leader_epoch, offset, last_epoch, log_start, max_bytes)


async def _answer_later(
    context: Context, request: Request, plan: _Plan, parked: asyncio.Future[list[FetchResult]]
) -> Ready | None:
    session = request.session

    def client_left() -> None:
        parked.cancel()

    session.add_close_callback(client_left)
    try:
        results = await parked
    finally:
        session.remove_close_callback(client_left)
    if session.closed:
        release_results(results)
        return None
    return _answer(context, request, plan, results)


def _answer(context: Context, request: Request, plan: _Plan, results: Sequence[FetchResult]) -> Ready:
    session = plan.session
    told: list[tuple[PartitionKey, FetchPartitionResult]] = []
    for (key, _), result in zip(plan.wanted, results, strict=True):
        if session is not None and not _is_news(session, key, result) and plan.is_incremental:
            continue
        told.append((key, _partition_result(context, request, key, result)))
    return _encode(context, request, NO_SESSION if session is None else session.id, ErrorCode.NONE, told)


def _is_news(session: FetchSession, key: PartitionKey, result: FetchResult) -> bool:
    cached = session.partitions.get(key)
    if cached is None:
        return True
    has_records = result.size > 0
    if has_records:
        session.partitions.move_to_end(key)
    return cached.is_news(
        error=result.error,
        high_watermark=result.high_watermark,
        log_start_offset=result.log_start_offset,
        has_records=has_records or result.diverging_epoch is not None,
    )


def _partition_result(
    context: Context, request: Request, key: PartitionKey, result: FetchResult
) -> FetchPartitionResult:
    aborted = result.aborted
    wrong = result.error in WRONG_LEADER and request.api_version >= _LEADERS_FROM
    return FetchPartitionResult(
        partition=key.partition,
        error_code=result.error,
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start_offset,
        aborted_transactions=None if aborted is None else [(each.producer_id, each.first_offset) for each in aborted],
        records=result.records,
        diverging_epoch=result.diverging_epoch,
        current_leader=current_leader(context, key.topic, key.partition) if wrong else None,
    )


def _encode(
    context: Context,
    request: Request,
    session_id: int,
    code: ErrorCode,
    told: Sequence[tuple[PartitionKey, FetchPartitionResult]],
) -> Ready:
    nodes = endpoints(context, request, (result.current_leader for _, result in told if result.error_code))
    topics = []
    for topic, group in groupby(told, key=lambda each: each[0].topic):
        by_id = isinstance(topic, UUID)
        topics.append((None if by_id else topic, topic if by_id else None, [result for _, result in group]))
    return encode_fetch_response(
        request.api_version, request.correlation_id, session_id, code, request.throttle_ms, topics, nodes
    )  # type: ignore[return-value]  # the slots are the log's slices


API = Api(
    key=ApiKey.FETCH,
    versions=range(4, 19),
    requirements=(Requirement(Operation.READ, ResourceType.TOPIC),),
    handle_raw=handle,
)
