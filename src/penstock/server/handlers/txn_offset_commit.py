"""TxnOffsetCommit (28), versions 0-5: offsets that count when the producer's transaction commits.

They are written to the group's partition of `__consumer_offsets` as a batch of the transaction, after its coordinator
has agreed that the partition belongs to it; from version 5 on (KIP-890) that adds it. The end marker in that partition
then applies or drops them. From version 3 on the group's generation fences a commit.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import CONSUMER_OFFSETS
from penstock.coordinator.group.committing import Committer, OffsetToCommit, PartitionResult
from penstock.coordinator.runtime.shard import ProducerIdentity
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from penstock.replication.transaction_questions import ClientSupport
from penstock.replication.transaction_verification import TransactionalBatch
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_LOADING_KNOWN_FROM = 2
_NO_SEQUENCE = -1
_TOLD = {
    # Clients know these of a group's coordinator, and come again without another look-up.
    ErrorCode.NETWORK_EXCEPTION: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER: ErrorCode.NOT_COORDINATOR,
    ErrorCode.KAFKA_STORAGE_ERROR: ErrorCode.NOT_COORDINATOR,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}


async def handle(context: Context, request: Request, message: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    wanted = [
        OffsetToCommit(
            topic.name,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata,
        )
        for topic in message.topics
        for each in topic.partitions
    ]
    known = [each for each in wanted if _exists(context, each)]
    results = {(each.topic, each.partition): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for each in wanted}
    if known:
        try:
            done = await _commit(context, request.api_version, message, known)
            results.update({(each.topic, each.partition): each.code for each in done})
        except KafkaError as error:
            code = _code(error.code, request.api_version)
            results.update({(each.topic, each.partition): code for each in known})
    return _response(message, lambda topic, partition: results[topic, partition], request.throttle_ms)


def _exists(context: Context, offset: OffsetToCommit) -> bool:
    topic = context.image.topics.get(offset.topic)
    return topic is not None and 0 <= offset.partition < len(topic.partitions)


async def _commit(
    context: Context, api_version: int, message: TxnOffsetCommitRequest, offsets: Iterable[OffsetToCommit]
) -> list[PartitionResult]:
    if not message.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "The group id may not be empty.")
    place = context.groups.partition_for(message.group_id)
    committer = Committer(message.member_id, message.group_instance_id, message.generation_id)

    def write() -> asyncio.Future[list[PartitionResult]]:
        return context.groups.write(
            place,
            "commit offsets in a transaction",
            lambda shard: shard.commit_transactional_offsets(message.group_id, committer, offsets),
            producer=ProducerIdentity(message.producer_id, message.producer_epoch),
        )

    partition = context.replicas.partition(CONSUMER_OFFSETS, place)
    verification = context.transactions.verification
    if not verification.is_needed(partition, message.producer_id, message.producer_epoch):
        return await write()
    batch = TransactionalBatch(
        transactional_id=message.transactional_id,
        producer_id=message.producer_id,
        producer_epoch=message.producer_epoch,
        base_sequence=_NO_SEQUENCE,
        support=ClientSupport.of_offset_commit(api_version),
    )
    written: asyncio.Future[list[PartitionResult]] = await verification.append(partition, batch, write)
    return await written


def _code(code: ErrorCode, api_version: int) -> ErrorCode:
    told = _TOLD.get(code, code)
    if told is ErrorCode.CONCURRENT_TRANSACTIONS and ClientSupport.of_offset_commit(api_version) < 2:
        told = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    if told is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and api_version < _LOADING_KNOWN_FROM:
        # KAFKA-7296: old producers fall over the other one.
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return told


def _response(
    message: TxnOffsetCommitRequest, code_of: Callable[[str, int], ErrorCode], throttle_ms: int
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(
        throttle_time_ms=throttle_ms,
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=code_of(topic.name, each.partition_index)
                    )
                    for each in topic.partitions
                ],
            )
            for topic in message.topics
        ],
    )


def _failure(code: ErrorCode) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse()


API = Api(
    key=ApiKey.TXN_OFFSET_COMMIT,
    versions=range(6),
    requirements=(
        Requirement(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        Requirement(Operation.READ, ResourceType.GROUP),
        Requirement(Operation.READ, ResourceType.TOPIC),
    ),
    handle=handle,
    error_response=_failure,
)
