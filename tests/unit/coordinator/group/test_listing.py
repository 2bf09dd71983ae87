"""ListGroups, DescribeGroups, DeleteGroups."""

from __future__ import annotations

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.group.states import GroupState
from penstock.protocol.messages.list_groups import ListGroupsRequest
from tests.unit.coordinator.group.staging import GroupStage, error_of, subscription


def listed(stage: GroupStage, *, states: tuple[str, ...] = (), types: tuple[str, ...] = ()) -> dict[str, str]:
    response = stage.groups.list_groups(ListGroupsRequest(states_filter=list(states), types_filter=list(types)))
    assert error_of(response) is ErrorCode.NONE
    return {group.group_id: group.group_state for group in response.groups}


def deleted(stage: GroupStage, *groups: str) -> list[ErrorCode]:
    response = stage.ask(stage.groups.delete_groups(groups))
    return [error_of(result) for result in response.results]


def test_list(stage: GroupStage) -> None:
    stage.commit(1, group="simple")
    stage.stable_group(group="busy")
    stage.new_member(group="new")
    assert listed(stage) == {"simple": "Empty", "busy": "Stable", "new": "PreparingRebalance"}
    (busy,) = [g for g in stage.groups.list_groups(ListGroupsRequest()).groups if g.group_id == "busy"]
    assert (busy.protocol_type, busy.group_type) == ("consumer", "classic")


@pytest.mark.parametrize(
    ("states", "types", "expected"),
    [
        (("Stable",), (), {"busy"}),
        (("STABLE", " empty "), (), {"busy", "simple"}),
        (("Dead",), (), set()),
        (("nonsense",), (), set()),
        ((), ("classic",), {"busy", "simple"}),
        ((), ("Classic", "consumer"), {"busy", "simple"}),
        ((), ("consumer",), set()),
        ((), ("nonsense",), set()),
        (("Empty",), ("classic",), {"simple"}),
    ],
)
def test_filters(stage: GroupStage, states: tuple[str, ...], types: tuple[str, ...], expected: set[str]) -> None:
    stage.commit(1, group="simple")
    stage.stable_group(group="busy")
    assert listed(stage, states=states, types=types).keys() == expected


def test_group_is_listed_when_it_is_committed(stage: GroupStage) -> None:
    stage.log.commits_at_once = False
    stage.start_commit(1, group="simple")
    join = stage.join(group="new")
    assert listed(stage) == {}
    assert not join.done()
    stage.log.commit()
    stage.settle()
    assert listed(stage).keys() == {"simple", "new"}
    assert error_of(join.result()) is ErrorCode.MEMBER_ID_REQUIRED


def test_partitions_of_other_brokers_are_not_listed(stage: GroupStage) -> None:
    stage.commit(1)
    stage.log.lose()
    assert listed(stage) == {}


def test_describe_a_stable_group(stage: GroupStage) -> None:
    (leader,), _ = stage.stable_group(client="me")
    (group,) = stage.groups.describe_groups(["g"], 5)
    assert (group.group_state, group.protocol_type, group.protocol_data) == ("Stable", "consumer", "range")
    (member,) = group.members
    assert (member.member_id, member.client_id, member.client_host) == (leader, "me", "/10.0.0.1")
    assert (member.member_metadata, member.member_assignment) == (
        subscription("orders"),
        f"part of {leader}".encode(),
    )


def test_describe_a_group_that_rebalances(stage: GroupStage) -> None:
    stage.new_member()
    (group,) = stage.groups.describe_groups(["g"], 5)
    assert (group.group_state, group.protocol_data) == ("PreparingRebalance", "")
    assert [member.member_metadata for member in group.members] == [b""]


@pytest.mark.parametrize(("version", "code"), [(5, ErrorCode.NONE), (6, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_describe_a_group_that_does_not_exist(stage: GroupStage, version: int, code: ErrorCode) -> None:
    (group,) = stage.groups.describe_groups(["nobody"], version)
    assert (group.group_state, error_of(group)) == ("Dead", code)
    assert group.error_message == (None if version < 6 else "Group nobody not found.")


def test_describe_on_another_broker(stage: GroupStage) -> None:
    stage.log.lose()
    (group,) = stage.groups.describe_groups(["g"], 6)
    assert error_of(group) is ErrorCode.NOT_COORDINATOR


def test_delete(stage: GroupStage) -> None:
    stage.commit(1, group="simple")
    (leader,), _ = stage.stable_group(group="busy")
    assert deleted(stage, "simple", "busy", "nobody", "simple") == [
        ErrorCode.NONE,
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    stage.leave((leader, None), group="busy")
    assert deleted(stage, "busy") == [ErrorCode.NONE]
    assert listed(stage) == {}
    stage.restart()
    assert listed(stage) == {}


def test_deletion_that_is_refused_never_was(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group()
    stage.leave((leader, None))
    stage.commit(1)
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert deleted(stage, "g") == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert (stage.state(), stage.group().generation) == (GroupState.EMPTY, generation + 1)
    assert stage.committed_offset() == 1
    assert deleted(stage, "g") == [ErrorCode.NONE]
    assert stage.committed_offset() == -1


def test_group_that_is_made_again_at_once(stage: GroupStage) -> None:
    pending = stage.join().result().member_id
    assert deleted(stage, "g") == [ErrorCode.NONE]
    assert error_of(stage.join(pending).result()) is ErrorCode.UNKNOWN_MEMBER_ID
    stage.stable_group()
    stage.advance(9_000)
    assert stage.state() is GroupState.STABLE


def test_delete_is_shown_when_it_is_committed(stage: GroupStage) -> None:
    stage.commit(1)
    stage.log.commits_at_once = False
    task = stage.start(stage.groups.delete_groups(["g"]))
    assert not task.done()
    assert listed(stage) == {"g": "Empty"}
    assert stage.committed_offset() == 1
    stage.log.commit()
    stage.settle()
    assert task.done()
    assert listed(stage) == {}


def test_creation_that_is_refused_never_was(stage: GroupStage) -> None:
    stage.log.refusals += [KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS), KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)]
    assert error_of(stage.join().result()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert error_of(stage.join(version=3).result()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "g" not in stage.shard.groups
    stage.stable_group()


def test_creation_that_is_late_stays(stage: GroupStage) -> None:
    stage.log.commits_at_once = False
    join = stage.join()
    stage.advance(5001)
    assert error_of(join.result()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    stage.log.commits_at_once = True
    stage.stable_group()
