"""The group coordinator as handlers see it: request messages in, response messages out, at once or later.

It is the shell around the shards: it finds the shard of a group, looks topics up, waits, and turns the errors of the
runtime into the answer of each API. `offset_requests.py` does the same for offsets.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Tasks
from penstock.coordinator.group.answers import Answer, Caller
from penstock.coordinator.group.joining import check_join
from penstock.coordinator.group.later import MaybeLater, answer_of, ignore_outcome, when_done
from penstock.coordinator.group.listing import describe_missing
from penstock.coordinator.group.offset_requests import OffsetRequests
from penstock.coordinator.group.settings import GroupSettings
from penstock.coordinator.group.shard import GroupShard
from penstock.coordinator.runtime.runtime import CoordinatorRuntime
from penstock.coordinator.runtime.shard import ProducerIdentity, Result, ShardContext
from penstock.metadata.image import ClusterImage
from penstock.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsResponse
from penstock.protocol.messages.describe_groups import DescribedGroup
from penstock.protocol.messages.heartbeat import HeartbeatRequest
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse, MemberIdentity
from penstock.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

A = TypeVar("A")

TOPIC_DELETION_GROUPS_MAX = 500
"""Groups whose offsets are looked at in one turn of the loop after topics were deleted."""

_MEMBER_ERRORS_FROM = 3
_NOT_FOUND_FROM = 6
_PROTOCOL_REQUIRED_FROM = 5


class GroupCoordinator:
    """`make_shard` is for the runtime, which is then handed over with `attach` before the first request."""

    def __init__(
        self,
        *,
        settings: GroupSettings,
        image: Callable[[], ClusterImage],
        new_uuid: Callable[[], str],
        tasks: Tasks,
    ) -> None:
        self._settings = settings
        self._new_uuid = new_uuid
        self._tasks = tasks
        self._runtime: CoordinatorRuntime[GroupShard] | None = None
        self.offsets = OffsetRequests(self, image)

    def make_shard(self, context: ShardContext) -> GroupShard:
        return GroupShard(context, self._settings, lambda prefix: f"{prefix}-{self._new_uuid()}")

    def attach(self, runtime: CoordinatorRuntime[GroupShard]) -> None:
        self._runtime = runtime

    @property
    def runtime(self) -> CoordinatorRuntime[GroupShard]:
        assert self._runtime is not None
        return self._runtime

    def partition_for(self, group_id: str) -> int:
        """The partition of `__consumer_offsets` that a group belongs to."""
        return self.runtime.partition_for(group_id)

    def write(
        self,
        partition: int,
        name: str,
        operation: Callable[[GroupShard], Result[A]],
        *,
        producer: ProducerIdentity | None = None,
    ) -> asyncio.Future[A]:
        """Run an operation on a shard; with a producer, as part of its transaction."""
        return self.runtime.write(partition, name, operation, self._settings.commit_timeout_ms, producer=producer)

    def complete_transaction(
        self,
        partition: int,
        name: str,
        producer: ProducerIdentity,
        *,
        committed: bool,
        coordinator_epoch: int,
        timeout_ms: int | None = None,
    ) -> asyncio.Future[None]:
        """Write a transaction's marker: its offsets count from then on, or are dropped."""
        return self.runtime.complete_transaction(
            partition,
            name,
            producer,
            committed=committed,
            coordinator_epoch=coordinator_epoch,
            timeout_ms=self._settings.commit_timeout_ms if timeout_ms is None else timeout_ms,
        )

    # -- Members -----------------------------------------------------------------------------------------------------

    async def join_group(self, caller: Caller, request: JoinGroupRequest) -> JoinGroupResponse:
        try:
            check_join(request, self._settings)
        except KafkaError as error:
            return JoinGroupResponse(error_code=error.code, member_id=request.member_id)
        try:
            return await self._parked("join-group", request.group_id, lambda shard: shard.join_group(caller, request))
        except KafkaError as error:
            return JoinGroupResponse(error_code=error.code, member_id=request.member_id)

    async def sync_group(self, request: SyncGroupRequest, api_version: int) -> SyncGroupResponse:
        if not request.group_id:
            return SyncGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        if api_version >= _PROTOCOL_REQUIRED_FROM and None in (request.protocol_type, request.protocol_name):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        try:
            return await self._parked("sync-group", request.group_id, lambda shard: shard.sync_group(request))
        except KafkaError as error:
            return SyncGroupResponse(error_code=error.code)

    async def _parked(self, name: str, group_id: str, operation: Callable[[GroupShard], Result[Answer[A]]]) -> A:
        """Run an operation that answers when the group is ready.

        A member that is parked is answered by its group, come what may of the writes around it. An answer that is
        there at once and speaks of something that was just written is held back until that is committed.
        """
        parked: list[Answer[A]] = []

        def run(shard: GroupShard) -> Result[Answer[A]]:
            result = operation(shard)
            if not result.records or not result.response.is_complete:
                parked.append(result.response)
            return result

        future = self.write(self.partition_for(group_id), name, run)
        if parked:
            ignore_outcome(future)
            return await answer_of(parked[0], self._tasks)
        return await answer_of(await future, self._tasks)

    def heartbeat(self, request: HeartbeatRequest) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        try:
            return self.runtime.read(
                self.partition_for(request.group_id),
                lambda shard: shard.heartbeat(
                    request.group_id, request.member_id, request.group_instance_id, request.generation_id
                ),
            )
        except KafkaError as error:
            # Nobody can say yet whether the member exists; it is not thrown out for that.
            return ErrorCode.NONE if error.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS else error.code

    def leave_group(self, request: LeaveGroupRequest, api_version: int) -> MaybeLater[LeaveGroupResponse]:
        if not request.group_id:
            return LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID)
        is_batch = api_version >= _MEMBER_ERRORS_FROM
        identities = request.members if is_batch else [MemberIdentity(member_id=request.member_id)]
        future = self.write(
            self.partition_for(request.group_id),
            "leave-group",
            lambda shard: shard.leave_group(request.group_id, identities),
        )
        return when_done(
            future, _as_it_is if is_batch else _of_one_member, lambda code: LeaveGroupResponse(error_code=code)
        )

    async def force_rebalance(self, group_id: str, reason: str) -> None:
        """Let the members of a group join again. KafkaError: GROUP_ID_NOT_FOUND when it has none."""
        partition = self.partition_for(group_id)
        await self.write(partition, "force-rebalance", lambda shard: shard.force_rebalance(group_id, reason))

    # -- Groups ------------------------------------------------------------------------------------------------------

    def list_groups(self, request: ListGroupsRequest) -> ListGroupsResponse:
        try:
            lists = self.runtime.read_all(lambda shard: shard.list_groups(request.states_filter, request.types_filter))
        except KafkaError as error:
            return ListGroupsResponse(error_code=error.code)
        return ListGroupsResponse(groups=[group for groups in lists for group in groups])

    def describe_groups(self, group_ids: Iterable[str], api_version: int) -> list[DescribedGroup]:
        return [self._describe(group_id, api_version) for group_id in group_ids]

    def _describe(self, group_id: str, api_version: int) -> DescribedGroup:
        try:
            found = self.runtime.read(self.partition_for(group_id), lambda shard: shard.describe_group(group_id))
        except KafkaError as error:
            return DescribedGroup(group_id=group_id, error_code=error.code)
        if found is not None:
            return found
        missing = describe_missing(group_id)
        if api_version >= _NOT_FOUND_FROM:
            missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
            missing.error_message = f"Group {group_id} not found."
        return missing

    async def delete_groups(self, group_ids: Iterable[str]) -> DeleteGroupsResponse:
        by_partition: dict[int, list[str]] = {}
        for group_id in dict.fromkeys(group_ids):
            by_partition.setdefault(self.partition_for(group_id), []).append(group_id)
        # All are started before the first is waited for.
        futures = {
            partition: self.write(partition, "delete-groups", _delete(names))
            for partition, names in by_partition.items()
        }
        results: list[DeletableGroupResult] = []
        for partition, names in by_partition.items():
            try:
                results += await futures[partition]
            except KafkaError as error:
                results += [DeletableGroupResult(group_id=name, error_code=error.code) for name in names]
        return DeleteGroupsResponse(results=results)

    async def on_topics_deleted(self, topics: Iterable[str]) -> None:
        """Drop the offsets that groups hold in topics that are gone."""
        names = frozenset(topics)
        for partition in self.runtime.active_partitions():
            try:
                group_ids = self.runtime.read(partition, lambda shard: shard.group_ids_with_offsets())
                for start in range(0, len(group_ids), TOPIC_DELETION_GROUPS_MAX):
                    some = group_ids[start : start + TOPIC_DELETION_GROUPS_MAX]
                    await self.write(partition, "forget-topics", partial(_forget, names, some))
                    await asyncio.sleep(0)
            except KafkaError:
                # Not led here any more, or not written in time: what is left of it expires.
                continue


def _forget(topics: frozenset[str], group_ids: list[str], shard: GroupShard) -> Result[None]:
    return shard.forget_topics(topics, group_ids)


def _delete(group_ids: list[str]) -> Callable[[GroupShard], Result[list[DeletableGroupResult]]]:
    return lambda shard: shard.delete_groups(group_ids)


def _as_it_is(response: LeaveGroupResponse) -> LeaveGroupResponse:
    return response


def _of_one_member(response: LeaveGroupResponse) -> LeaveGroupResponse:
    """Older versions know one member, whose error is the answer's."""
    return LeaveGroupResponse(error_code=response.members[0].error_code)
