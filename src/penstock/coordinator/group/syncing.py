"""SyncGroup: the leader hands in the assignment, everybody gets theirs once it is committed to the log.

Until then the members are parked, and a change of the membership sends all of them back to join. If the assignment
cannot be written, they hear the error and the group starts a new rebalance.
"""

from __future__ import annotations

import logging

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.ports import Clock
from penstock.coordinator.group.answers import Answer
from penstock.coordinator.group.classic_group import NO_GENERATION, ClassicGroup
from penstock.coordinator.group.rebalance import Rebalance, sync_response
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.records.group_records import group_metadata_record
from penstock.coordinator.runtime.shard import Result
from penstock.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse

log = logging.getLogger(__name__)

SyncAnswer = Answer[SyncGroupResponse]
SyncResult = Result[SyncAnswer]


class Syncing:
    def __init__(self, rebalance: Rebalance, clock: Clock) -> None:
        self._rebalance = rebalance
        self._clock = clock

    def sync(self, group: ClassicGroup | None, request: SyncGroupRequest) -> SyncResult:
        if group is None or group.is_empty:
            return _ready(SyncGroupResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID))
        try:
            member = group.check_member(request.member_id, request.group_instance_id)
        except KafkaError as error:
            return _ready(SyncGroupResponse(error_code=error.code))
        if request.generation_id != group.generation:
            return _ready(SyncGroupResponse(error_code=ErrorCode.ILLEGAL_GENERATION))
        if _differs(request.protocol_type, group.protocol_type) or _differs(request.protocol_name, group.protocol):
            return _ready(SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL))
        if group.state is GroupState.PREPARING_REBALANCE:
            return _ready(SyncGroupResponse(error_code=ErrorCode.REBALANCE_IN_PROGRESS))
        self._rebalance.synced(group, member)
        if group.state is GroupState.STABLE:
            return _ready(sync_response(group, member))
        answer: SyncAnswer = Answer()
        group.park_sync(member, answer)
        if group.leader != member.member_id or group.storing_generation == group.generation:
            return Result([], answer)
        return self._store(group, request, answer)

    def _store(self, group: ClassicGroup, request: SyncGroupRequest, answer: SyncAnswer) -> SyncResult:
        """Write the generation down with its assignment; who is not in it gets an empty one."""
        given = {item.member_id: bytes(item.assignment) for item in request.assignments}
        assignments = {member_id: given.get(member_id, b"") for member_id in group.members}
        generation = group.generation
        group.storing_generation = generation
        log.info(
            "a group's leader has assigned",
            extra={"group": group.group_id, "generation": generation, "members": len(group.members)},
        )

        def stored(error: KafkaError | None) -> None:
            if group.storing_generation == generation:
                group.storing_generation = NO_GENERATION
            # Members may have come or gone meanwhile; then the generation is over.
            if group.state is not GroupState.COMPLETING_REBALANCE or group.generation != generation:
                return
            if error is None:
                self._become_stable(group, assignments)
            else:
                self._rebalance.reset_assignments(group, error.code)
                self._rebalance.prepare(group, f"the assignment could not be stored: {error.message}")

        record = group_metadata_record(group.group_id, group.to_metadata(assignments))
        return Result([record], answer, on_complete=stored)

    def _become_stable(self, group: ClassicGroup, assignments: dict[str, bytes]) -> None:
        for member in group.members.values():
            member.assignment = assignments[member.member_id]
        group.transition_to(GroupState.STABLE, self._clock.time_ms())
        self._rebalance.propagate_assignments(group, ErrorCode.NONE)


def _differs(requested: str | None, actual: str | None) -> bool:
    """Only clients from version 5 on say what they believe."""
    return requested is not None and actual is not None and requested != actual


def _ready(response: SyncGroupResponse) -> SyncResult:
    return Result([], Answer.ready(response))
