"""Commits with a coordinator of the test's own: order, retries, the clock, the end."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from penstock.base.errors import ErrorCode
from penstock.base.types import TopicPartition
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import KafkaTimeout, TopicAuthorizationFailed
from penstock.protocol.apis import ApiKey
from tests.unit.client.group.coordinator import GroupWorld
from tests.unit.network.fakes import settle

T0 = TopicPartition("t", 0)
COMMIT = ApiKey.OFFSET_COMMIT


def at(offset: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {T0: OffsetAndMetadata(offset)}


@pytest.fixture
async def world() -> AsyncIterator[GroupWorld]:
    made = GroupWorld()
    await made.start()
    made.subscription.assign([T0])
    yield made
    await made.core.close()


async def test_a_commit_is_tried_until_it_succeeds(world: GroupWorld) -> None:
    world.refuse(COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)
    await world.cluster.run(world.commits.commit(at(5)))
    assert world.committed == [{T0: 5}] * 3
    assert world.count(ApiKey.FIND_COORDINATOR) == 2, "who is not the coordinator is not asked again"


async def test_what_no_repetition_cures_is_raised_at_once(world: GroupWorld) -> None:
    world.refuse(COMMIT, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    with pytest.raises(TopicAuthorizationFailed, match="t-0"):
        await world.cluster.run(world.commits.commit(at(5)))
    assert len(world.committed) == 1


async def test_a_time_out_names_its_cause(world: GroupWorld) -> None:
    world.refuse(COMMIT, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 99)
    with pytest.raises(KafkaTimeout, match="t-0: the topic or partition does not exist"):
        await world.cluster.run(world.commits.commit(at(5), timeout_ms=1_000))


async def test_a_coordinator_that_is_silent_is_the_cause(world: GroupWorld) -> None:
    """The request used to give up at the same moment as the call, which then knew nothing."""
    del world.cluster.brokers[1].handlers[COMMIT]
    with pytest.raises(KafkaTimeout, match=r"broker-1:9092: no answer to OffsetCommit"):
        await world.cluster.run(world.commits.commit(at(5), timeout_ms=1_000))


async def test_async_commits_leave_and_are_told_in_order(world: GroupWorld) -> None:
    told: list[tuple[int, bool]] = []
    world.refuse(COMMIT, ErrorCode.NONE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    for offset in (1, 2, 3):
        world.commits.commit_async(at(offset), lambda given, error: told.append((given[T0].offset, error is None)))
    assert told == []
    await world.cluster.run(world.commits.commit(at(4)))
    assert world.committed == [{T0: each} for each in (1, 2, 3, 4)]
    assert told == [(1, True), (2, False), (3, True)], "nothing is repeated: a later one is on its way"


async def test_automatic_commits_go_by_the_clock(world: GroupWorld) -> None:
    world.read(t0=7)
    await world.commits.maybe_auto_commit()
    await world.time.advance(4.9)
    await world.commits.maybe_auto_commit()
    await settle()
    assert world.committed == []
    await world.time.advance(0.2)
    world.refuse(COMMIT, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    for _ in range(3):
        await world.commits.maybe_auto_commit()
        await world.time.advance(0.06)
    assert world.committed == [{T0: 7}], "refused"
    await world.time.advance(0.1)
    await world.commits.maybe_auto_commit()
    await world.time.advance(0.1)
    assert world.committed == [{T0: 7}] * 2, "again after retry.backoff.ms, not after another interval"


async def test_the_end_commits_what_was_read(world: GroupWorld) -> None:
    world.read(t0=9)
    await world.cluster.run(world.commits.close(world.time.now + 30))
    assert world.committed == [{T0: 9}]


async def test_the_end_does_not_wait_for_a_topic_that_is_gone(world: GroupWorld) -> None:
    world.read(t0=9)
    world.refuse(COMMIT, *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 9)
    await world.cluster.run(world.commits.close(world.time.now + 30), seconds=1)
    assert len(world.committed) == 1
