"""A group coordinator of the test's own: one member, which leads, on a cluster whose time the test moves."""

from __future__ import annotations

from collections import deque
from typing import Any

from penstock.base.types import TopicPartition
from penstock.client.config import ClientKind
from penstock.client.consumer.commits import Commits
from penstock.client.consumer.group.membership import GroupMembership
from penstock.client.consumer.group.wire import decode_assignment
from penstock.client.consumer.interceptors import Interceptors
from penstock.client.consumer.positions import ResetPolicy
from penstock.client.consumer.subscription import SubscriptionState
from penstock.client.core.client import ClientCore
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from penstock.protocol.messages.heartbeat import HeartbeatResponse
from penstock.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from penstock.protocol.messages.leave_group import LeaveGroupResponse
from penstock.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from penstock.protocol.messages.sync_group import SyncGroupResponse
from tests.unit.client.core.world import Cluster

MEMBER = "member-1"


class GroupWorld:
    """`codes[api]` are the error codes of the next answers, in turn; when there are none, all is well."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.time = self.cluster.time
        self.codes: dict[int, deque[int]] = {}
        self.generation = 0
        self.committed: list[dict[TopicPartition, int]] = []
        """What each OffsetCommit asked for, refused ones included."""
        self.cluster.add_topic("t", [1, 1])
        handlers = self.cluster.brokers[1].handlers
        handlers[ApiKey.FIND_COORDINATOR] = self._find
        handlers[ApiKey.OFFSET_COMMIT] = self._commit
        handlers[ApiKey.JOIN_GROUP] = self._join
        handlers[ApiKey.SYNC_GROUP] = self._sync
        handlers[ApiKey.HEARTBEAT] = lambda _: HeartbeatResponse(error_code=self._code(ApiKey.HEARTBEAT))
        handlers[ApiKey.LEAVE_GROUP] = lambda _: LeaveGroupResponse()

    async def start(self, **options: object) -> None:
        self.core: ClientCore = self.cluster.core(ClientKind.CONSUMER, group_id="g", **options)
        await self.core.start()
        self.core.metadata.want(["t"])
        await self.cluster.run(self.core.metadata.update())
        self.subscription = SubscriptionState(ResetPolicy("earliest"))
        self.commits = Commits(self.core, self.subscription, Interceptors((), {}))

    def join(self, listener: object) -> GroupMembership:
        self.subscription.subscribe(["t"], listener)
        return GroupMembership(self.core, self.subscription, self.commits, consumer=lambda: None)

    async def poll(self, membership: GroupMembership, seconds: float = 5.0) -> bool:
        """What a poll does for the group."""
        settled: bool = await self.cluster.run(membership.ensure_active(self.time.now + seconds))
        return settled

    def read(self, **offsets: int) -> None:
        """The user has read up to these offsets: `read(t0=5)`."""
        for name, offset in offsets.items():
            self.subscription.seek(TopicPartition(name[0], int(name[1:])), offset)

    def count(self, api_key: int) -> int:
        return self.cluster.brokers[1].count(api_key)

    def refuse(self, api_key: int, *codes: int) -> None:
        self.codes.setdefault(api_key, deque()).extend(codes)

    def _code(self, api_key: int) -> int:
        waiting = self.codes.get(api_key)
        return waiting.popleft() if waiting else 0

    def _find(self, request: Any) -> FindCoordinatorResponse:
        found = [Coordinator(key=key, node_id=1, host="broker-1", port=9092) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    def _commit(self, request: Any) -> OffsetCommitResponse:
        code = self._code(ApiKey.OFFSET_COMMIT)
        self.committed.append(
            {
                TopicPartition(topic.name, each.partition_index): each.committed_offset
                for topic in request.topics
                for each in topic.partitions
            }
        )
        return OffsetCommitResponse(
            topics=[
                OffsetCommitResponseTopic(
                    name=topic.name,
                    partitions=[
                        OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=code)
                        for each in topic.partitions
                    ],
                )
                for topic in request.topics
            ]
        )

    def _join(self, request: Any) -> JoinGroupResponse:
        code = self._code(ApiKey.JOIN_GROUP)
        self.generation += not code
        offer = request.protocols[0]
        return JoinGroupResponse(
            error_code=code,
            generation_id=self.generation,
            protocol_name=offer.name,
            leader=MEMBER,
            member_id=MEMBER,
            members=[JoinGroupResponseMember(member_id=MEMBER, metadata=offer.metadata)],
        )

    def _sync(self, request: Any) -> SyncGroupResponse:
        code = self._code(ApiKey.SYNC_GROUP)
        given = next(each.assignment for each in request.assignments if each.member_id == MEMBER)
        assert decode_assignment(given).partitions
        return SyncGroupResponse(error_code=code, assignment=given, protocol_name=request.protocol_name)
