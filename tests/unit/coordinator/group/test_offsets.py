"""OffsetCommit, OffsetFetch and OffsetDelete."""

from __future__ import annotations

from uuid import UUID

import pytest

from penstock.base.errors import ErrorCode, KafkaError
from penstock.base.types import ZERO_UUID
from penstock.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from penstock.protocol.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.unit.coordinator.group.staging import ORDERS, PAYMENTS, GroupStage, error_of, image_of, topic


def delete(stage: GroupStage, topic: str = "orders", partition: int = 0, group: str = "g") -> OffsetDeleteResponse:
    request = OffsetDeleteRequest(
        group_id=group,
        topics=[
            OffsetDeleteRequestTopic(name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)])
        ],
    )
    response: OffsetDeleteResponse = stage.ask(stage.groups.offsets.delete(request))
    return response


# -- Committing --------------------------------------------------------------------------------------------------------


def test_what_is_committed_is_fetched(stage: GroupStage) -> None:
    assert stage.commit(7, metadata="note", leader_epoch=3) is ErrorCode.NONE
    (found,) = stage.fetch().topics[0].partitions
    assert (found.committed_offset, found.metadata, found.committed_leader_epoch) == (7, "note", 3)
    stage.restart()
    assert stage.fetch().topics[0].partitions == [found]


@pytest.mark.parametrize("version", range(2, 10))
def test_commit_of_a_member(stage: GroupStage, version: int) -> None:
    (leader,), generation = stage.stable_group()
    assert stage.commit(version=version, member_id=leader, generation=generation) is ErrorCode.NONE


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"member_id": "stranger", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"member_id": "", "generation": -1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "", "generation": 1}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"topic": "nothing"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": 4}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"partition": -1}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ({"metadata": "x" * 4097}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"metadata": "\N{GRINNING FACE}" * 2049}, ErrorCode.OFFSET_METADATA_TOO_LARGE),
        ({"metadata": "x" * 4096}, ErrorCode.NONE),
        ({"metadata": "\N{GRINNING FACE}" * 2048}, ErrorCode.NONE),
    ],
)
def test_checks(stage: GroupStage, options: dict[str, object], code: ErrorCode) -> None:
    (leader,), generation = stage.stable_group()
    arguments: dict[str, object] = {"member_id": leader, "generation": generation, **options}
    assert stage.commit(**arguments) is code  # type: ignore[arg-type]
    assert stage.committed_offset() == (7 if code is ErrorCode.NONE else -1)


