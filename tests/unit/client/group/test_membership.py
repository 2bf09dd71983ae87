"""A member with a coordinator of the test's own: joining, heartbeats, rebalances, the end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.errors import GroupAuthorizationFailed, MaxPollIntervalExceeded, RebalanceInProgress
from penstock.protocol.apis import ApiKey
from tests.unit.client.group.coordinator import GroupWorld

BOTH = [TopicPartition("t", 0), TopicPartition("t", 1)]


class Listener:
    def __init__(self) -> None:
        self.told: list[tuple[str, int]] = []
        self.error: Exception | None = None

    def on_assigned(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.told.append(("assigned", len(partitions)))
        if self.error is not None:
            raise self.error

    def on_revoked(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.told.append(("revoked", len(partitions)))

    def on_lost(self, _: Any, partitions: list[TopicPartition]) -> None:
        self.told.append(("lost", len(partitions)))


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
async def world() -> AsyncIterator[GroupWorld]:
    made = GroupWorld()
    await made.start(partition_assignment_strategy=["range"])
    yield made
    await made.core.close()


async def test_a_member_joins_and_keeps_in_touch(world: GroupWorld, listener: Listener) -> None:
    membership = world.join(listener)
    assert await world.poll(membership)
    assert list(world.subscription.partitions) == BOTH
    assert listener.told == [("assigned", 2)]
    assert membership.metadata().generation_id == 1
    before = world.count(ApiKey.HEARTBEAT)
    await world.time.advance(9.5)
    assert world.count(ApiKey.HEARTBEAT) - before == 3, "every heartbeat.interval.ms, without a poll"


async def test_a_rebalance_commits_and_gives_up_before_it_joins_again(world: GroupWorld, listener: Listener) -> None:
    membership = world.join(listener)
    await world.poll(membership)
    world.read(t0=4, t1=5)
    world.refuse(ApiKey.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS)
    await world.time.advance(3.1)
    assert await world.poll(membership)
    assert world.committed == [dict(zip(BOTH, (4, 5), strict=True))]
    assert listener.told == [("assigned", 2), ("revoked", 2), ("assigned", 2)]
    assert membership.metadata().generation_id == 2


async def test_no_commit_while_the_others_are_waited_for(world: GroupWorld, listener: Listener) -> None:
    membership = world.join(listener)
    await world.poll(membership)
    world.refuse(ApiKey.HEARTBEAT, ErrorCode.REBALANCE_IN_PROGRESS)
    del world.cluster.brokers[1].handlers[ApiKey.JOIN_GROUP]
    await world.time.advance(3.1)
    assert not await world.poll(membership, 1.0)
    with pytest.raises(RebalanceInProgress, match="poll, then commit again"):
        membership.commit_identity()


async def test_a_member_that_was_put_out_has_lost_its_partitions(world: GroupWorld, listener: Listener) -> None:
    membership = world.join(listener)
    await world.poll(membership)
    world.read(t0=4)
    world.refuse(ApiKey.HEARTBEAT, ErrorCode.UNKNOWN_MEMBER_ID)
    await world.time.advance(3.1)
    assert await world.poll(membership)
    assert listener.told == [("assigned", 2), ("lost", 2), ("assigned", 2)]
    assert world.committed == [], "they are another's, perhaps"


async def test_who_does_not_poll_leaves(world: GroupWorld, listener: Listener) -> None:
    membership = world.join(listener)
    await world.poll(membership)
    await world.time.advance(301)
    assert world.count(ApiKey.LEAVE_GROUP) == 1
    with pytest.raises(MaxPollIntervalExceeded, match=r"max\.poll\.interval\.ms"):
        membership.commit_identity()
    assert await world.poll(membership)
    assert listener.told == [("assigned", 2), ("lost", 2), ("assigned", 2)]


async def test_a_join_is_tried_again_where_that_may_help(world: GroupWorld, listener: Listener) -> None:
    world.refuse(ApiKey.JOIN_GROUP, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    membership = world.join(listener)
    assert await world.poll(membership)
    assert world.count(ApiKey.JOIN_GROUP) == 3
    assert world.count(ApiKey.FIND_COORDINATOR) == 2


async def test_a_refusal_is_raised(world: GroupWorld, listener: Listener) -> None:
    world.refuse(ApiKey.JOIN_GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    membership = world.join(listener)
    with pytest.raises(GroupAuthorizationFailed):
        await world.poll(membership)


async def test_what_a_listener_raises_does_not_hold_up_the_group(world: GroupWorld, listener: Listener) -> None:
    listener.error = ValueError("no")
    membership = world.join(listener)
    with pytest.raises(ValueError, match="no"):
        await world.poll(membership)
    assert list(world.subscription.partitions) == BOTH
    assert await world.poll(membership), "settled, and raised once"


async def test_the_end_gives_up_and_says_good_bye(world: GroupWorld, listener: Listener) -> None:
    membership = world.join(listener)
    await world.poll(membership)
    await world.cluster.run(membership.close(world.time.now + 30))
    assert listener.told[-1] == ("revoked", 2)
    assert world.count(ApiKey.LEAVE_GROUP) == 1
    before = world.count(ApiKey.HEARTBEAT)
    await world.time.advance(30)
    assert world.count(ApiKey.HEARTBEAT) == before


async def test_a_static_member_keeps_its_place(listener: Listener) -> None:
    world = GroupWorld()
    await world.start(group_instance_id="one")
    membership = world.join(listener)
    await world.poll(membership)
    await world.cluster.run(membership.close(world.time.now + 30))
    assert world.count(ApiKey.LEAVE_GROUP) == 0
    await world.core.close()
