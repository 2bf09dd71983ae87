"""Groups of our own members: they come, go and crash; every partition has one owner, every record is read."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from penstock.base.types import TopicPartition
from penstock.client.consumer.assignors.base import AssignorBase, MemberSubscription
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.core.types import ClusterSnapshot, OffsetAndMetadata
from penstock.client.errors import CommitFailed, FencedInstance, InvalidState, MaxPollIntervalExceeded
from tests.clients.group_support import FAST, TIMEOUT_S, Crew, eventually, partitions_of, write
from tests.clients.support import TopicMaker
from tests.support.brokers import Broker

ASSIGNORS = ["range", "roundrobin", "sticky", "cooperative-sticky"]


@pytest.mark.parametrize("assignor", ASSIGNORS)
async def test_members_come_and_go(bootstrap: str, topic: TopicMaker, assignor: str) -> None:
    name = topic(partitions=8)
    everything = partitions_of(name, 8)
    write(bootstrap, name, range(8), 20)
    async with Crew(bootstrap, name, partition_assignment_strategy=[assignor]) as crew:
        crew.join()
        await crew.settled(everything)
        for count in (1, 6):
            for _ in range(count):
                crew.join()
            await crew.settled(everything)
        write(bootstrap, name, range(8), 20)
        for _ in range(5):
            await crew.members[0].stop()
        await crew.settled(everything)
        write(bootstrap, name, range(8), 10)
        await crew.all_read(dict.fromkeys(everything, 50))


async def test_cooperative_members_keep_what_they_can(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=6)
    async with Crew(bootstrap, name, partition_assignment_strategy=["cooperative-sticky"]) as crew:
        first = crew.join()
        await crew.settled(partitions_of(name, 6))
        second = crew.join()
        await crew.settled(partitions_of(name, 6))
        given_up = [one for kind, partitions in first.story if kind == "revoked" for one in partitions]
        assert len(given_up) == 3
        assert second.owned == set(given_up)
        await second.stop()
        await crew.settled(partitions_of(name, 6))
        assert not [
            partitions
            for kind, partitions in first.story
            if kind == "revoked" and set(partitions) & (set(partitions_of(name, 6)) - set(given_up))
        ]


async def test_eager_members_give_all_up(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    async with Crew(bootstrap, name, partition_assignment_strategy=["range"]) as crew:
        first = crew.join()
        await crew.settled(partitions_of(name, 2))
        crew.join()
        await crew.settled(partitions_of(name, 2))
        assert [kind for kind, _ in first.story] == ["assigned", "revoked", "assigned"]
        assert first.story[1][1] == tuple(partitions_of(name, 2))


async def test_what_was_read_is_committed_before_partitions_move(bootstrap: str, topic: TopicMaker) -> None:
    """With clean ends only, nothing is read twice: automatic commits happen before a rebalance and at the end."""
    name = topic(partitions=4)
    everything = partitions_of(name, 4)
    write(bootstrap, name, range(4), 50)
    async with Crew(bootstrap, name, auto_commit_interval_ms=60_000) as crew:
        crew.join()
        await crew.all_read(dict.fromkeys(everything, 50))
        crew.join()
        await crew.settled(everything)
        write(bootstrap, name, range(4), 50)
        await crew.all_read(dict.fromkeys(everything, 100))
        await crew.members[0].stop()
        await crew.settled(everything)
        assert all(sorted(offsets) == list(range(100)) for offsets in crew.delivered.values())


async def test_static_members_come_back_without_a_rebalance(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=4)
    async with Crew(bootstrap, name) as crew:
        staying = crew.join(group_instance_id="a")
        going = crew.join(group_instance_id="b")
        await crew.settled(partitions_of(name, 4))
        assignments, had = staying.assignments, going.owned
        await going.stop()
        back = crew.join(group_instance_id="b")
        await crew.settled(partitions_of(name, 4))
        assert back.owned == had
        assert staying.assignments == assignments


async def test_a_second_member_of_the_same_instance_fences_the_first(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    crew = Crew(bootstrap, name)
    first = crew.join(group_instance_id="same")
    await crew.settled(partitions_of(name, 2))
    second = crew.join(group_instance_id="same")
    await eventually(lambda: first.error is not None, crew.tell)
    assert isinstance(first.error, FencedInstance)
    assert "group.instance.id" in str(first.error)
    with pytest.raises(FencedInstance):
        await first.consumer.poll(100)
    await eventually(lambda: len(second.consumer.assignment()) == 2, crew.tell)
    first.error = None
    await crew.end()


async def test_new_partitions_and_topics_are_shared_out(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    later = topic.name()
    async with Crew(bootstrap, [name, later], allow_auto_create_topics=False) as crew:
        crew.join()
        crew.join()
        await crew.settled(partitions_of(name, 2))
        topic(partitions=2, name=later)
        await crew.settled([*partitions_of(name, 2), *partitions_of(later, 2)])


async def test_more_partitions(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=1)
    async with Crew(bootstrap, name) as crew:
        crew.join()
        await crew.settled(partitions_of(name, 1))
        topic.grow(name, 3)
        crew.join()
        await crew.settled(partitions_of(name, 3))


async def test_a_pattern_finds_topics_as_they_come_and_go(bootstrap: str, topic: TopicMaker) -> None:
    prefix = topic.name()
    first, second = f"{prefix}-first", f"{prefix}-second"
    topic(partitions=2, name=first)
    async with Crew(bootstrap, re.compile(re.escape(prefix) + "-.*")) as crew:
        crew.topics = re.compile(re.escape(prefix) + "-.*")
        crew.join()
        crew.join()
        await crew.settled(partitions_of(first, 2))
        topic(partitions=2, name=second)
        write(bootstrap, second, range(2), 5)
        await crew.settled([*partitions_of(first, 2), *partitions_of(second, 2)])
        await crew.all_read(dict.fromkeys(partitions_of(second, 2), 5))
        topic.delete(second)
        await crew.settled(partitions_of(first, 2))


async def test_another_subscription_joins_again(bootstrap: str, topic: TopicMaker) -> None:
    name, other = topic(partitions=2), topic(partitions=1)
    async with Crew(bootstrap, name) as crew:
        crew.join()
        leaving = crew.join()
        await crew.settled(partitions_of(name, 2))
        leaving.consumer.subscribe([other], on_assign=leaving._assigned, on_revoke=leaving._revoked)
        await crew.settled([*partitions_of(name, 2), *partitions_of(other, 1)])
        assert leaving.owned == set(partitions_of(other, 1))
        leaving.may_poll.clear()
        await asyncio.sleep(0.15)
        await leaving.consumer.unsubscribe()
        assert leaving.story[-1] == ("revoked", tuple(partitions_of(other, 1)))
        leaving.consumer.subscribe([name], on_assign=leaving._assigned, on_revoke=leaving._revoked)
        leaving.may_poll.set()
        await crew.settled(partitions_of(name, 2))


async def test_a_member_that_does_not_poll_loses_its_partitions(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    async with Crew(bootstrap, name, enable_auto_commit=False) as crew:
        slow = crew.join(max_poll_interval_ms=400)
        quick = crew.join()
        await crew.settled(partitions_of(name, 2))
        before = slow.consumer.group_metadata().member_id
        slow.may_poll.clear()
        await eventually(lambda: len(quick.consumer.assignment()) == 2, crew.tell)
        with pytest.raises((MaxPollIntervalExceeded, CommitFailed), match=r"max.poll.interval.ms"):
            await slow.consumer.commit({TopicPartition(name, 0): OffsetAndMetadata(0)})
        # It learns that only when it polls again.
        crew.twice.clear()
        slow.may_poll.set()
        await crew.settled(partitions_of(name, 2))
        assert "lost" in [kind for kind, _ in slow.story]
        assert slow.consumer.group_metadata().member_id != before
        crew.twice.clear()


async def test_a_listener_that_raises(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    consumer = AsyncConsumer(bootstrap_servers=bootstrap, group_id=name, **FAST)

    def fail(*_: Any) -> None:
        raise ValueError("mine")

    async with consumer:
        consumer.subscribe([name], on_assign=fail)
        with pytest.raises(ValueError, match="mine") as raised:
            await asyncio.wait_for(_poll_until(consumer, lambda: False), TIMEOUT_S)
        assert "poll again" in raised.value.__notes__[0]
        # The rebalance is complete all the same.
        assert consumer.assignment() == set(partitions_of(name, 2))
        write(bootstrap, name, [0], 1)
        assert len(await consumer.poll(10_000)) == 1


async def test_an_assignor_of_the_users_own(bootstrap: str, topic: TopicMaker) -> None:
    class AllToOne(AssignorBase):
        name = "all-to-one"

        def assign(
            self, cluster: ClusterSnapshot, subscriptions: Mapping[str, MemberSubscription]
        ) -> dict[str, list[TopicPartition]]:
            return {min(subscriptions): partitions_of(name, cluster.partition_count(name))}

    name = topic(partitions=3)
    async with Crew(bootstrap, name, partition_assignment_strategy=[AllToOne]) as crew:
        crew.join()
        crew.join()
        await crew.settled(partitions_of(name, 3), spread=False)
        assert sorted(len(member.owned) for member in crew.members) == [0, 3]


async def test_an_assignor_that_raises_is_told_by_poll(bootstrap: str, topic: TopicMaker) -> None:
    class Broken(AssignorBase):
        name = "broken"

        def assign(self, cluster: object, subscriptions: object) -> dict[str, list[TopicPartition]]:
            raise ZeroDivisionError

    name = topic()
    async with AsyncConsumer(
        bootstrap_servers=bootstrap, group_id=name, partition_assignment_strategy=[Broken()], **FAST
    ) as consumer:
        consumer.subscribe([name])
        with pytest.raises(InvalidState, match="'broken' failed"):
            await asyncio.wait_for(_poll_until(consumer, lambda: False), 20)


async def test_short_polls_get_into_the_group_too(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=1)
    async with AsyncConsumer(bootstrap_servers=bootstrap, group_id=name, **FAST) as consumer:
        consumer.subscribe([name])
        for _ in range(2000):
            await consumer.poll(0)
            if consumer.assignment():
                break
            await asyncio.sleep(0.01)
        assert consumer.assignment()


async def test_enforced_rebalance(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=2)
    async with Crew(bootstrap, name) as crew:
        member = crew.join()
        await crew.settled(partitions_of(name, 2))
        generation = member.consumer.group_metadata().generation_id
        member.consumer.enforce_rebalance("for the test")
        await eventually(lambda: member.consumer.group_metadata().generation_id > generation, crew.tell)


async def _poll_until(consumer: AsyncConsumer, done: Callable[[], bool]) -> None:
    while not done():
        await consumer.poll(100)


async def test_crashed_members_are_replaced(start_cluster: Callable[..., Broker], cluster_kind: str) -> None:
    """Also with the broker stopped and started under the group."""
    broker = start_cluster(group_min_session_timeout_ms="500", group_initial_rebalance_delay_ms="0")
    topic = TopicMaker(broker.bootstrap, f"crash-{cluster_kind}")
    name = topic(partitions=6)
    everything = partitions_of(name, 6)
    write(broker.bootstrap, name, range(6), 20)
    async with Crew(broker.bootstrap, name, session_timeout_ms=1500, heartbeat_interval_ms=200) as crew:
        for _ in range(4):
            crew.join()
        await crew.settled(everything)
        await crew.members[0].crash()
        await crew.members[1].crash()
        await crew.settled(everything)
        write(broker.bootstrap, name, range(6), 20)
        await crew.all_read(dict.fromkeys(everything, 40))
        await asyncio.to_thread(broker.stop)
        await asyncio.to_thread(broker.start)
        write(broker.bootstrap, name, range(6), 20)
        await crew.all_read(dict.fromkeys(everything, 60))
        # Sessions may have ended in the outage: a member learns that it lost its partitions after another got them.
        crew.twice.clear()