@pytest.mark.parametrize(("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)])
def test_member_of_a_group_that_does_not_exist(stage: GroupStage, version: int, code: ErrorCode) -> None:
    assert stage.commit(version=version, member_id="m", generation=1) is code
    assert "g" not in stage.shard.groups


def test_members_may_commit_while_they_prepare_to_rebalance_but_not_later(stage: GroupStage) -> None:
    (leader,), generation = stage.stable_group()
    _, join = stage.new_member()
    assert stage.commit(member_id=leader, generation=generation) is ErrorCode.NONE
    stage.join(leader)
    assert join.done()
    assert stage.commit(member_id=leader, generation=generation) is ErrorCode.ILLEGAL_GENERATION
    assert stage.commit(member_id=leader, generation=generation + 1) is ErrorCode.REBALANCE_IN_PROGRESS


def test_simple_consumers_commit_to_empty_groups(stage: GroupStage) -> None:
    (leader,), _ = stage.stable_group()
    assert stage.commit() is ErrorCode.UNKNOWN_MEMBER_ID
    stage.leave((leader, None))
    assert stage.commit() is ErrorCode.NONE
    assert stage.commit(member_id="whoever") is ErrorCode.NONE


def test_empty_group_id_may_commit_and_fetch(stage: GroupStage) -> None:
    assert stage.commit(5, group="") is ErrorCode.NONE
    assert stage.committed_offset(group="") == 5


def test_good_partitions_are_committed_beside_bad_ones(stage: GroupStage) -> None:
    request = stage.commit_request(1)
    request.topics += stage.commit_request(2, topic="nothing").topics
    request.topics += stage.commit_request(3, partition=1, metadata="x" * 5000).topics
    request.topics += stage.commit_request(4, topic="payments", partition=1).topics
    response = stage.ask(stage.groups.offsets.commit(request, 8))
    assert [each.name for each in response.topics] == ["orders", "nothing", "orders", "payments"]
    assert [error_of(each.partitions[0]) for each in response.topics] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ErrorCode.NONE,
    ]
    assert {each.name for each in stage.fetch(None).topics} == {"orders", "payments"}


def test_only_unknown_topics_are_answered_without_the_coordinator(stage: GroupStage) -> None:
    stage.log.lose()
    assert stage.commit(topic="nothing") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert stage.commit() is ErrorCode.NOT_COORDINATOR


def test_topics_by_id(stage: GroupStage) -> None:
    assert stage.commit(5, version=10, topic_id=ORDERS) is ErrorCode.NONE
    assert stage.commit(5, version=10, topic_id=UUID(int=9)) is ErrorCode.UNKNOWN_TOPIC_ID
    assert stage.commit(5, version=10, topic_id=ZERO_UUID) is ErrorCode.UNKNOWN_TOPIC_ID
    assert stage.commit(5, version=10, topic_id=PAYMENTS, partition=2) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    (found,) = stage.fetch(topic_id=ORDERS, version=10).topics
    assert (found.topic_id, found.partitions[0].committed_offset) == (ORDERS, 5)
    (unknown,) = stage.fetch(topic_id=UUID(int=9), version=10).topics
    assert (unknown.topic_id, error_of(unknown.partitions[0])) == (UUID(int=9), ErrorCode.UNKNOWN_TOPIC_ID)
    assert unknown.partitions[0].committed_offset == -1
    assert [each.topic_id for each in stage.fetch(None, version=10).topics] == [ORDERS]


def test_offset_of_a_topic_that_was_made_anew_is_not_its_offset(stage: GroupStage) -> None:
    stage.commit(5, version=10, topic_id=ORDERS)
    stage.image = image_of(topic("orders", UUID(int=99), 4))
    assert stage.fetch(topic_id=UUID(int=99), version=10).topics[0].partitions[0].committed_offset == -1
    # By name nobody can tell.
    assert stage.committed_offset() == 5


# -- Fetching ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stable", [False, True])
def test_what_was_never_committed(stage: GroupStage, stable: bool) -> None:
    for group in ("g", "nobody"):
        (found,) = stage.fetch((3,), group=group, stable=stable).topics[0].partitions
        assert (found.committed_offset, found.committed_leader_epoch, found.metadata) == (-1, -1, "")
        assert error_of(found) is ErrorCode.NONE
        stage.commit()
    assert stage.fetch(None, group="nobody", stable=stable).topics == []


def test_all_partitions(stage: GroupStage) -> None:
    for partition in range(3):
        stage.commit(partition, partition=partition)
    stage.commit(9, topic="payments")
    found = {each.name: [part.committed_offset for part in each.partitions] for each in stage.fetch(None).topics}
    assert found == {"orders": [0, 1, 2], "payments": [9]}


def test_offsets_of_a_topic_that_is_gone_are_still_there(stage: GroupStage) -> None:
    stage.commit(5)
    stage.image = image_of()
    assert stage.committed_offset() == 5
    assert stage.fetch(None, version=10).topics == []


def test_nobody_sees_what_is_not_committed(stage: GroupStage) -> None:
    stage.commit(1)
    stage.log.commits_at_once = False
    commit = stage.start_commit(2)
    assert not commit.done()
    assert stage.committed_offset() == 1
    stage.log.commit()
    stage.settle()
    assert error_of(commit.result().topics[0].partitions[0]) is ErrorCode.NONE
    assert stage.committed_offset() == 2


def test_first_commit_of_a_group_is_not_seen_before_it_is_committed(stage: GroupStage) -> None:
    stage.log.commits_at_once = False
    stage.start_commit(2)
    assert stage.committed_offset() == -1
    assert stage.fetch(None).topics == []
    stage.log.commit()
    assert stage.committed_offset() == 2


def test_stable_fetch_waits_for_what_it_saw(stage: GroupStage) -> None:
    stage.log.commits_at_once = False
    stage.start_commit(2)
    answer = stage.groups.offsets.fetch(_request(), require_stable=True, api_version=9)
    task = stage.start(answer)  # type: ignore[arg-type]
    assert not task.done()
    stage.log.commit()
    stage.settle()
    assert task.result().topics[0].partitions[0].committed_offset == 2


def test_stable_fetch_that_is_late_sends_the_client_to_look_again(stage: GroupStage) -> None:
    stage.log.commits_at_once = False
    stage.start_commit(2)
    answer = stage.groups.offsets.fetch(_request(), require_stable=True, api_version=9)
    task = stage.start(answer)  # type: ignore[arg-type]
    stage.advance(5001)
    assert error_of(task.result()) is ErrorCode.NOT_COORDINATOR


def test_commit_that_is_refused_never_was(stage: GroupStage) -> None:
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    assert stage.commit(1) is ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert "g" not in stage.shard.groups
    assert stage.fetch(None, stable=True).topics == []
    assert stage.commit(2) is ErrorCode.NONE
    stage.log.refusals.append(KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
    assert stage.commit(3) is ErrorCode.NOT_COORDINATOR
    assert stage.fetch(stable=True).topics[0].partitions[0].committed_offset == 2


def test_commit_that_leadership_takes_away(stage: GroupStage) -> None:
    stage.commit(1)
    stage.log.commits_at_once = False
    commit = stage.start_commit(2)
    stage.restart()
    assert error_of(commit.result().topics[0].partitions[0]) is ErrorCode.NOT_COORDINATOR
    assert stage.committed_offset() == 1


# -- Deleting ----------------------------------------------------------------------------------------------------------


def test_delete_of_a_simple_group(stage: GroupStage) -> None:
    stage.commit(5)
    stage.commit(6, partition=1)
    response = delete(stage)
    assert error_of(response) is error_of(response.topics[0].partitions[0]) is ErrorCode.NONE
    assert stage.committed_offset() == -1
    assert stage.committed_offset(1) == 6
    # Nothing to delete is no error.
    assert error_of(delete(stage).topics[0].partitions[0]) is ErrorCode.NONE


def test_delete_in_a_consumer_group_with_members(stage: GroupStage) -> None:
    stage.commit(1)
    stage.commit(2, topic="payments")
    stage.stable_group()
    assert error_of(delete(stage).topics[0].partitions[0]) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    assert error_of(delete(stage, "payments").topics[0].partitions[0]) is ErrorCode.NONE
    assert [each.name for each in stage.fetch(None).topics] == ["orders"]


def test_group_whose_subscriptions_cannot_be_read_counts_as_subscribed(stage: GroupStage) -> None:
    stage.commit(2, topic="payments")
    stage.stable_group(protocols=[("range", b"\x00")])
    assert error_of(delete(stage, "payments").topics[0].partitions[0]) is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC


def test_delete_in_another_group_with_members(stage: GroupStage) -> None:
    stage.commit(1)
    stage.stable_group(protocol_type="connect", protocols=[("p", b"")])
    assert error_of(delete(stage)) is ErrorCode.NON_EMPTY_GROUP


@pytest.mark.parametrize(("group", "code"), [("", ErrorCode.INVALID_GROUP_ID), ("x", ErrorCode.GROUP_ID_NOT_FOUND)])
def test_delete_without_a_group(stage: GroupStage, group: str, code: ErrorCode) -> None:
    response = delete(stage, group=group)
    assert (error_of(response), response.topics) == (code, [])


def test_delete_of_an_unknown_partition(stage: GroupStage) -> None:
    stage.commit(1)
    assert error_of(delete(stage, partition=9).topics[0].partitions[0]) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_topics_that_are_deleted_take_their_offsets_along(stage: GroupStage) -> None:
    for group in ("a", "b"):
        stage.commit(1, group=group)
        stage.commit(2, group=group, topic="payments")
    stage.commit_in_transaction(7, 3, group="a", partition=1)
    stage.ask(stage.groups.on_topics_deleted(["orders"]))
    for group in ("a", "b"):
        assert [each.name for each in stage.fetch(None, group=group).topics] == ["payments"]
    stage.end_transaction(7, committed=True)
    assert stage.committed_offset(1, group="a") == -1


def _request() -> OffsetFetchRequestGroup:
    return OffsetFetchRequestGroup(
        group_id="g", topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    )
