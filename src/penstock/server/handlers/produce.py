"""Produce (0), versions 3-13, announced from 0 on (KAFKA-18659: older librdkafka reads features from the lower bound).

The batches are checked and appended where the session received them (see docs/decisions/0002). Most requests carry
one batch for one partition led here that is committed by its append: those are answered without building anything.
A request with acks=0 gets no answer; when it fails its connection is closed, which is how such a producer learns of
it.

A transactional batch waits, copied, until the coordinator has agreed that its partition is in the transaction; as soon
as a transaction is open in the partition its batches are appended at once like others. From version 12 on (KIP-890) the
partition is added to the transaction by that.

Version 13 names topics by id. The answer explains errors from version 8 on, and tells from version 10 on who leads a
partition that is not led here (KIP-951).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import INTERNAL_TOPICS
from penstock.protocol.apis import ApiKey
from penstock.protocol.hot.produce import (
    NodeEndpoint,
    ProducePartitionResult,
    ProduceRequest,
    decode_produce,
    encode_produce_one,
    encode_produce_response,
)
from penstock.records.batch import HEADER_SIZE, TRANSACTIONAL_MASK, read_header
from penstock.records.errors import RejectedRecords
from penstock.replication.partition import Partition
from penstock.replication.transaction_questions import ClientSupport
from penstock.replication.transaction_verification import TransactionalBatch, produce_error
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.leadership import WRONG_LEADER, current_leader, endpoints
from penstock.server.output import Answer
from penstock.server.session import CloseConnection
from penstock.storage.log import AppendInfo

_NO_ACKS = 0
_LEADERS_FROM = 10
_ADMIN_CLIENT_ID = "__admin_client"
_ATTRIBUTES_LOW_BYTE = 22
_BAD_RECORDS = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.INVALID_TIMESTAMP,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    }
)
"""What only a producer can set right: worth a line in the log, unlike what its next metadata or a retry heals."""

log = logging.getLogger(__name__)

TopicResults = tuple[str | None, UUID | None, list[ProducePartitionResult]]


class _Waiting(NamedTuple):
    """A partition that cannot be answered yet: where its result stands, and the commit or the append to wait for."""

    results: list[ProducePartitionResult]
    place: int
    partition: Partition
    committed: asyncio.Future[None] | None
    appended: asyncio.Future[AppendInfo] | None = None


def handle(context: Context, request: Request) -> Answer:
    produce = decode_produce(request.api_version, request.frame, request.position)
    topics = produce.topics
    if len(topics) != 1 or len(topics[0][2]) != 1:
        return _handle_many(context, request, produce)
    name, topic_id, partitions = topics[0]
    index, records = partitions[0]
    acks = produce.acks
    try:
        partition = _find_partition(context, request, produce, name, topic_id, index, records)
        assert records is not None  # _find_partition has refused that
        if produce.transactional_id is not None:
            appended = _append_verified(context, request, produce, partition, records)
            if appended is not None:
                results = [_unknown(index)]
                waiting = _Waiting(results, 0, partition, None, appended)
                return _answer_when_done(context, request, produce, [(name, topic_id, results)], [waiting])
        info = context.replicas.append(partition, records, acks, context.clock.time_ms(), request.api_version)
    except KafkaError as error:
        return _answer(context, request, produce, [(name, topic_id, [_failure(index, error)])])
    if not partition.append_is_commit:
        done = context.replicas.completion(partition, info, acks, produce.timeout_ms)
        if done is not None:
            results = [_success(index, info)]
            waiting = _Waiting(results, 0, partition, done)
            return _answer_when_done(context, request, produce, [(name, topic_id, results)], [waiting])
    if acks == _NO_ACKS:
        return None
    return encode_produce_one(
        request.api_version,
        request.correlation_id,
        name,
        topic_id,
        index,
        info.first_offset,
        info.log_append_time,
        info.log_start_offset,
        request.throttle_ms,
    )


def _find_partition(
    context: Context,
    request: Request,
    produce: ProduceRequest,
    name: str | None,
    topic_id: UUID | None,
    index: int,
    records: memoryview | None,
) -> Partition:
    """The partition to append to; KafkaError for what must not be appended anywhere."""
    if not -1 <= produce.acks <= 1:
        raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be -1, 0 or 1, not {produce.acks}")
    if name is not None:
        partition = context.replicas.partition(name, index)
    else:
        assert topic_id is not None
        partition = context.replicas.partition_by_id(topic_id, index)
        name = partition.topic_partition.topic
    if name in INTERNAL_TOPICS and request.client_id != _ADMIN_CLIENT_ID:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{name} is internal and cannot be written to by clients")
    if records is None:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"the request has no records for {name}-{index}")
    if (
        produce.transactional_id is None
        and len(records) > _ATTRIBUTES_LOW_BYTE
        and records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_MASK
    ):
        raise KafkaError(
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, "a transactional batch came without a transactional id"
        )
    return partition


def _append_verified(
    context: Context, request: Request, produce: ProduceRequest, partition: Partition, records: memoryview
) -> asyncio.Future[AppendInfo] | None:
    """Append when the transaction has been verified; None when the batch may be appended at once."""
    if len(records) < HEADER_SIZE:
        return None
    header = read_header(records)
    if not header.is_transactional or not header.has_producer_id:
        return None
    verification = context.transactions.verification
    if not verification.is_needed(partition, header.producer_id, header.producer_epoch):
        return None
    assert produce.transactional_id is not None
    batch = TransactionalBatch(
        transactional_id=produce.transactional_id,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        support=ClientSupport.of_produce(request.api_version),
    )
    # The frame's memory is the session's: it is gone when the coordinator answers.
    copied = memoryview(bytearray(records))
    acks, version = produce.acks, request.api_version
    return verification.append(
        partition,
        batch,
        lambda: context.replicas.append(partition, copied, acks, context.clock.time_ms(), version),
    )


def _handle_many(context: Context, request: Request, produce: ProduceRequest) -> Answer:
    now_ms = context.clock.time_ms()
    topics: list[TopicResults] = []
    waiting: list[_Waiting] = []
    for name, topic_id, partitions in produce.topics:
        results: list[ProducePartitionResult] = []
        for index, records in partitions:
            try:
                partition = _find_partition(context, request, produce, name, topic_id, index, records)
                assert records is not None
                if produce.transactional_id is not None:
                    appended = _append_verified(context, request, produce, partition, records)
                    if appended is not None:
                        waiting.append(_Waiting(results, len(results), partition, None, appended))
                        results.append(_unknown(index))
                        continue
                info = context.replicas.append(partition, records, produce.acks, now_ms, request.api_version)
            except KafkaError as error:
                results.append(_failure(index, error))
                continue
            if not partition.append_is_commit:
                done = context.replicas.completion(partition, info, produce.acks, produce.timeout_ms)
                if done is not None:
                    waiting.append(_Waiting(results, len(results), partition, done))
            results.append(_success(index, info))
        topics.append((name, topic_id, results))
    if waiting:
        return _answer_when_done(context, request, produce, topics, waiting)
    return _answer(context, request, produce, topics)


async def _answer_when_done(
    context: Context,
    request: Request,
    produce: ProduceRequest,
    topics: Sequence[TopicResults],
    waiting: Sequence[_Waiting],
) -> bytes | None:
    for results, place, partition, committed, appended in waiting:
        index = results[place].partition
        try:
            if appended is not None:
                info = await appended
                results[place] = _success(index, info)
                committed = context.replicas.completion(partition, info, produce.acks, produce.timeout_ms)
            if committed is not None:
                await committed
        except KafkaError as error:
            results[place] = _failure(index, produce_error(error, ClientSupport.of_produce(request.api_version)))
    return _answer(context, request, produce, topics)


def _answer(
    context: Context, request: Request, produce: ProduceRequest, topics: Sequence[TopicResults]
) -> bytes | None:
    failed = [
        (f"{name or topic_id}-{result.partition}: {ErrorCode(result.error_code).name}", result)
        for name, topic_id, results in topics
        for result in results
        if result.error_code
    ]
    if produce.acks == _NO_ACKS:
        if failed:
            raise CloseConnection(f"a produce request with acks=0 failed ({', '.join(text for text, _ in failed)})")
        return None
    bad = [f"{text}, {result.error_message}" for text, result in failed if result.error_code in _BAD_RECORDS]
    if bad:
        log.warning("records refused: %s", "; ".join(bad), extra=request.log_fields())
    nodes: Sequence[NodeEndpoint] = ()
    if request.api_version >= _LEADERS_FROM and any(result.error_code in WRONG_LEADER for _, result in failed):
        topics = [(name, topic_id, _with_leaders(context, name, topic_id, each)) for name, topic_id, each in topics]
        nodes = endpoints(context, request, (result.current_leader for _, _, each in topics for result in each))
    return encode_produce_response(request.api_version, request.correlation_id, topics, request.throttle_ms, nodes)


def _with_leaders(
    context: Context, name: str | None, topic_id: UUID | None, results: Sequence[ProducePartitionResult]
) -> list[ProducePartitionResult]:
    topic = topic_id if name is None else name
    assert topic is not None
    return [
        each._replace(current_leader=current_leader(context, topic, each.partition))
        if each.error_code in WRONG_LEADER
        else each
        for each in results
    ]


def _success(index: int, info: AppendInfo) -> ProducePartitionResult:
    return ProducePartitionResult(index, 0, info.first_offset, info.log_append_time, info.log_start_offset)


def _unknown(index: int) -> ProducePartitionResult:
    """Until it is known."""
    return ProducePartitionResult(index, ErrorCode.UNKNOWN_SERVER_ERROR)


def _failure(index: int, error: KafkaError) -> ProducePartitionResult:
    record_errors = error.record_errors if isinstance(error, RejectedRecords) else ()
    return ProducePartitionResult(index, error.code, record_errors=record_errors, error_message=error.message)


API = Api(
    key=ApiKey.PRODUCE,
    versions=range(3, 14),
    advertised_from=0,
    requirements=(Requirement(Operation.WRITE, ResourceType.TOPIC),),
    handle_raw=handle,
)
