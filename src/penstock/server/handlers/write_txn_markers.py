"""WriteTxnMarkers (27), versions 1-2: a transaction coordinator ends a transaction on partitions led here.

Each marker becomes a control batch in every partition it names; the answer comes when they are committed. In
`__consumer_offsets` the group coordinator writes it, and so learns what to do with the offsets of the transaction.
Version 2 says by which protocol the transaction ended: in the second one (KIP-890) the epoch must be a new one.
"""

from __future__ import annotations

import asyncio

from penstock.base.config import broker_keys as keys
from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.internal_topics import CONSUMER_OFFSETS
from penstock.base.types import TopicPartition
from penstock.coordinator.runtime.shard import ProducerIdentity
from penstock.coordinator.transaction.metadata import by_topic
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from penstock.records.builder import ControlType, end_transaction_marker
from penstock.records.validation import trust_batch
from penstock.replication.partition import ALL_ACKS
from penstock.security.authorizer import Operation, Requirement, ResourceType
from penstock.server.api import Api, Context, Request

_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)
"""What a transaction coordinator does not expect of a partition: it is told to look for the leader again."""

_Codes = dict[TopicPartition, ErrorCode]


async def handle(context: Context, request: Request, message: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
    codes: dict[int, _Codes] = {}
    waiting: list[tuple[_Codes, TopicPartition, asyncio.Future[None]]] = []
    for marker in message.markers:
        results = codes.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for index in topic.partition_indexes:
                place = TopicPartition(topic.name, index)
                try:
                    done = _write(context, place, marker)
                except KafkaError as error:
                    results[place] = error.code
                    continue
                results[place] = ErrorCode.NONE
                if done is not None:
                    waiting.append((results, place, done))
    for results, place, done in waiting:
        try:
            await done
        except KafkaError as error:
            results[place] = ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
    return WriteTxnMarkersResponse(markers=[_result(producer_id, each) for producer_id, each in codes.items()])


def _write(context: Context, place: TopicPartition, marker: WritableTxnMarker) -> asyncio.Future[None] | None:
    """Append the marker; what its commit still has to wait for."""
    timeout_ms = context.config[keys.REQUEST_TIMEOUT_MS]
    partition = context.replicas.partition(*place)
    batch = trust_batch(
        bytearray(
            end_transaction_marker(
                ControlType.COMMIT if marker.transaction_result else ControlType.ABORT,
                producer_id=marker.producer_id,
                producer_epoch=marker.producer_epoch,
                coordinator_epoch=marker.coordinator_epoch,
                timestamp=context.clock.time_ms(),
            )
        )
    )
    partition.log.producers.check_control(
        batch.header, marker.coordinator_epoch, transaction_version=marker.transaction_version
    )
    if place.topic == CONSUMER_OFFSETS:
        written = context.groups.complete_transaction(
            place.partition,
            "complete transaction",
            ProducerIdentity(marker.producer_id, marker.producer_epoch),
            committed=marker.transaction_result,
            coordinator_epoch=marker.coordinator_epoch,
            timeout_ms=timeout_ms,
        )
        _note(context, place, marker)
        return written
    info = context.replicas.append_own(partition, batch, ALL_ACKS)
    _note(context, place, marker)
    return None if partition.append_is_commit else context.replicas.completion(partition, info, ALL_ACKS, timeout_ms)


def _note(context: Context, place: TopicPartition, marker: WritableTxnMarker) -> None:
    context.transactions.verification.marker_written(
        place, marker.producer_id, marker.producer_epoch, marker.transaction_version
    )


def _result(producer_id: int, codes: _Codes) -> WritableTxnMarkerResult:
    return WritableTxnMarkerResult(
        producer_id=producer_id,
        topics=[
            WritableTxnMarkerTopicResult(
                name=topic,
                partitions=[
                    WritableTxnMarkerPartitionResult(
                        partition_index=index, error_code=codes[TopicPartition(topic, index)]
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(codes).items()
        ],
    )


def _failure(code: ErrorCode) -> WriteTxnMarkersResponse:
    """The answer has no place for an error of the whole request: its partitions are not named, so they are tried
    again."""
    return WriteTxnMarkersResponse()


API = Api(
    key=ApiKey.WRITE_TXN_MARKERS,
    versions=range(1, 3),
    requirements=(Requirement(Operation.CLUSTER_ACTION, ResourceType.CLUSTER),),
    handle=handle,
    error_response=_failure,
)
