"""Groups: list, describe, delete, and the members of classic groups.

Every broker lists the groups that it coordinates; each group is described by its coordinator. A group of the new
protocol (KIP-848) is described by ConsumerGroupDescribe; where that is not served, or does not know the group, the
older DescribeGroups is asked, as Java's client does.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from penstock.base.errors import ErrorCode, KafkaError
from penstock.client.admin import checks
from penstock.client.admin.asking import Asker
from penstock.client.admin.enums import GroupState, GroupType, worded
from penstock.client.admin.errors import Outcome, failure
from penstock.client.admin.group_descriptions import GroupDescription, of_classic, of_consumer
from penstock.client.core.nodes import broker_id
from penstock.client.core.types import CoordinatorKind, Node
from penstock.client.errors import UnsupportedByBroker, error_for
from penstock.protocol.apis import ApiKey
from penstock.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from penstock.protocol.messages.delete_groups import DeleteGroupsRequest
from penstock.protocol.messages.describe_groups import DescribeGroupsRequest
from penstock.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from penstock.protocol.messages.list_groups import ListGroupsRequest

_GROUP = CoordinatorKind.GROUP


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupListing:
    """One line of `list_groups`."""

    group_id: str
    protocol_type: str
    """`consumer` for consumers of either protocol, `connect`, ...; empty for a group that only has offsets."""
    state: GroupState
    type: GroupType

    @property
    def is_simple(self) -> bool:
        """Only offsets are committed under this name; it has had no members."""
        return self.type in (GroupType.CLASSIC, GroupType.UNKNOWN) and not self.protocol_type


async def list_groups(
    asker: Asker,
    *,
    states: Iterable[GroupState | str] = (),
    types: Iterable[GroupType | str] = (),
    protocol_types: Iterable[str] = (),
    timeout_ms: float | None = None,
) -> dict[str, GroupListing]:
    """All groups of the cluster, or those of certain states, types or protocols, by id."""
    in_states = [checks.member(each, GroupState, "a state of groups").value for each in _several(states)]
    of_types = [checks.member(each, GroupType, "a type of groups").value for each in _several(types)]
    of_protocols = set(_several(protocol_types))
    answers = await asker.every_broker(
        ApiKey.LIST_GROUPS,
        ListGroupsRequest(states_filter=in_states, types_filter=of_types),
        timeout_ms=timeout_ms,
        at_least=5 if of_types else 4 if in_states else 0,
        check=lambda it: int(it.error_code),
    )
    found = {
        each.group_id: GroupListing(
            group_id=each.group_id,
            protocol_type=each.protocol_type,
            state=worded(GroupState, each.group_state),
            type=worded(GroupType, each.group_type),
        )
        for answer in answers.values()
        for each in answer.groups
        if not of_protocols or each.protocol_type in of_protocols
    }
    return dict(sorted(found.items()))


def _several(values: object) -> list[object]:
    """A filter: nothing filters nothing."""
    return checks.items(values, "filters") if values else []


async def describe_groups(
    asker: Asker,
    groups: Iterable[str],
    *,
    include_authorized_operations: bool = False,
    timeout_ms: float | None = None,
) -> dict[str, GroupDescription]:
    """Groups with their members and what each of these reads."""

    async def one(group: str) -> GroupDescription:
        try:
            return await _describe_consumer(asker, group, include_authorized_operations, timeout_ms)
        except KafkaError as error:
            if not isinstance(error, UnsupportedByBroker) and error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
                raise
        return await _describe_classic(asker, group, include_authorized_operations, timeout_ms)

    wanted = checks.names(groups, "groups")
    return (await asker.each_coordinator(_GROUP, wanted, one, timeout_ms=timeout_ms)).result()


async def _describe_consumer(
    asker: Asker, group: str, with_operations: bool, timeout_ms: float | None
) -> GroupDescription:
    request = ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=with_operations)
    answer = await asker.coordinator(
        _GROUP,
        group,
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        request,
        lambda it: (each.error_code for each in it.groups),
        timeout_ms=timeout_ms,
    )
    described = answer.groups[0]
    if described.error_code:
        raise failure(f"group {group}", described.error_code, described.error_message)
    return of_consumer(described, await _coordinator(asker, group, timeout_ms))


async def _describe_classic(
    asker: Asker, group: str, with_operations: bool, timeout_ms: float | None
) -> GroupDescription:
    answer = await asker.coordinator(
        _GROUP,
        group,
        ApiKey.DESCRIBE_GROUPS,
        lambda version: DescribeGroupsRequest(
            groups=[group], include_authorized_operations=with_operations and version >= 3
        ),
        lambda it: (each.error_code for each in it.groups),
        timeout_ms=timeout_ms,
    )
    described = answer.groups[0]
    code, message = described.error_code, described.error_message
    if not code and described.group_state == GroupState.DEAD.value and not described.members:
        # Before version 6 a group that does not exist is a dead one.
        code, message = ErrorCode.GROUP_ID_NOT_FOUND, None
    if code:
        raise failure(f"group {group}", code, message)
    return of_classic(described, await _coordinator(asker, group, timeout_ms))


async def _coordinator(asker: Asker, group: str, timeout_ms: float | None) -> Node:
    node_id = await asker.core.coordinator(_GROUP, group, timeout_ms=timeout_ms)
    return await asker.node(broker_id(node_id), timeout_ms=timeout_ms)


async def delete_groups(asker: Asker, groups: Iterable[str], *, timeout_ms: float | None = None) -> dict[str, None]:
    """Delete groups and their committed offsets. They must have no members."""

    async def one(group: str) -> None:
        answer = await asker.coordinator(
            _GROUP,
            group,
            ApiKey.DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[group]),
            lambda it: (each.error_code for each in it.results),
            timeout_ms=timeout_ms,
        )
        if code := answer.results[0].error_code:
            raise failure(f"group {group}", code)

    wanted = checks.names(groups, "groups")
    return (await asker.each_coordinator(_GROUP, wanted, one, timeout_ms=timeout_ms)).result()


async def remove_group_members(
    asker: Asker,
    group: str,
    members: Iterable[str] | None = None,
    *,
    reason: str = "",
    timeout_ms: float | None = None,
) -> dict[str, None]:
    """Make members of a classic group leave it: static ones by their `group.instance.id`, or all if none is named."""
    chosen = None if members is None else checks.names(members, "members (by their group.instance.id)")
    if chosen is not None:
        leaving = [MemberIdentity(group_instance_id=each) for each in chosen]
    else:
        described = (await describe_groups(asker, [group], timeout_ms=timeout_ms))[group]
        leaving = [
            MemberIdentity(group_instance_id=each.group_instance_id)
            if each.group_instance_id
            else MemberIdentity(member_id=each.member_id)
            for each in described.members
        ]
    if not leaving:
        return {}
    text = f"member was removed by an administrator{': ' + reason if reason else ''}"[:255]
    for each in leaving:
        each.reason = text
    return await _leave(asker, checks.name(group, "groups"), leaving, timeout_ms)


async def _leave(asker: Asker, group: str, leaving: list[MemberIdentity], timeout_ms: float | None) -> dict[str, None]:
    answer = await asker.coordinator(
        _GROUP,
        group,
        ApiKey.LEAVE_GROUP,
        LeaveGroupRequest(group_id=group, members=leaving),
        lambda it: (it.error_code, *(each.error_code for each in it.members)),
        timeout_ms=timeout_ms,
        at_least=3,
    )
    if answer.error_code:
        raise error_for(answer.error_code, f"group {group}: {error_for(answer.error_code)}")
    outcome: Outcome[str, None] = Outcome()
    for each in answer.members:
        name = each.group_instance_id or each.member_id
        outcome.add(name, None, each.error_code, f"member {name} of group {group}")
    return outcome.result()
