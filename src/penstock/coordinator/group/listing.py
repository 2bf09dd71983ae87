"""ListGroups and DescribeGroups: groups that are committed, as they are right now."""

from __future__ import annotations

from collections.abc import Iterable

from penstock.coordinator.group.classic_group import ClassicGroup
from penstock.coordinator.group.states import GroupState
from penstock.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember
from penstock.protocol.messages.list_groups import ListedGroup

GROUP_TYPE = "classic"


def list_groups(groups: Iterable[ClassicGroup], states: Iterable[str], types: Iterable[str]) -> list[ListedGroup]:
    """Those of the named states and types, written in any case; no names mean all. Unknown names match nothing."""
    wanted_states = {state.strip().lower() for state in states}
    wanted_types = {name.strip().lower() for name in types}
    if wanted_types and GROUP_TYPE not in wanted_types:
        return []
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=GROUP_TYPE,
        )
        for group in groups
        if not wanted_states or group.state.value.lower() in wanted_states
    ]


def describe(group: ClassicGroup) -> DescribedGroup:
    """Subscriptions are shown of a stable group only: before that the protocol is not settled."""
    protocol = group.protocol if group.state is GroupState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.protocols.get(protocol, b""),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )


def describe_missing(group_id: str) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, group_state=GroupState.DEAD.value)
