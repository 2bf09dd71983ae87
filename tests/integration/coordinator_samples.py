"""Sample requests of the coordinators' APIs: none of them finds its member, group or transaction, and says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from penstock.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from penstock.protocol.messages.describe_transactions import DescribeTransactionsRequest
from penstock.protocol.messages.end_txn import EndTxnRequest
from penstock.protocol.messages.find_coordinator import FindCoordinatorRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.list_groups import ListGroupsRequest
from penstock.protocol.messages.list_transactions import ListTransactionsRequest
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from penstock.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from penstock.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)

GROUP = "samples"
MEMBER = "nobody"
TRANSACTIONAL_ID = "nothing"
PRODUCER_ID = 987_654

SERVED: dict[ApiKey, range] = {
    ApiKey.OFFSET_COMMIT: range(2, 11),
    ApiKey.OFFSET_FETCH: range(1, 11),
    ApiKey.FIND_COORDINATOR: range(7),
    ApiKey.JOIN_GROUP: range(10),
    ApiKey.HEARTBEAT: range(5),
    ApiKey.LEAVE_GROUP: range(6),
    ApiKey.SYNC_GROUP: range(6),
    ApiKey.DESCRIBE_GROUPS: range(7),
    ApiKey.LIST_GROUPS: range(6),
    ApiKey.DELETE_GROUPS: range(3),
    ApiKey.OFFSET_DELETE: range(1),
    ApiKey.ADD_PARTITIONS_TO_TXN: range(6),
    ApiKey.ADD_OFFSETS_TO_TXN: range(5),
    ApiKey.END_TXN: range(6),
    ApiKey.WRITE_TXN_MARKERS: range(1, 3),
    ApiKey.TXN_OFFSET_COMMIT: range(6),
    ApiKey.DESCRIBE_PRODUCERS: range(1),
    ApiKey.DESCRIBE_TRANSACTIONS: range(1),
    ApiKey.LIST_TRANSACTIONS: range(3),
}

NOT_FOUND: Mapping[ApiKey, ErrorCode] = {
    ApiKey.HEARTBEAT: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.LEAVE_GROUP: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.SYNC_GROUP: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.JOIN_GROUP: ErrorCode.UNKNOWN_MEMBER_ID,
    ApiKey.DESCRIBE_GROUPS: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.DELETE_GROUPS: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.OFFSET_DELETE: ErrorCode.GROUP_ID_NOT_FOUND,
    ApiKey.ADD_OFFSETS_TO_TXN: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ApiKey.END_TXN: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ApiKey.TXN_OFFSET_COMMIT: ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ApiKey.DESCRIBE_TRANSACTIONS: ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
}
"""The one error that the answer may carry."""


def _offset_commit(topic: str, topic_id: UUID, version: int) -> OffsetCommitRequest:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="text")
    named = OffsetCommitRequestTopic(name=topic, topic_id=topic_id, partitions=[partition])
    return OffsetCommitRequest(group_id=GROUP, topics=[named])


def _offset_fetch(topic: str, topic_id: UUID, version: int) -> OffsetFetchRequest:
    if version < 8:
        wanted = OffsetFetchRequestTopic(name=topic, partition_indexes=[0])
        return OffsetFetchRequest(group_id=GROUP, topics=[wanted])
    named = OffsetFetchRequestTopics(name=topic, topic_id=topic_id, partition_indexes=[0])
    return OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=GROUP, topics=[named])])


def _join_group(topic: str, topic_id: UUID, version: int) -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=GROUP,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        member_id=MEMBER,
        protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=b"metadata")],
    )


def _sync_group(topic: str, topic_id: UUID, version: int) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=GROUP,
        generation_id=1,
        member_id=MEMBER,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[SyncGroupRequestAssignment(member_id=MEMBER, assignment=b"assignment")],
    )


def _add_partitions(topic: str, topic_id: UUID, version: int) -> AddPartitionsToTxnRequest:
    topics = [AddPartitionsToTxnTopic(name=topic, partitions=[0])]
    if version < 4:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=TRANSACTIONAL_ID,
            v3_and_below_producer_id=PRODUCER_ID,
            v3_and_below_topics=topics,
        )
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=TRANSACTIONAL_ID, producer_id=PRODUCER_ID, verify_only=True, topics=topics
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def _txn_offset_commit(topic: str, topic_id: UUID, version: int) -> TxnOffsetCommitRequest:
    partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1, committed_metadata="text")
    return TxnOffsetCommitRequest(
        transactional_id=TRANSACTIONAL_ID,
        group_id=GROUP,
        producer_id=PRODUCER_ID,
        topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[partition])],
    )


def _write_txn_markers(topic: str, topic_id: UUID, version: int) -> WriteTxnMarkersRequest:
    topics = [WritableTxnMarkerTopic(name=topic, partition_indexes=[0])]
    return WriteTxnMarkersRequest(
        markers=[WritableTxnMarker(producer_id=PRODUCER_ID, transaction_result=True, topics=topics)]
    )


def _offset_delete(topic: str, topic_id: UUID, version: int) -> OffsetDeleteRequest:
    partition = OffsetDeleteRequestPartition(partition_index=0)
    return OffsetDeleteRequest(group_id=GROUP, topics=[OffsetDeleteRequestTopic(name=topic, partitions=[partition])])


MAKERS: dict[ApiKey, Callable[[str, UUID, int], Any]] = {
    ApiKey.OFFSET_COMMIT: _offset_commit,
    ApiKey.OFFSET_FETCH: _offset_fetch,
    ApiKey.FIND_COORDINATOR: lambda *_: FindCoordinatorRequest(key=GROUP, coordinator_keys=[GROUP]),
    ApiKey.JOIN_GROUP: _join_group,
    ApiKey.HEARTBEAT: lambda *_: HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=MEMBER),
    ApiKey.LEAVE_GROUP: lambda *_: LeaveGroupRequest(
        group_id=GROUP, member_id=MEMBER, members=[MemberIdentity(member_id=MEMBER)]
    ),
    ApiKey.SYNC_GROUP: _sync_group,
    ApiKey.DESCRIBE_GROUPS: lambda *_: DescribeGroupsRequest(groups=[GROUP]),
    ApiKey.LIST_GROUPS: lambda *_: ListGroupsRequest(),
    ApiKey.DELETE_GROUPS: lambda *_: DeleteGroupsRequest(groups_names=[GROUP]),
    ApiKey.OFFSET_DELETE: _offset_delete,
    ApiKey.ADD_PARTITIONS_TO_TXN: _add_partitions,
    ApiKey.ADD_OFFSETS_TO_TXN: lambda *_: AddOffsetsToTxnRequest(
        transactional_id=TRANSACTIONAL_ID, producer_id=PRODUCER_ID, group_id=GROUP
    ),
    ApiKey.END_TXN: lambda *_: EndTxnRequest(transactional_id=TRANSACTIONAL_ID, producer_id=PRODUCER_ID),
    ApiKey.WRITE_TXN_MARKERS: _write_txn_markers,
    ApiKey.TXN_OFFSET_COMMIT: _txn_offset_commit,
    ApiKey.DESCRIBE_PRODUCERS: lambda topic, *_: DescribeProducersRequest(
        topics=[TopicRequest(name=topic, partition_indexes=[0])]
    ),
    ApiKey.DESCRIBE_TRANSACTIONS: lambda *_: DescribeTransactionsRequest(transactional_ids=[TRANSACTIONAL_ID]),
    ApiKey.LIST_TRANSACTIONS: lambda *_: ListTransactionsRequest(),
}
