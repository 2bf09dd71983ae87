"""Join, sync, commit, leave and the deletions, each as a step that the broker may die under.

Joining changes nothing that lasts: a group's generation is kept when its leader has given out the assignment. So after
a death during the join the group is what it was before, whole, and its members join again.
"""

from __future__ import annotations

from typing import Any

from penstock.base.errors import ErrorCode
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
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
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from tests.integration.kill_steps import Request, Step, ask, ask_well, committed_offsets
from tests.support.raw_client import RawClient

TOPIC = "committed"
PARTITIONS = 8

OLD = [(10 + partition, f"old-{partition}", 0) for partition in range(PARTITIONS)]
NEW = [(1000 + partition, f"new-{partition}", 0) for partition in range(PARTITIONS)]
NOTHING = [(-1, "", 0)] * PARTITIONS


def join_request(group: str, member_id: str = "") -> JoinGroupRequest:
    return JoinGroupRequest(
        group_id=group,
        session_timeout_ms=60_000,
        rebalance_timeout_ms=60_000,
        member_id=member_id,
        # Not "consumer": the metadata of that type is looked into.
        protocol_type="test",
        protocols=[JoinGroupRequestProtocol(name="plain", metadata=b"metadata")],
    )


def new_member_id(client: RawClient, group: str) -> str:
    answer = ask(client, ApiKey.JOIN_GROUP, 9, join_request(group))
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED, answer
    member_id: str = answer.member_id
    return member_id


def join(client: RawClient, group: str, member_id: str) -> int:
    """The generation that a group of one member gets."""
    answer = ask_well(client, ApiKey.JOIN_GROUP, 9, join_request(group, member_id))
    assert answer.leader == member_id
    generation: int = answer.generation_id
    return generation


def sync_request(group: str, generation: int, member_id: str, *assigned: str) -> SyncGroupRequest:
    return SyncGroupRequest(
        group_id=group,
        generation_id=generation,
        member_id=member_id,
        protocol_type="test",
        protocol_name="plain",
        assignments=[SyncGroupRequestAssignment(member_id=each, assignment=assignment_of(each)) for each in assigned],
    )


def assignment_of(member_id: str) -> bytes:
    return f"what {member_id} got".encode()


def stable_group(client: RawClient, group: str) -> tuple[str, int]:
    """A group of one member that has its assignment: (member id, generation)."""
    member_id = new_member_id(client, group)
    generation = join(client, group, member_id)
    answer = ask_well(client, ApiKey.SYNC_GROUP, 5, sync_request(group, generation, member_id, member_id))
    assert answer.assignment == assignment_of(member_id)
    return member_id, generation


def heartbeat(client: RawClient, group: str, generation: int, member_id: str) -> int:
    request = HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)
    error: int = ask(client, ApiKey.HEARTBEAT, 4, request).error_code
    return error


def describe(client: RawClient, group: str) -> Any:
    (found,) = ask_well(client, ApiKey.DESCRIBE_GROUPS, 5, DescribeGroupsRequest(groups=[group])).groups
    return found


def commit_request(
    group: str, offsets: list[tuple[int, str, int]], member_id: str = "", generation: int = -1
) -> OffsetCommitRequest:
    partitions = [
        OffsetCommitRequestPartition(partition_index=index, committed_offset=offset, committed_metadata=metadata)
        for index, (offset, metadata, _) in enumerate(offsets)
    ]
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation,
        member_id=member_id,
        topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)],
    )


class GroupStep(Step):
    def check_unknown(self, client: RawClient, *members: str) -> None:
        found = describe(client, self.id)
        assert found.group_state in ("Empty", "Dead"), found
        assert found.members == []
        for member_id in members:
            assert heartbeat(client, self.id, 1, member_id) == ErrorCode.UNKNOWN_MEMBER_ID

    def check_stable(self, client: RawClient, generation: int, *members: str) -> None:
        found = describe(client, self.id)
        assert found.group_state == "Stable", found
        assert {each.member_id: each.member_assignment for each in found.members} == {
            member_id: assignment_of(member_id) for member_id in members
        }
        for member_id in members:
            assert heartbeat(client, self.id, generation, member_id) == 0

    def is_stable(self, client: RawClient) -> bool:
        return bool(describe(client, self.id).members)


class FirstJoin(GroupStep):
    name = "first-join"

    def prepare(self, client: RawClient) -> Request:
        self.member_id = new_member_id(client, self.id)
        return ApiKey.JOIN_GROUP, 9, join_request(self.id, self.member_id)

    def is_done(self, client: RawClient) -> bool:
        self.check_unknown(client, self.member_id)
        return self.answer is not None

    def go_on(self, client: RawClient, done: bool) -> None:
        member_id, generation = stable_group(client, self.id)
        self.check_stable(client, generation, member_id)


class JoinAgain(GroupStep):
    """The leader of a stable group joins again: a new generation begins, and is not kept before the sync."""

    name = "join-again"

    def prepare(self, client: RawClient) -> Request:
        self.member_id, self.generation = stable_group(client, self.id)
        return ApiKey.JOIN_GROUP, 9, join_request(self.id, self.member_id)

    def is_done(self, client: RawClient) -> bool:
        self.check_stable(client, self.generation, self.member_id)
        return self.answer is not None

    def go_on(self, client: RawClient, done: bool) -> None:
        generation = join(client, self.id, self.member_id)
        assert generation > self.generation
        ask_well(client, ApiKey.SYNC_GROUP, 5, sync_request(self.id, generation, self.member_id, self.member_id))
        self.check_stable(client, generation, self.member_id)


