"""JoinGroup: who becomes a member, and when that means a rebalance.

A client without an id is given one and told to come back with it (MEMBER_ID_REQUIRED, KIP-394), so that a client which
gives up early leaves no member behind. A static member (KIP-345) takes the place of the one that held its instance id;
in a stable group, and when the choice of protocol stays the same, nobody else notices.

A group's first join writes an empty generation, which makes the group exist. If that cannot be written, the group never
was, and everybody who waits in it hears so. The replacement of a static member is taken back in the same case.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.answers import Answer, Caller
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.member import Member, Protocols, protocols_of
from penstock.coordinator.group.rebalance import Rebalance, generation_response
from penstock.coordinator.group.settings import GroupSettings
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.records.group_records import GroupMetadataValue, group_metadata_record
from penstock.coordinator.runtime.shard import Result
from penstock.coordinator.runtime.timeline import TimelineDict
from penstock.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from penstock.protocol.messages.sync_group import SyncGroupResponse

log = logging.getLogger(__name__)

JoinAnswer = Answer[JoinGroupResponse]
JoinResult = Result[JoinAnswer]

UNKNOWN_MEMBER = ""
_MEMBER_ID_REQUIRED_FROM = 4
_SKIP_ASSIGNMENT_FROM = 9


class _Join(NamedTuple):
    """One JoinGroup on its way through this module."""

    caller: Caller
    request: JoinGroupRequest
    protocols: Protocols
    rebalance_timeout_ms: int
    answer: JoinAnswer

    @property
    def reason(self) -> str:
        return self.request.reason or "not provided"


class Joining:
    def __init__(
        self,
        rebalance: Rebalance,
        settings: GroupSettings,
        stored: TimelineDict[str, GroupMetadataValue],
        new_member_id: Callable[[str], str],
    ) -> None:
        self._rebalance = rebalance
        self._settings = settings
        self._stored = stored
        self._new_member_id = new_member_id

    def join(self, group: ClassicGroup, caller: Caller, request: JoinGroupRequest) -> JoinResult:
        """A request for an existing group, or for one that is about to be (then the shard writes it)."""
        # Version 0 has no rebalance time-out of its own.
        timeout_ms = request.session_timeout_ms if caller.api_version == 0 else request.rebalance_timeout_ms
        join = _Join(caller, request, protocols_of(request.protocols), timeout_ms, Answer())
        if not self._has_room(group, request.member_id):
            return self._refuse_for_size(group, join)
        if not group.supports(request.protocol_type, join.protocols):
            return _refuse(join, ErrorCode.INCONSISTENT_GROUP_PROTOCOL, request.member_id)
        if request.member_id == UNKNOWN_MEMBER:
            return self._join_as_new(group, join)
        return self._join_as_known(group, join)

    # -- Who may come ------------------------------------------------------------------------------------------------

    def _has_room(self, group: ClassicGroup, member_id: str) -> bool:
        """Members count while they are members; during the join phase only those who have joined count, so that the
        last to come are the ones who have to go when `group.max.size` was lowered."""
        if group.state is GroupState.PREPARING_REBALANCE:
            member = group.members.get(member_id)
            is_waiting = member is not None and member.awaiting_join is not None
            return is_waiting or group.awaiting_join_count < self._settings.max_size
        if group.is_empty:
            return True
        return member_id in group.members or len(group.members) < self._settings.max_size

    def _refuse_for_size(self, group: ClassicGroup, join: _Join) -> JoinResult:
        member = group.members.get(join.request.member_id)
        if member is not None:
            self._rebalance.drop_member(group, member)
        else:
            group.remove(join.request.member_id)
        join.answer.complete(JoinGroupResponse(error_code=ErrorCode.GROUP_MAX_SIZE_REACHED))
        return Result(self._rebalance.maybe_complete_join(group), join.answer)

    def _join_as_new(self, group: ClassicGroup, join: _Join) -> JoinResult:
        instance_id = join.request.group_instance_id
        if instance_id is not None:
            member_id = self._new_member_id(instance_id)
            holder = group.static_members.get(instance_id)
            if holder is not None:
                return self._replace_static(group, join, group.members[holder], member_id)
            return self._add(group, join, member_id)
        member_id = self._new_member_id(join.caller.client_id)
        if join.caller.api_version < _MEMBER_ID_REQUIRED_FROM:
            return self._add(group, join, member_id)
        self._rebalance.expect_join(group, member_id, join.request.session_timeout_ms)
        return _refuse(join, ErrorCode.MEMBER_ID_REQUIRED, member_id)

    def _join_as_known(self, group: ClassicGroup, join: _Join) -> JoinResult:
        member_id, instance_id = join.request.member_id, join.request.group_instance_id
        if member_id in group.pending_join:
            if instance_id is not None:
                # An id that was handed out never belongs to a static member.
                return _refuse(join, ErrorCode.UNKNOWN_SERVER_ERROR, member_id)
            return self._add(group, join, member_id)
        try:
            member = group.check_member(member_id, instance_id)
        except KafkaError as error:
            return _refuse(join, error.code, member_id)
        return self._rejoin(group, join, member)

    # -- What it means -----------------------------------------------------------------------------------------------

    def _add(self, group: ClassicGroup, join: _Join, member_id: str) -> JoinResult:
        request = join.request
        member = Member(
            member_id=member_id,
            group_instance_id=request.group_instance_id,
            client_id=join.caller.client_id,
            client_host=join.caller.client_host,
            rebalance_timeout_ms=join.rebalance_timeout_ms,
            session_timeout_ms=request.session_timeout_ms,
            protocols=join.protocols,
        )
        member.is_new = True
        if group.state is GroupState.PREPARING_REBALANCE and group.previous_state is GroupState.EMPTY:
            group.new_member_added = True
        group.add(member, request.protocol_type, join.answer)
        # A new member does not know its id before it is answered, so it cannot keep a session alive: its join is
        # bounded instead, so that clients which give up and come again do not fill the group with ghosts.
        self._rebalance.touch(group, member, self._settings.new_member_join_timeout_ms)
        return Result(
            self._rebalance.prepare_or_complete(group, f"adding {member_id}; client's reason: {join.reason}"),
            join.answer,
        )

    def _rejoin(self, group: ClassicGroup, join: _Join, member: Member) -> JoinResult:
        changed = not member.matches(join.protocols)
        if group.state is GroupState.PREPARING_REBALANCE:
            return self._update(group, join, member, "joins during the rebalance")
        if group.state is GroupState.COMPLETING_REBALANCE:
            if changed:
                return self._update(group, join, member, "has changed its metadata")
            # It may have missed the answer to its first request.
            return _tell(group, join, member)
        if group.state is GroupState.STABLE:
            if group.leader == member.member_id:
                # So that a leader can ask for a rebalance when topics, and not members, have changed.
                return self._update(group, join, member, "leads and has joined again")
            if changed:
                return self._update(group, join, member, "has changed its metadata")
            return _tell(group, join, member)
        return _refuse(join, ErrorCode.UNKNOWN_MEMBER_ID, member.member_id)

    def _update(self, group: ClassicGroup, join: _Join, member: Member, what: str) -> JoinResult:
        group.update(member, join.protocols, join.rebalance_timeout_ms, join.request.session_timeout_ms)
        group.park_join(member, join.answer)
        reason = f"{member.member_id} {what}; client's reason: {join.reason}"
        return Result(self._rebalance.prepare_or_complete(group, reason), join.answer)

    # -- Static members ----------------------------------------------------------------------------------------------

    def _replace_static(self, group: ClassicGroup, join: _Join, old: Member, member_id: str) -> JoinResult:
        led_before = group.leader or ""
        # The old holder of the instance id hears that it is fenced, whatever it waits for.
        new = old.with_id(member_id)
        group.replace(old, new)
        self._rebalance.end_session(old)
        fence(group, old)
        self._rebalance.touch(group, new)
        group.update(new, join.protocols, join.rebalance_timeout_ms, join.request.session_timeout_ms)
        group.park_join(new, join.answer)
        reason = f"{new.group_instance_id} came back as {member_id}; client's reason: {join.reason}"
        if group.state is GroupState.STABLE and group.choose_protocol() == group.protocol:
            return self._store_replacement(group, join, old, new, led_before)
        if group.state is GroupState.COMPLETING_REBALANCE:
            # The leader may be assigning to the old id right now.
            return Result(self._rebalance.prepare(group, reason), join.answer)
        return Result(self._rebalance.prepare_or_complete(group, reason), join.answer)

    def _store_replacement(
        self, group: ClassicGroup, join: _Join, old: Member, new: Member, led_before: str
    ) -> JoinResult:
        """No rebalance: the new id is written down with the old assignment, and answered when it is committed."""

        def stored(error: KafkaError | None) -> None:
            if group.members.get(new.member_id) is not new:
                return
            if error is not None:
                self._take_back(group, old, new, led_before, error)
            elif group.state is GroupState.STABLE:
                group.answer_join(new, replacement_response(group, new, join.caller.api_version, led_before))

        record = group_metadata_record(group.group_id, group.to_metadata(group.assignments()))
        return Result([record], join.answer, on_complete=stored)

    def _take_back(self, group: ClassicGroup, old: Member, new: Member, led_before: str, error: KafkaError) -> None:
        if group.state is not GroupState.STABLE:
            # A rebalance has begun and will write everybody anew; the new id waits for it like all others.
            return
        group.answer_join(new, JoinGroupResponse(error_code=error.code, leader=led_before))
        stored = self._stored.get(group.group_id)
        if stored is not None and any(member.member_id == new.member_id for member in stored.members):
            # Late, but in the log: it stays, and the client comes back and takes its own place once more.
            return
        self._rebalance.end_session(new)
        group.replace(new, old)
        self._rebalance.touch(group, old)


def check_join(request: JoinGroupRequest, settings: GroupSettings) -> None:
    """What is wrong whatever the group looks like."""
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID, "a group's id must not be empty")
    shortest, longest = settings.min_session_timeout_ms, settings.max_session_timeout_ms
    if not shortest <= request.session_timeout_ms <= longest:
        raise KafkaError(
            ErrorCode.INVALID_SESSION_TIMEOUT,
            f"a session time-out of {request.session_timeout_ms} ms is not within {shortest} to {longest} ms",
        )


def fence(group: ClassicGroup, member: Member) -> None:
    """A member that is no longer in the group hears why."""
    if member.awaiting_join is not None:
        member.awaiting_join.complete(
            JoinGroupResponse(member_id=member.member_id, error_code=ErrorCode.FENCED_INSTANCE_ID, protocol_name=None)
        )
        member.awaiting_join = None
    group.answer_sync(member, SyncGroupResponse(error_code=ErrorCode.FENCED_INSTANCE_ID))


def replacement_response(group: ClassicGroup, member: Member, api_version: int, led_before: str) -> JoinGroupResponse:
    """The current generation for a static member that came back.

    It must not assign anew, since a stable group would ignore that. Newer clients are told so; older ones are shown
    the leader's old id, so that they do not take themselves for the leader.
    """
    if api_version >= _SKIP_ASSIGNMENT_FROM:
        return generation_response(group, member, skip_assignment=group.leader == member.member_id)
    return JoinGroupResponse(
        generation_id=group.generation,
        protocol_type=group.protocol_type,
        protocol_name=group.protocol,
        leader=led_before,
        member_id=member.member_id,
    )


def _tell(group: ClassicGroup, join: _Join, member: Member) -> JoinResult:
    """Nothing changes: the current generation is the answer."""
    join.answer.complete(generation_response(group, member))
    return Result([], join.answer)


def _refuse(join: _Join, code: ErrorCode, member_id: str) -> JoinResult:
    join.answer.complete(JoinGroupResponse(error_code=code, member_id=member_id))
    return Result([], join.answer)
