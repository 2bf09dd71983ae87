"""A group coordinator on a fake log, with members that are easy to drive."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Coroutine, Sequence
from itertools import count
from typing import Any
from uuid import UUID

from penstock.base.errors import ErrorCode
from penstock.coordinator.group.answers import Caller
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.committing import Committer, OffsetToCommit
from penstock.coordinator.group.coordinator import GroupCoordinator
from penstock.coordinator.group.settings import GroupSettings
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.shard import ProducerIdentity, ShardContext
from penstock.coordinator.runtime.states import ShardState
from penstock.metadata.image import ClusterImage, PartitionState, TopicState
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from penstock.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from tests.unit.coordinator.runtime.fakes import FakeLog, FakeWorld

ORDERS, PAYMENTS = UUID(int=71), UUID(int=72)
SESSION_MS, REBALANCE_MS = 10_000, 30_000
NEW_JOIN = 9
"""A version in which the member id handshake is needed."""

Pending = asyncio.Task[Any]


def topic(name: str, topic_id: UUID, partitions: int) -> TopicState:
    state = PartitionState(replicas=(1,), isr=(1,), leader=1)
    return TopicState(name=name, id=topic_id, partitions=(state,) * partitions)


def image_of(*topics: TopicState) -> ClusterImage:
    return ClusterImage(
        topics={each.name: each for each in topics}, topic_names={each.id: each.name for each in topics}
    )


IMAGE = image_of(topic("orders", ORDERS, 4), topic("payments", PAYMENTS, 2))


def subscription(*topics: str) -> bytes:
    """What a consumer joins with, version 0."""
    names = b"".join(struct.pack(">h", len(name)) + name.encode() for name in topics)
    return struct.pack(">hi", 0, len(topics)) + names + struct.pack(">i", -1)


def error_of(response: Any) -> ErrorCode:
    return ErrorCode(response.error_code)


class GroupStage:
    """Everything that waits is driven by `settle`; time passes in `advance` alone."""

    def __init__(self, *, commits_at_once: bool = True, **settings: Any) -> None:
        self.world = FakeWorld()
        self.log = FakeLog(commits_at_once=commits_at_once)
        self.image = IMAGE
        self.shards: list[GroupShard] = []
        self.pending: list[Pending] = []
        numbers = count(1)
        settings.setdefault("initial_rebalance_delay_ms", 0)
        self.groups = GroupCoordinator(
            settings=GroupSettings(**settings),
            image=lambda: self.image,
            new_uuid=lambda: str(next(numbers)),
            tasks=self.world,
        )
        self.runtime: CoordinatorRuntime[GroupShard] = CoordinatorRuntime(
            "__consumer_offsets",
            self.log,
            clock=self.world,
            tasks=self.world,
            make_shard=self._make,
            partition_count=lambda: 1,
            checks_invariants=True,
        )
        self.groups.attach(self.runtime)
        self.load()

    def _make(self, context: ShardContext) -> GroupShard:
        self.shards.append(self.groups.make_shard(context))
        return self.shards[-1]

    def load(self, epoch: int = 0) -> None:
        self.log.leader_epoch = epoch
        self.runtime.load(0, epoch)
        while self.runtime.state(0) is ShardState.LOADING:
            self.settle()
        assert self.runtime.state(0) is ShardState.ACTIVE

    def restart(self) -> None:
        """Another broker takes the partition over, with everything that was committed."""
        epoch = self.runtime.leader_epoch(0)
        self.log.lose(truncate_to=self.log.hw)
        self.settle()
        self.load(epoch + 1)

    def close(self) -> None:
        self.runtime.close()
        for task in self.pending:
            if not task.done():
                task.cancel()
        self.settle()
        self.world.close()

    # -- Time ----------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        self.world.settle(5)

    def advance(self, milliseconds: int) -> None:
        self.world.advance(milliseconds / 1000)
        self.settle()

    # -- Looking -------------------------------------------------------------------------------------------------------

    @property
    def shard(self) -> GroupShard:
        return self.shards[-1]

    def group(self, group_id: str = "g") -> ClassicGroup:
        return self.shard.groups[group_id]

    def state(self, group_id: str = "g") -> GroupState:
        return self.group(group_id).state

    # -- Asking --------------------------------------------------------------------------------------------------------

    def start(self, work: Coroutine[Any, Any, Any]) -> Pending:
        task = self.world.spawn(work, name="request")
        self.pending.append(task)
        self.settle()
        return task

    def ask(self, answer: Any) -> Any:
        """An answer that must not have to wait for anybody."""
        if not isinstance(answer, Coroutine):
            self.settle()
            return answer
        task = self.start(answer)
        assert task.done(), "the answer is not there"
        return task.result()

    def join(
        self,
        member_id: str = "",
        *,
        group: str = "g",
        version: int = NEW_JOIN,
        instance: str | None = None,
        protocols: Sequence[tuple[str, bytes]] = (("range", subscription("orders")),),
        protocol_type: str = "consumer",
        session_ms: int = SESSION_MS,
        rebalance_ms: int = REBALANCE_MS,
        client: str = "client",
    ) -> Pending:
        request = JoinGroupRequest(
            group_id=group,
            session_timeout_ms=session_ms,
            rebalance_timeout_ms=rebalance_ms,
            member_id=member_id,
            group_instance_id=instance,
            protocol_type=protocol_type,
            protocols=[JoinGroupRequestProtocol(name=name, metadata=metadata) for name, metadata in protocols],
        )
        return self.start(self.groups.join_group(Caller(client, "/10.0.0.1", version), request))

    def new_member(self, **options: Any) -> tuple[str, Pending]:
        """The handshake: ask for an id, then join with it."""
        answer: JoinGroupResponse = self.join(**options).result()
        assert error_of(answer) is ErrorCode.MEMBER_ID_REQUIRED, answer
        return answer.member_id, self.join(answer.member_id, **options)

    def sync(
        self,
        member_id: str,
        generation: int,
        assignments: dict[str, bytes] | None = None,
        *,
        group: str = "g",
        version: int = 4,
        **options: Any,
    ) -> Pending:
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            assignments=[
                SyncGroupRequestAssignment(member_id=each, assignment=assignment)
                for each, assignment in (assignments or {}).items()
            ],
            **options,
        )
        return self.start(self.groups.sync_group(request, version))

    def heartbeat(self, member_id: str, generation: int, *, group: str = "g", instance: str | None = None) -> ErrorCode:
        return self.groups.heartbeat(
            HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance)
        )

    def leave(self, *identities: tuple[str, str | None], group: str = "g") -> LeaveGroupResponse:
        members = [MemberIdentity(member_id=each, group_instance_id=instance) for each, instance in identities]
        response: LeaveGroupResponse = self.ask(
            self.groups.leave_group(LeaveGroupRequest(group_id=group, members=members), 5)
        )
        return response

    def commit_request(
        self,
        offset: int = 7,
        *,
        group: str = "g",
        member_id: str = "",
        instance: str | None = None,
        generation: int = -1,
        topic: str = "orders",
        partition: int = 0,
        metadata: str | None = None,
        leader_epoch: int = -1,
        topic_id: UUID | None = None,
        retention_ms: int = -1,
    ) -> OffsetCommitRequest:
        each = OffsetCommitRequestPartition(
            partition_index=partition,
            committed_offset=offset,
            committed_metadata=metadata,
            committed_leader_epoch=leader_epoch,
        )
        named = OffsetCommitRequestTopic(name=topic, partitions=[each])
        if topic_id is not None:
            named = OffsetCommitRequestTopic(topic_id=topic_id, partitions=[each])
        return OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=generation,
            member_id=member_id,
            group_instance_id=instance,
            retention_time_ms=retention_ms,
            topics=[named],
        )

    def commit(self, offset: int = 7, *, version: int = 8, **options: Any) -> ErrorCode:
        response = self.ask(self.groups.offsets.commit(self.commit_request(offset, **options), version))
        return error_of(response.topics[0].partitions[0])

    def start_commit(self, offset: int = 7, *, version: int = 8, **options: Any) -> Pending:
        """A commit on a log that commits late."""
        answer = self.groups.offsets.commit(self.commit_request(offset, **options), version)
        assert isinstance(answer, Coroutine)
        return self.start(answer)

    def commit_in_transaction(self, producer_id: int, offset: int, **options: Any) -> asyncio.Future[Any]:
        group = options.pop("group", "g")
        committer = Committer(options.pop("member_id", ""), None, options.pop("generation", -1))
        offsets = [OffsetToCommit("orders", options.pop("partition", 0), offset)]
        return self.groups.write(
            0,
            "commit in a transaction",
            lambda shard: shard.commit_transactional_offsets(group, committer, offsets),
            producer=ProducerIdentity(producer_id, 0),
        )

    def end_transaction(self, producer_id: int, *, committed: bool) -> asyncio.Future[None]:
        return self.groups.complete_transaction(
            0, "end", ProducerIdentity(producer_id, 0), committed=committed, coordinator_epoch=0
        )

    def fetch(
        self,
        partitions: Sequence[int] | None = (0,),
        *,
        group: str = "g",
        topic: str = "orders",
        topic_id: UUID | None = None,
        stable: bool = False,
        version: int = 9,
    ) -> OffsetFetchResponseGroup:
        named = OffsetFetchRequestTopics(name=topic, partition_indexes=list(partitions or ()))
        if topic_id is not None:
            named = OffsetFetchRequestTopics(topic_id=topic_id, partition_indexes=list(partitions or ()))
        request = OffsetFetchRequestGroup(group_id=group, topics=None if partitions is None else [named])
        response: OffsetFetchResponseGroup = self.ask(
            self.groups.offsets.fetch(request, require_stable=stable, api_version=version)
        )
        return response

    def committed_offset(self, partition: int = 0, *, group: str = "g") -> int:
        return self.fetch((partition,), group=group).topics[0].partitions[0].committed_offset

    # -- Groups that are ready -----------------------------------------------------------------------------------------

    def stable_group(self, size: int = 1, *, group: str = "g", **options: Any) -> tuple[list[str], int]:
        """A group whose members have their assignments; the leader comes first."""
        members = [self.new_member(group=group, **options) for _ in range(size)]
        return self.finish_rebalance([member_id for member_id, _ in members], [join for _, join in members], group)

    def finish_rebalance(self, member_ids: list[str], joins: list[Pending], group: str = "g") -> tuple[list[str], int]:
        self.advance(1)
        answers: list[JoinGroupResponse] = [join.result() for join in joins]
        assert all(error_of(answer) is ErrorCode.NONE for answer in answers), answers
        generation, leader = answers[0].generation_id, answers[0].leader
        assignments = {member_id: f"part of {member_id}".encode() for member_id in member_ids}
        syncs = {
            member_id: self.sync(member_id, generation, assignments if member_id == leader else None, group=group)
            for member_id in sorted(member_ids, key=lambda each: each == leader)
        }
        for member_id, sync in syncs.items():
            response: SyncGroupResponse = sync.result()
            assert error_of(response) is ErrorCode.NONE, response
            assert response.assignment == assignments[member_id]
        assert self.state(group) is GroupState.STABLE
        return [leader, *(each for each in member_ids if each != leader)], generation