class Sync(GroupStep):
    """The leader gives two members their assignments."""

    name = "sync"

    def prepare(self, client: RawClient) -> Request:
        self.leader = new_member_id(client, self.id)
        join(client, self.id, self.leader)
        self.follower = new_member_id(client, self.id)
        client.send(ApiKey.JOIN_GROUP, 9, join_request(self.id, self.follower))
        # The follower's join is answered when the leader has joined again; both share this connection's order.
        host, port = client.socket.getpeername()
        with RawClient(host, port) as other:
            answer = ask_well(other, ApiKey.JOIN_GROUP, 9, join_request(self.id, self.leader))
        assert {each.member_id for each in answer.members} == {self.leader, self.follower}
        self.generation = answer.generation_id
        client.recv_frame()
        return ApiKey.SYNC_GROUP, 5, sync_request(self.id, self.generation, self.leader, self.leader, self.follower)

    def is_done(self, client: RawClient) -> bool:
        if self.is_stable(client):
            self.check_stable(client, self.generation, self.leader, self.follower)
            return True
        self.check_unknown(client, self.leader, self.follower)
        return False

    def go_on(self, client: RawClient, done: bool) -> None:
        if done:
            answer = ask_well(client, ApiKey.SYNC_GROUP, 5, sync_request(self.id, self.generation, self.follower))
            assert answer.assignment == assignment_of(self.follower)
        else:
            stable_group(client, self.id)


class Commit(GroupStep):
    """Of a member: eight partitions in one request."""

    name = "commit"

    def prepare(self, client: RawClient) -> Request:
        self.member_id, self.generation = stable_group(client, self.id)
        ask_well(client, ApiKey.OFFSET_COMMIT, 9, commit_request(self.id, OLD, self.member_id, self.generation))
        return ApiKey.OFFSET_COMMIT, 9, commit_request(self.id, NEW, self.member_id, self.generation)

    def is_done(self, client: RawClient) -> bool:
        found = committed_offsets(client, self.id, TOPIC, PARTITIONS)
        assert found in (OLD, NEW), f"{self}: {found}"
        self.check_stable(client, self.generation, self.member_id)
        return found == NEW

    def go_on(self, client: RawClient, done: bool) -> None:
        ask_well(client, ApiKey.OFFSET_COMMIT, 9, commit_request(self.id, NEW, self.member_id, self.generation))
        assert committed_offsets(client, self.id, TOPIC, PARTITIONS) == NEW


class CommitAlone(GroupStep):
    """Of a consumer that is no member of its group: the first commit makes the group."""

    name = "commit-alone"

    def prepare(self, client: RawClient) -> Request:
        return ApiKey.OFFSET_COMMIT, 9, commit_request(self.id, NEW)

    def is_done(self, client: RawClient) -> bool:
        found = committed_offsets(client, self.id, TOPIC, PARTITIONS)
        assert found in (NOTHING, NEW), f"{self}: {found}"
        assert describe(client, self.id).group_state == ("Empty" if found == NEW else "Dead")
        return found == NEW


class Leave(GroupStep):
    name = "leave"

    def prepare(self, client: RawClient) -> Request:
        self.member_id, self.generation = stable_group(client, self.id)
        request = LeaveGroupRequest(group_id=self.id, members=[MemberIdentity(member_id=self.member_id)])
        return ApiKey.LEAVE_GROUP, 5, request

    def is_done(self, client: RawClient) -> bool:
        if self.is_stable(client):
            self.check_stable(client, self.generation, self.member_id)
            return False
        self.check_unknown(client, self.member_id)
        return True


class DeleteGroup(GroupStep):
    name = "delete-group"

    def prepare(self, client: RawClient) -> Request:
        ask_well(client, ApiKey.OFFSET_COMMIT, 9, commit_request(self.id, OLD))
        return ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=[self.id])

    def is_done(self, client: RawClient) -> bool:
        found = committed_offsets(client, self.id, TOPIC, PARTITIONS)
        assert found in (NOTHING, OLD), f"{self}: {found}"
        assert describe(client, self.id).group_state == ("Dead" if found == NOTHING else "Empty")
        return found == NOTHING


class DeleteOffsets(GroupStep):
    name = "delete-offsets"

    def prepare(self, client: RawClient) -> Request:
        ask_well(client, ApiKey.OFFSET_COMMIT, 9, commit_request(self.id, OLD))
        partitions = [OffsetDeleteRequestPartition(partition_index=index) for index in range(PARTITIONS)]
        request = OffsetDeleteRequest(
            group_id=self.id, topics=[OffsetDeleteRequestTopic(name=TOPIC, partitions=partitions)]
        )
        return ApiKey.OFFSET_DELETE, 0, request

    def is_done(self, client: RawClient) -> bool:
        found = committed_offsets(client, self.id, TOPIC, PARTITIONS)
        assert found in (NOTHING, OLD), f"{self}: {found}"
        return found == NOTHING


GROUP_STEPS: tuple[type[Step], ...] = (
    FirstJoin,
    JoinAgain,
    Sync,
    Commit,
    CommitAlone,
    Leave,
    DeleteGroup,
    DeleteOffsets,
)
