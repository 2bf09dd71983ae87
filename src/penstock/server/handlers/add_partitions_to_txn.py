"""AddPartitionsToTxn (24), versions 0-5: which partitions a transaction is going to write to.

Up to version 3 a client names the partitions of its transaction. From version 4 on the leaders of partitions ask, for
many transactions at once: `verify_only` whether a partition was added, otherwise to add it on behalf of a producer of
the second protocol (KIP-890). A partition that does not exist fails its whole transaction; the others of it are then
OPERATION_NOT_ATTEMPTED. PRODUCER_FENCED is INVALID_PRODUCER_EPOCH below version 2.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from penstock.base.errors import ErrorCode
from penstock.base.internal_topics import INTERNAL_TOPICS
from penstock.base.types import TopicPartition
from penstock.coordinator.transaction.metadata import EPOCH_BUMP_VERSION, Producer, by_topic
from penstock.coordinator.transaction.operations.partitions import PartitionsOfTransaction
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request
from penstock.server.transactions import fencing_code

_FROM_BROKERS = 4
_FENCED_FROM = 2


async def handle(context: Context, request: Request, message: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    version = request.api_version
    if version < _FROM_BROKERS:
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=message.v3_and_below_transactional_id,
            producer_id=message.v3_and_below_producer_id,
            producer_epoch=message.v3_and_below_producer_epoch,
            topics=message.v3_and_below_topics,
        )
        codes = await _add(context, transaction, version)
        return AddPartitionsToTxnResponse(
            throttle_time_ms=request.throttle_ms, results_by_topic_v3_and_below=_topic_results(codes)
        )
    results = await asyncio.gather(*(_add(context, each, version) for each in message.transactions))
    return AddPartitionsToTxnResponse(
        throttle_time_ms=request.throttle_ms,
        results_by_transaction=[
            AddPartitionsToTxnResult(transactional_id=each.transactional_id, topic_results=_topic_results(codes))
            for each, codes in zip(message.transactions, results, strict=True)
        ],
    )


async def _add(
    context: Context, transaction: AddPartitionsToTxnTransaction, version: int
) -> Mapping[TopicPartition, ErrorCode]:
    partitions = frozenset(
        TopicPartition(topic.name, index) for topic in transaction.topics for index in topic.partitions
    )
    refused = {
        each: code
        for each in partitions
        if (code := _refusal(context, each, from_client=version < _FROM_BROKERS)) is not ErrorCode.NONE
    }
    if refused:
        return {each: refused.get(each, ErrorCode.OPERATION_NOT_ATTEMPTED) for each in partitions}
    wanted = PartitionsOfTransaction(
        transactional_id=transaction.transactional_id,
        producer=Producer(transaction.producer_id, transaction.producer_epoch),
        partitions=partitions,
        client_version=EPOCH_BUMP_VERSION if version >= _FROM_BROKERS else 0,
    )
    if transaction.verify_only:
        return context.transactions.coordinator.verify_partitions(wanted)
    answer = await context.transactions.coordinator.add_partitions(wanted)
    return dict.fromkeys(partitions, fencing_code(answer.code, version >= _FENCED_FROM))


def _refusal(context: Context, place: TopicPartition, *, from_client: bool) -> ErrorCode:
    if from_client and place.topic in INTERNAL_TOPICS:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    topic = context.image.topics.get(place.topic)
    exists = topic is not None and 0 <= place.partition < len(topic.partitions)
    return ErrorCode.NONE if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def _topic_results(codes: Mapping[TopicPartition, ErrorCode]) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            name=topic,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=codes[TopicPartition(topic, index)]
                )
                for index in indexes
            ],
        )
        for topic, indexes in by_topic(codes).items()
    ]


API = Api(
    key=ApiKey.ADD_PARTITIONS_TO_TXN,
    versions=range(6),
    requirements=(
        Requirement(Operation.WRITE, ResourceType.TRANSACTIONAL_ID),
        Requirement(Operation.WRITE, ResourceType.TOPIC),
    ),
    handle=handle,
)
