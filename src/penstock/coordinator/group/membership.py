"""Heartbeat and LeaveGroup."""

from __future__ import annotations

import logging

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.rebalance import Rebalance
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.runtime.shard import Result
from penstock.protocol.messages.leave_group import LeaveGroupResponse, MemberIdentity, MemberResponse

log = logging.getLogger(__name__)


def heartbeat(
    rebalance: Rebalance,
    group: ClassicGroup | None,
    member_id: str,
    group_instance_id: str | None,
    generation: int,
) -> ErrorCode:
    """Keep a member's session; the code is the whole answer. Writes nothing, so it needs no log."""
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    try:
        member = group.check_member(member_id, group_instance_id)
    except KafkaError as error:
        return error.code
    if generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    rebalance.touch(group, member)
    if group.state is GroupState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def leave(
    rebalance: Rebalance, group: ClassicGroup | None, identities: list[MemberIdentity]
) -> Result[LeaveGroupResponse]:
    """Remove members, each with its own outcome. An administrator names static members by instance id alone."""
    if group is None:
        return Result([], LeaveGroupResponse(members=[_left(i, ErrorCode.UNKNOWN_MEMBER_ID) for i in identities]))
    before = len(group.members)
    answers = [_left(identity, _leave_one(rebalance, group, identity)) for identity in identities]
    if group.state is GroupState.PREPARING_REBALANCE:
        records = rebalance.maybe_complete_join(group)
    elif len(group.members) < before:
        records = rebalance.prepare(group, f"{before - len(group.members)} member(s) left")
    else:
        records = []
    return Result(records, LeaveGroupResponse(members=answers))


def _leave_one(rebalance: Rebalance, group: ClassicGroup, identity: MemberIdentity) -> ErrorCode:
    member_id, instance_id = identity.member_id, identity.group_instance_id
    if not member_id:
        member_id = group.static_members.get(instance_id, "") if instance_id is not None else ""
        if not member_id:
            return ErrorCode.UNKNOWN_MEMBER_ID
    elif member_id in group.pending_join:
        rebalance.withdraw(group, member_id)
        return ErrorCode.NONE
    try:
        member = group.check_member(member_id, instance_id)
    except KafkaError as error:
        return error.code
    log.info(
        "a member has left",
        extra={"group": group.group_id, "member": member_id, "reason": identity.reason or "not provided"},
    )
    rebalance.drop_member(group, member)
    return ErrorCode.NONE


def _left(identity: MemberIdentity, code: ErrorCode) -> MemberResponse:
    return MemberResponse(member_id=identity.member_id, group_instance_id=identity.group_instance_id, error_code=code)
