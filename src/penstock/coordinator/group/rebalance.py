"""How a group gets from one generation to the next, and the clocks that drive it.

`prepare` opens the join phase; it ends (`complete_join`) when every member has joined or the rebalance time-out has
passed. A group that was empty waits a little first, and a little more while members keep coming
(`group.initial.rebalance.delay.ms`), so that ten consumers that start together make one generation and not ten.

Three timers belong to a group: `join` (the join phase), `sync` (members that never ask for their assignment) and one
session per member. Everything returns the records it needs in the log; a generation is not among them until its
leader's assignment arrives, unless it is the generation without members.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

from penstock.base.errors import ErrorCode
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.member import Member
from penstock.coordinator.group.settings import GroupSettings
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.records.group_records import group_metadata_record
from penstock.coordinator.runtime.shard import CoordinatorRecord, Result, ShardContext
from penstock.coordinator.runtime.timeline import TimelineDict
from penstock.protocol.messages.join_group import JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

log = logging.getLogger(__name__)

Records = list[CoordinatorRecord]
TimerOperation = Callable[[Any], Result[Any]]


def join_key(group_id: str) -> str:
    return f"join:{group_id}"


def sync_key(group_id: str) -> str:
    return f"sync:{group_id}"


def session_key(group_id: str, member_id: str) -> str:
    # Both ids are free text, hence the length.
    return f"session:{len(group_id)}:{group_id}:{member_id}"


class Rebalance:
    """The rules, over the groups of one shard."""

    def __init__(self, context: ShardContext, settings: GroupSettings, groups: TimelineDict[str, ClassicGroup]) -> None:
        self._timers = context.timers
        self._clock = context.clock
        self._settings = settings
        self._groups = groups

    def _schedule(self, key: str, delay_ms: int, operation: TimerOperation) -> None:
        # Not tried again by the runtime: what a timer does to the members is done when its record is refused.
        self._timers.schedule(key, delay_ms, operation, retry=False)

    # -- The join phase ----------------------------------------------------------------------------------------------

    def prepare_or_complete(self, group: ClassicGroup, reason: str) -> Records:
        """Something about the members changed: start a rebalance, or see whether the one under way can end."""
        return self.prepare(group, reason) if group.can_rebalance else self.maybe_complete_join(group)

    def prepare(self, group: ClassicGroup, reason: str) -> Records:
        if group.state is GroupState.COMPLETING_REBALANCE:
            self.reset_assignments(group, ErrorCode.REBALANCE_IN_PROGRESS)
        group.pending_sync.clear()
        self._timers.cancel(sync_key(group.group_id))
        is_initial = group.is_empty
        group.transition_to(GroupState.PREPARING_REBALANCE, self._clock.time_ms())
        log.info(
            "preparing to rebalance a group",
            extra={"group": group.group_id, "generation": group.generation, "reason": reason},
        )
        if is_initial:
            delay_ms = self._settings.initial_rebalance_delay_ms
            self._schedule_initial(group, delay_ms, max(group.rebalance_timeout_ms - delay_ms, 0))
            return []
        if group.has_all_members_joined:
            return self.complete_join(group)
        self._schedule_completion(group)
        return []

    def maybe_complete_join(self, group: ClassicGroup) -> Records:
        """End the join phase when nobody is missing. The initial delay is waited out even then."""
        if (
            group.state is GroupState.PREPARING_REBALANCE
            and group.previous_state is not GroupState.EMPTY
            and group.has_all_members_joined
        ):
            return self.complete_join(group)
        return []

    def complete_join(self, group: ClassicGroup) -> Records:
        """Form the next generation of those who have joined. Static members stay although they have not."""
        self._timers.cancel(join_key(group.group_id))
        self._remove_absent(group)
        if not group.elect_joined_leader() and group.members:
            # Only static members are left and none has come: wait for their sessions to end, or for one of them.
            self._schedule_completion(group)
            return []
        group.start_generation(self._clock.time_ms())
        if group.is_empty:
            log.info("a group is empty now", extra={"group": group.group_id, "generation": group.generation})
            return [group_metadata_record(group.group_id, group.to_metadata({}))]
        log.info(
            "a group has a new generation",
            extra={"group": group.group_id, "generation": group.generation, "members": len(group.members)},
        )
        for member in group.members.values():
            group.answer_join(member, generation_response(group, member))
            member.is_new = False
            group.pending_sync.add(member.member_id)
            self.touch(group, member)
        generation = group.generation
        self._schedule(
            sync_key(group.group_id),
            group.rebalance_timeout_ms,
            lambda _shard: Result(self._expire_sync(group.group_id, generation), None),
        )
        return []

    def _remove_absent(self, group: ClassicGroup) -> None:
        absent = [m for m in group.members.values() if m.awaiting_join is None and not m.is_static]
        for member in absent:
            group.remove(member.member_id)
            self.end_session(member)
        if absent:
            log.info(
                "members did not join in time and are removed",
                extra={"group": group.group_id, "members": [member.member_id for member in absent]},
            )

    def _schedule_completion(self, group: ClassicGroup) -> None:
        group_id = group.group_id
        self._schedule(
            join_key(group_id), group.rebalance_timeout_ms, lambda _shard: Result(self._join_timed_out(group_id), None)
        )

    def _join_timed_out(self, group_id: str) -> Records:
        group = self._groups.get(group_id)
        if group is None or group.state is not GroupState.PREPARING_REBALANCE:
            return []
        return self.complete_join(group)

    # -- The initial delay -------------------------------------------------------------------------------------------

    def _schedule_initial(self, group: ClassicGroup, delay_ms: int, remaining_ms: int) -> None:
        group_id = group.group_id
        self._schedule(
            join_key(group_id),
            delay_ms,
            lambda _shard: Result(self._initial_delay_passed(group_id, delay_ms, remaining_ms), None),
        )

    def _initial_delay_passed(self, group_id: str, delay_ms: int, remaining_ms: int) -> Records:
        group = self._groups.get(group_id)
        if group is None or group.state is not GroupState.PREPARING_REBALANCE:
            return []
        if group.new_member_added and remaining_ms:
            group.new_member_added = False
            next_delay_ms = min(self._settings.initial_rebalance_delay_ms, remaining_ms)
            self._schedule_initial(group, next_delay_ms, max(remaining_ms - delay_ms, 0))
            return []
        return self.complete_join(group)

    # -- The sync phase ----------------------------------------------------------------------------------------------

    def reset_assignments(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The generation is given up: who waits for its assignment gets the error."""
        for member in group.members.values():
            member.assignment = b""
        self.propagate_assignments(group, code)

    def propagate_assignments(self, group: ClassicGroup, code: ErrorCode) -> None:
        for member in group.members.values():
            if group.answer_sync(member, sync_response(group, member, code)):
                # Sessions do not end while a member is parked, so their time begins now.
                self.touch(group, member)

    def synced(self, group: ClassicGroup, member: Member) -> None:
        """A member has asked for its assignment."""
        group.pending_sync.discard(member.member_id)
        if not group.pending_sync:
            self._timers.cancel(sync_key(group.group_id))

    def _expire_sync(self, group_id: str, generation: int) -> Records:
        group = self._groups.get(group_id)
        if group is None or group.generation != generation or not group.pending_sync:
            return []
        if group.state not in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE):
            return []
        late = sorted(group.pending_sync)
        for member_id in late:
            self.drop_member(group, group.members[member_id])
        return self.prepare(group, f"removing {', '.join(late)}, who did not ask for an assignment in time")

    # -- Sessions ----------------------------------------------------------------------------------------------------

    def touch(self, group: ClassicGroup, member: Member, timeout_ms: int | None = None) -> None:
        """The member is alive: its session ends this much later, its own session time-out unless told."""
        if member.expire_session is None:
            group_id, member_id = group.group_id, member.member_id
            member.session_key = session_key(group_id, member_id)
            member.expire_session = lambda _shard: Result(self._expire_session(group_id, member_id), None)
        self._schedule(
            member.session_key, member.session_timeout_ms if timeout_ms is None else timeout_ms, member.expire_session
        )

    def end_session(self, member: Member) -> None:
        self._timers.cancel(member.session_key)

    def expect_join(self, group: ClassicGroup, member_id: str, timeout_ms: int) -> None:
        """An id was handed out; forget it unless somebody joins with it."""
        group_id = group.group_id
        group.pending_join.add(member_id)
        self._schedule(
            session_key(group_id, member_id),
            timeout_ms,
            lambda _shard: Result(self._expire_session(group_id, member_id), None),
        )

    def withdraw(self, group: ClassicGroup, member_id: str) -> None:
        """Forget an id that was handed out."""
        group.remove(member_id)
        self._timers.cancel(session_key(group.group_id, member_id))

    def _expire_session(self, group_id: str, member_id: str) -> Records:
        group = self._groups.get(group_id)
        if group is None:
            return []
        if member_id in group.pending_join:
            group.remove(member_id)
            return self._complete_if_all_joined(group)
        member = group.members.get(member_id)
        if member is None or member.needs_no_heartbeat:
            return []
        log.info("a member's session has ended", extra={"group": group_id, "member": member_id})
        self.drop_member(group, member)
        if group.state in (GroupState.STABLE, GroupState.COMPLETING_REBALANCE):
            return self.prepare(group, f"the session of {member_id} has ended")
        return self._complete_if_all_joined(group)

    def _complete_if_all_joined(self, group: ClassicGroup) -> Records:
        if group.state is GroupState.PREPARING_REBALANCE and group.has_all_members_joined:
            return self.complete_join(group)
        return []

    def drop_member(self, group: ClassicGroup, member: Member) -> None:
        """Remove a member. If it waits after all, it is told to join as a new one."""
        self.end_session(member)
        group.answer_join(member, JoinGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        group.remove(member.member_id)

    def discard(self, group: ClassicGroup, code: ErrorCode) -> None:
        """The group is gone: nobody may wait for it any longer, and no timer may wake it."""
        group.answer_all(code)
        if self._groups.get(group.group_id) in (None, group):
            # Otherwise another group of the same name lives already, and these are its timers.
            self._timers.cancel(join_key(group.group_id))
            self._timers.cancel(sync_key(group.group_id))
        for member in group.members.values():
            self.end_session(member)
        for member_id in sorted(group.pending_join):
            self.withdraw(group, member_id)
        group.transition_to(GroupState.DEAD, self._clock.time_ms())


def generation_response(group: ClassicGroup, member: Member, *, skip_assignment: bool = False) -> JoinGroupResponse:
    """The current generation as a member sees it; the leader sees everybody."""
    is_leader = group.leader == member.member_id
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=group.leader or "",
        skip_assignment=skip_assignment,
        member_id=member.member_id,
        members=group.joined_members() if is_leader else [],
    )


def sync_response(group: ClassicGroup, member: Member, code: ErrorCode = ErrorCode.NONE) -> SyncGroupResponse:
    if code is not ErrorCode.NONE:
        return SyncGroupResponse(error_code=code)
    return SyncGroupResponse(
        protocol_type=group.protocol_type, protocol_name=group.protocol, assignment=member.assignment
    )
