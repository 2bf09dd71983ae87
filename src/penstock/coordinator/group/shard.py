"""The groups of one partition of `__consumer_offsets`, as a state machine.

Hard state is what the log says: `stored` (the last generation written of each group), `offsets`, and which groups exist
at all (`groups`). It changes in `replay` alone and knows its committed and its newest view. The `ClassicGroup` objects
inside `groups` are soft: members, sessions and parked requests, changed by the operations themselves. Where a soft
change depends on a record, the operation's `on_complete` finishes it when the record is committed and undoes it when
the record was refused; see `joining.py` and `syncing.py`. When the partition is loaded, soft state is built from hard
state.

Operations return a `Result`; JoinGroup and SyncGroup answer with an `Answer` that may be complete much later.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group import committing, expiry, fetching, invariants, listing, membership
from penstock.coordinator.group.answers import Answer, Caller
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.committing import NO_RETENTION, Committer, OffsetToCommit, PartitionResult
from penstock.coordinator.group.fetching import FetchedTopic, TopicToFetch
from penstock.coordinator.group.joining import UNKNOWN_MEMBER, Joining, JoinResult
from penstock.coordinator.group.offset_store import OffsetStore
from penstock.coordinator.group.rebalance import Rebalance
from penstock.coordinator.group.settings import GroupSettings
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.group.syncing import Syncing, SyncResult
from penstock.coordinator.records.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    decode_group_key,
    decode_group_metadata_value,
    decode_offset_commit_value,
    group_metadata_record,
)
from penstock.coordinator.runtime.shard import CoordinatorRecord, Result, ShardContext
from penstock.coordinator.runtime.timeline import TimelineDict
from penstock.protocol.messages.delete_groups import DeletableGroupResult
from penstock.protocol.messages.describe_groups import DescribedGroup
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity
from penstock.protocol.messages.list_groups import ListedGroup
from penstock.protocol.messages.sync_group import SyncGroupRequest

log = logging.getLogger(__name__)

EXPIRY_KEY = "expiry"
_NEXT_TURN_MS = 1


class GroupShard:
    def __init__(self, context: ShardContext, settings: GroupSettings, new_member_id: Callable[[str], str]) -> None:
        self._clock = context.clock
        self.timers = context.timers
        self._settings = settings
        self.groups: TimelineDict[str, ClassicGroup] = TimelineDict(context.timeline)
        self.stored: TimelineDict[str, GroupMetadataValue] = TimelineDict(context.timeline)
        self.offsets = OffsetStore(context.timeline)
        self._rebalance = Rebalance(context, settings, self.groups)
        self._joining = Joining(self._rebalance, settings, self.stored, new_member_id)
        self._syncing = Syncing(self._rebalance, context.clock)
        self._newborn: dict[str, ClassicGroup] = {}
        """Groups whose first record is about to be replayed."""
        self._to_expire: list[str] = []

    # -- Members -----------------------------------------------------------------------------------------------------

    def join_group(self, caller: Caller, request: JoinGroupRequest) -> JoinResult:
        group = self.groups.get(request.group_id)
        if group is not None:
            return self._joining.join(group, caller, request)
        if request.member_id != UNKNOWN_MEMBER:
            refusal = JoinGroupResponse(member_id=request.member_id, error_code=ErrorCode.UNKNOWN_MEMBER_ID)
            return Result([], Answer.ready(refusal))
        group = ClassicGroup(request.group_id, self._clock.time_ms())
        empty = group_metadata_record(group.group_id, group.to_metadata({}))
        result = self._joining.join(group, caller, request)
        if not group.members and not group.pending_join:
            return result
        return self._create(group, empty, result)

    def _create(self, group: ClassicGroup, empty: CoordinatorRecord, joined: JoinResult) -> JoinResult:
        """Make a group exist for its first member."""
        self._newborn[group.group_id] = group

        def created(error: KafkaError | None) -> None:
            self._newborn.pop(group.group_id, None)
            # Late is not refused: then the group is in the log, and stays.
            if error is not None and self.groups.get(group.group_id) is not group:
                self._rebalance.discard(group, error.code)

        return Result([empty, *joined.records], joined.response, on_complete=created)

    def sync_group(self, request: SyncGroupRequest) -> SyncResult:
        return self._syncing.sync(self.groups.get(request.group_id), request)

    def heartbeat(self, group_id: str, member_id: str, group_instance_id: str | None, generation: int) -> ErrorCode:
        """Not an operation: it writes nothing, and what it shows is soft."""
        return membership.heartbeat(
            self._rebalance, self.groups.get(group_id), member_id, group_instance_id, generation
        )

    def leave_group(self, group_id: str, identities: list[MemberIdentity]) -> Result[LeaveGroupResponse]:
        return membership.leave(self._rebalance, self.groups.get(group_id), identities)

    def force_rebalance(self, group_id: str, reason: str) -> Result[None]:
        """Start a rebalance that no member asked for, unless one has begun. KafkaError: the group has no members."""
        group = self.groups.get(group_id)
        if group is None or not group.members:
            raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"the group {group_id} has no members")
        return Result(self._rebalance.prepare(group, reason) if group.can_rebalance else [], None)

    # -- Offsets -----------------------------------------------------------------------------------------------------

    def commit_offsets(
        self,
        group_id: str,
        committer: Committer,
        offsets: Iterable[OffsetToCommit],
        *,
        api_version: int,
        retention_ms: int = NO_RETENTION,
    ) -> Result[list[PartitionResult]]:
        group = self.groups.get(group_id)
        committing.check_commit(group, group_id, committer, api_version)
        if group is not None and group.state in (GroupState.STABLE, GroupState.PREPARING_REBALANCE):
            member = group.members.get(committer.member_id)
            if member is not None:
                self._rebalance.touch(group, member)
        return self._commit(group_id, offsets, retention_ms)

    def commit_transactional_offsets(
        self, group_id: str, committer: Committer, offsets: Iterable[OffsetToCommit]
    ) -> Result[list[PartitionResult]]:
        """To be written in the name of the producer; its marker decides whether they count."""
        committing.check_transactional_commit(self.groups.get(group_id), group_id, committer)
        return self._commit(group_id, offsets, NO_RETENTION)

    def _commit(
        self, group_id: str, offsets: Iterable[OffsetToCommit], retention_ms: int
    ) -> Result[list[PartitionResult]]:
        return committing.commit(
            group_id,
            offsets,
            now_ms=self._clock.time_ms(),
            retention_ms=retention_ms,
            metadata_max_size=self._settings.offset_metadata_max_size,
        )

    def fetch_offsets(self, group_id: str, topics: Iterable[TopicToFetch] | None) -> list[FetchedTopic]:
        """A query."""
        return fetching.fetch(self.offsets, group_id, topics, require_stable=False)

    def fetch_stable_offsets(self, group_id: str, topics: Iterable[TopicToFetch] | None) -> Result[list[FetchedTopic]]:
        return Result([], fetching.fetch(self.offsets, group_id, topics, require_stable=True))

    def delete_offsets(self, group_id: str, partitions: Iterable[tuple[str, int]]) -> Result[list[PartitionResult]]:
        group = committing.check_offset_delete(self.groups.get(group_id), group_id)
        return committing.delete(self.offsets, group, partitions)

    def forget_topics(self, topics: frozenset[str], group_ids: list[str]) -> Result[None]:
        """Topics were deleted: so are the offsets that some groups hold in them."""
        records: list[CoordinatorRecord] = []
        for group_id in group_ids:
            records += committing.delete_all(self.offsets, group_id, topics)
        return Result(records, None, is_atomic=False)

    def group_ids_with_offsets(self) -> list[str]:
        return list(self.offsets.group_ids())

    def _expire(self) -> Result[None]:
        """Look at some groups; the timer comes back soon for the others, so that no turn takes long."""
        if not self._to_expire:
            self._to_expire = list(self.groups)
        turn = self._to_expire[-expiry.GROUPS_PER_TURN_MAX :]
        del self._to_expire[-expiry.GROUPS_PER_TURN_MAX :]
        now_ms, retention_ms = self._clock.time_ms(), self._settings.offsets_retention_ms
        records: list[CoordinatorRecord] = []
        for group_id in turn:
            group = self.groups.get(group_id)
            if group is not None:
                records += expiry.expire(self.offsets, group, now_ms, retention_ms)
        self._schedule_expiry(_NEXT_TURN_MS if self._to_expire else self._settings.retention_check_interval_ms)
        if records:
            log.info("offsets or groups have expired", extra={"tombstones": len(records)})
        return Result(records, None, is_atomic=False)

    def _schedule_expiry(self, delay_ms: int) -> None:
        self.timers.schedule(EXPIRY_KEY, delay_ms, lambda shard: shard._expire(), retry=False)

    # -- Groups ------------------------------------------------------------------------------------------------------

    def list_groups(self, states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
        """A query."""
        return listing.list_groups(self.groups.values_committed(), states, types)

    def describe_group(self, group_id: str) -> DescribedGroup | None:
        """A query; None when there is no such group."""
        group = self.groups.get_committed(group_id)
        return None if group is None else listing.describe(group)

    def delete_groups(self, group_ids: Iterable[str]) -> Result[list[DeletableGroupResult]]:
        records: list[CoordinatorRecord] = []
        results: list[DeletableGroupResult] = []
        for group_id in group_ids:
            group = self.groups.get(group_id)
            if group is None:
                code = ErrorCode.GROUP_ID_NOT_FOUND
            elif not group.is_empty:
                code = ErrorCode.NON_EMPTY_GROUP
            else:
                code = ErrorCode.NONE
                records += committing.delete_all(self.offsets, group_id)
                records.append(group_metadata_record(group_id, None))
            results.append(DeletableGroupResult(group_id=group_id, error_code=code))
        return Result(records, results)

    # -- Replay ------------------------------------------------------------------------------------------------------

    def replay(self, offset: int, producer_id: int, producer_epoch: int, key: bytes, value: bytes | None) -> None:
        decoded = decode_group_key(key)
        if isinstance(decoded, GroupMetadataKey):
            self._replay_group(decoded.group, None if value is None else decode_group_metadata_value(value))
            return
        commit = None if value is None else decode_offset_commit_value(value)
        if commit is not None:
            self._ensure_group(decoded.group)
        self.offsets.replay(offset, producer_id, decoded, commit)

    def _replay_group(self, group_id: str, value: GroupMetadataValue | None) -> None:
        if value is not None:
            self._ensure_group(group_id)
            self.stored.set(group_id, value)
            return
        self.stored.pop(group_id)
        self.groups.pop(group_id)
        if self.offsets.has_any(group_id):
            # A group without a generation is still one while it has offsets.
            self._ensure_group(group_id)

    def _ensure_group(self, group_id: str) -> None:
        if group_id not in self.groups:
            group = self._newborn.pop(group_id, None)
            self.groups.set(group_id, ClassicGroup(group_id, self._clock.time_ms()) if group is None else group)

    def replay_end_transaction(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        self.offsets.replay_end(producer_id, committed=committed)

    # -- Life --------------------------------------------------------------------------------------------------------

    def on_loaded(self) -> None:
        for group_id, stored in self.stored.items():
            group = self.groups[group_id]
            group.load(stored)
            for member in group.members.values():
                self._rebalance.touch(group, member)
            if len(group.members) > self._settings.max_size:
                self._rebalance.prepare(group, "the group is larger than group.max.size allows")
        self._schedule_expiry(self._settings.retention_check_interval_ms)

    def on_unloaded(self) -> None:
        for group in self.groups.values():
            self._rebalance.discard(group, ErrorCode.NOT_COORDINATOR)
        self._to_expire.clear()

    def committed(self, offset: int) -> None:
        """Whoever waits for a record is told by its result."""

    def rolled_back(self, offset: int) -> None:
        """As above."""

    def check_invariants(self) -> None:
        invariants.check(self)
