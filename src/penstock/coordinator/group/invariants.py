"""What must hold between any two events; asked in tests after each of them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.rebalance import join_key, session_key, sync_key
from penstock.coordinator.group.states import GroupState
from penstock.coordinator.records.group_records import GroupMetadataValue
from penstock.coordinator.runtime.shard import ShardTimers

if TYPE_CHECKING:
    from penstock.coordinator.group.shard import GroupShard


def check(shard: GroupShard) -> None:
    shard.offsets.check_invariants()
    for group_id in shard.offsets.group_ids():
        assert group_id in shard.groups, f"{group_id} has offsets but does not exist"
    for group_id in shard.stored:
        assert group_id in shard.groups, f"{group_id} is stored but does not exist"
    for group_id, group in shard.groups.items():
        assert group.group_id == group_id
        assert group.state is not GroupState.DEAD, f"{group_id} is dead and still here"
        check_group(group)
        check_timers(group, shard.timers)
        if group.state is GroupState.STABLE:
            check_stored(group, shard.stored.get(group_id))


def check_group(group: ClassicGroup) -> None:
    members = group.members
    where = f"group {group.group_id} in {group.state.value}"
    assert all(member.member_id == member_id for member_id, member in members.items()), where
    assert (group.leader in members) if members else (group.leader is None), f"{where}: leader {group.leader}"
    assert not group.pending_join & members.keys(), where
    assert group.pending_sync <= members.keys(), where
    static = {m.group_instance_id: m.member_id for m in members.values() if m.group_instance_id is not None}
    assert group.static_members == static, where
    waiting = [member for member in members.values() if member.awaiting_join is not None]
    assert group.awaiting_join_count == len(waiting), where
    assert group.protocol_counts == Counter(name for m in members.values() for name in m.protocols), where
    answers = [a for m in members.values() for a in (m.awaiting_join, m.awaiting_sync) if a is not None]
    assert not any(answer.is_complete for answer in answers), f"{where}: an answered request waits"
    _check_state(group, where)


def _check_state(group: ClassicGroup, where: str) -> None:
    members = group.members.values()
    if group.state is GroupState.EMPTY:
        assert not members, where
        assert group.protocol is None, where
    elif group.state is not GroupState.PREPARING_REBALANCE:
        assert members, where
        assert group.protocol is not None, where
        assert all(group.protocol in m.protocols for m in members), where
    if group.state is not GroupState.COMPLETING_REBALANCE:
        assert all(member.awaiting_sync is None for member in members), where
    if group.state is GroupState.STABLE:
        # Static members wait for their new id to be stored.
        assert all(member.awaiting_join is None or member.is_static for member in members), where
    elif group.state is not GroupState.PREPARING_REBALANCE:
        assert all(member.awaiting_join is None for member in members), where


def check_timers(group: ClassicGroup, timers: ShardTimers) -> None:
    """Nothing waits without a clock that ends the waiting."""
    where = f"group {group.group_id} in {group.state.value}"
    is_preparing = group.state is GroupState.PREPARING_REBALANCE
    assert timers.is_scheduled(join_key(group.group_id)) == is_preparing, f"{where}: the join timer"
    if group.pending_sync:
        assert timers.is_scheduled(sync_key(group.group_id)), f"{where}: the sync timer"
    for member in group.members.values():
        if not member.needs_no_heartbeat:
            assert timers.is_scheduled(member.session_key), f"{where}: the session of {member.member_id}"
    for member_id in group.pending_join:
        assert timers.is_scheduled(session_key(group.group_id, member_id)), f"{where}: {member_id} waits for ever"


def check_stored(group: ClassicGroup, stored: GroupMetadataValue | None) -> None:
    """A stable group is in the log as it is in memory."""
    assert stored is not None, f"{group.group_id} is stable but not stored"
    assert stored.generation == group.generation, (stored.generation, group.generation)
    assert stored.protocol == group.protocol, (stored.protocol, group.protocol)
    assert {m.member_id: m.assignment for m in stored.members} == group.assignments(), group.group_id
