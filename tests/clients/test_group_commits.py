"""Commits, on both faces: sync, async in order, automatic; chosen offsets, and commits that are refused."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from penstock.base.types import TopicPartition
from penstock.client.consumer.blocking import Consumer
from penstock.client.consumer.consumer import AsyncConsumer
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import CommitFailed, InvalidState, KafkaTimeout, UnknownTopicOrPartition, WakeUp
from tests.clients.group_support import FAST, partitions_of, write
from tests.clients.support import TopicMaker
from tests.support.ports import free_port


def consumer_of(bootstrap: str, group: str, **options: Any) -> AsyncConsumer:
    return AsyncConsumer(bootstrap_servers=bootstrap, group_id=group, **{**FAST, **options})


async def read(consumer: AsyncConsumer, count: int) -> list[int]:
    found: list[int] = []
    async with asyncio.timeout(20):
        while len(found) < count:
            found += [record.offset for record in await consumer.poll(200, max_records=count - len(found))]
    return found


async def test_a_sync_commit_is_where_the_next_one_goes_on(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    write(bootstrap, name, [0], 10)
    async with consumer_of(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.subscribe([name])
        assert await read(consumer, 4) == [0, 1, 2, 3]
        await consumer.commit()
        assert await read(consumer, 2) == [4, 5]
    async with consumer_of(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.subscribe([name])
        assert await read(consumer, 1) == [4]


async def test_chosen_offsets_with_metadata_and_without_a_subscription(bootstrap: str, topic: TopicMaker) -> None:
    name = topic(partitions=3)
    first, second, third = partitions_of(name, 3)
    async with consumer_of(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.assign([first, second])
        await consumer.commit({first: OffsetAndMetadata(7, "checked"), second: OffsetAndMetadata(0)})
        found = await consumer.committed([first, second, third])
    assert found[first] is not None
    assert (found[first].offset, found[first].metadata) == (7, "checked")
    assert found[second] is not None
    assert found[second].offset == 0
    assert found[third] is None


async def test_async_commits_call_back_in_order(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    (partition,) = partitions_of(name, 1)
    heard: list[tuple[int, object]] = []
    async with consumer_of(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.assign([partition])
        await consumer.poll(0)
        for offset in range(20):
            consumer.commit_async(
                {partition: OffsetAndMetadata(offset)},
                lambda offsets, error: heard.append((offsets[partition].offset, error)),
            )
        await consumer.commit({partition: OffsetAndMetadata(99)})
        # A sync commit comes behind the async ones before it.
        assert heard == [(offset, None) for offset in range(20)]
        found = await consumer.committed([partition])
        assert found[partition] is not None
        assert found[partition].offset == 99
        consumer.commit_async({partition: OffsetAndMetadata(100)}, lambda *_: heard.append((100, None)))
    assert heard[-1] == (100, None)


@pytest.mark.parametrize("face", [Consumer, AsyncConsumer])
async def test_an_async_commit_needs_no_poll_before(bootstrap: str, topic: TopicMaker, face: Any) -> None:
    name = topic()
    (partition,) = partitions_of(name, 1)
    heard: list[object] = []
    consumer = face(bootstrap_servers=bootstrap, group_id=name, enable_auto_commit=False)
    consumer.commit_async({partition: 5}, lambda offsets, error: heard.append((offsets[partition].offset, error)))
    closing = consumer.close()
    if closing is not None:
        await closing
    assert heard == [(5, None)]
    async with consumer_of(bootstrap, name) as later:
        found = (await later.committed([partition]))[partition]
    assert found is not None
    assert found.offset == 5


async def test_automatic_commits_by_the_clock_and_at_the_end(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    (partition,) = partitions_of(name, 1)
    write(bootstrap, name, [0], 5)
    async with consumer_of(bootstrap, name, auto_commit_interval_ms=50) as consumer:
        consumer.subscribe([name])
        await read(consumer, 3)
        async with asyncio.timeout(20):
            while (found := (await consumer.committed([partition]))[partition]) is None or found.offset < 3:
                await consumer.poll(20, max_records=0)
    async with consumer_of(bootstrap, name, auto_commit_interval_ms=60_000) as consumer:
        consumer.subscribe([name])
        assert await read(consumer, 1) == [found.offset]
    async with consumer_of(bootstrap, name) as consumer:
        after = (await consumer.committed([partition]))[partition]
    assert after is not None
    assert after.offset == found.offset + 1


async def test_interceptors_hear_of_commits(bootstrap: str, topic: TopicMaker) -> None:
    class Counting:
        commits: list[int] = []  # noqa: RUF012 - looked at by the test

        def on_commit(self, offsets: dict[TopicPartition, OffsetAndMetadata]) -> None:
            self.commits += [each.offset for each in offsets.values()]

    name = topic()
    (partition,) = partitions_of(name, 1)
    async with consumer_of(bootstrap, name, enable_auto_commit=False, interceptor_classes=[Counting]) as consumer:
        consumer.assign([partition])
        await consumer.commit({partition: OffsetAndMetadata(1)})
        consumer.commit_async({partition: OffsetAndMetadata(2)})
    assert Counting.commits == [1, 2]


async def test_commits_that_cannot_be(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    (partition,) = partitions_of(name, 1)
    async with AsyncConsumer(bootstrap_servers=bootstrap) as alone:
        alone.assign([partition])
        with pytest.raises(InvalidState, match=r"group\.id"):
            await alone.commit({partition: OffsetAndMetadata(1)})
    async with consumer_of(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.subscribe([name])
        # Not a member yet.
        with pytest.raises(CommitFailed):
            await consumer.commit({partition: OffsetAndMetadata(1)})
        await consumer.unsubscribe()
        missing = TopicPartition(topic.name(), 0)
        with pytest.raises((KafkaTimeout, UnknownTopicOrPartition)):
            await consumer.commit({missing: OffsetAndMetadata(1)}, timeout_ms=300)


async def test_a_simple_consumer_cannot_commit_for_members(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    (partition,) = partitions_of(name, 1)
    async with (
        consumer_of(bootstrap, name, enable_auto_commit=False) as member,
        consumer_of(bootstrap, name, enable_auto_commit=False) as simple,
    ):
        member.subscribe([name])
        async with asyncio.timeout(20):
            while not member.assignment():
                await member.poll(50)
        simple.assign([partition])
        with pytest.raises(CommitFailed, match="moved on"):
            await simple.commit({partition: OffsetAndMetadata(1)})


def test_commit_inside_the_listener_in_the_callers_thread(bootstrap: str, topic: TopicMaker) -> None:
    """The blocking face: the listener runs in the thread that polls, and calls the consumer again."""
    name = topic(partitions=2)
    write(bootstrap, name, [0, 1], 5)
    threads: set[int] = set()
    committed: list[Any] = []

    def revoked(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        threads.add(threading.get_ident())
        consumer.commit()
        committed.append(consumer.committed(partitions))

    def assigned(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        threads.add(threading.get_ident())
        consumer.seek(TopicPartition(name, 0), 2)

    options: dict[str, Any] = {"bootstrap_servers": bootstrap, "group_id": name, **FAST, "enable_auto_commit": False}
    with Consumer(**options) as first, Consumer(**options) as second:
        first.subscribe([name], on_assign=assigned, on_revoke=revoked)
        found: list[tuple[int, int]] = []
        for _ in range(200):
            found += [(record.partition, record.offset) for record in first.poll(100)]
            if len(found) == 8:
                break
        assert sorted(found) == [(0, 2), (0, 3), (0, 4), *((1, number) for number in range(5))]
        second.subscribe([name])
        for _ in range(200):
            first.poll(50)
            second.poll(50)
            if second.assignment() and first.assignment():
                break
        assert threads == {threading.get_ident()}
        assert {tp.partition: each.offset for tp, each in committed[0].items()} == {0: 5, 1: 5}


async def test_async_listeners_may_commit_too(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    (partition,) = partitions_of(name, 1)
    write(bootstrap, name, [0], 3)

    async def revoked(consumer: AsyncConsumer, partitions: list[TopicPartition]) -> None:
        await consumer.commit()

    async with consumer_of(bootstrap, name, enable_auto_commit=False) as consumer:
        consumer.subscribe([name], on_revoke=revoked)
        await read(consumer, 3)
    async with consumer_of(bootstrap, name) as consumer:
        found = (await consumer.committed([partition]))[partition]
    assert found is not None
    assert found.offset == 3


async def test_without_a_broker_a_commit_ends_within_its_time() -> None:
    partition = TopicPartition("t", 0)
    consumer = consumer_of(f"127.0.0.1:{free_port()}", "g", enable_auto_commit=False)
    consumer.assign([partition])
    with pytest.raises(KafkaTimeout):
        await asyncio.wait_for(consumer.commit({partition: OffsetAndMetadata(1)}, timeout_ms=300), 5)
    await asyncio.wait_for(consumer.close(1), 5)


class BrokenError(Exception):
    """What the user's own work raises."""


def sync_consumer(bootstrap: str, group: str, **options: Any) -> Consumer:
    return Consumer(bootstrap_servers=bootstrap, group_id=group, **{**FAST, **options})


def committed_by(bootstrap: str, group: str, name: str) -> int | None:
    with sync_consumer(bootstrap, group, enable_auto_commit=False) as consumer:
        (found,) = consumer.committed(partitions_of(name, 1)).values()
        return None if found is None else found.offset


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
async def test_an_exception_in_a_loop_leaves_its_record_uncommitted(
    bootstrap: str, topic: TopicMaker, face: str
) -> None:
    name = topic()
    write(bootstrap, name, [0], 10)

    def in_a_thread() -> None:
        with sync_consumer(bootstrap, name, auto_commit_interval_ms=60_000) as consumer:
            consumer.subscribe([name])
            for record in consumer:
                check(record.offset)

    async def in_a_task() -> None:
        async with consumer_of(bootstrap, name, auto_commit_interval_ms=60_000) as consumer:
            consumer.subscribe([name])
            async for record in consumer:
                check(record.offset)

    def check(offset: int) -> None:
        if offset == 6:
            raise BrokenError

    with pytest.raises(BrokenError):
        await (asyncio.to_thread(in_a_thread) if face == "blocking" else in_a_task())
    assert await asyncio.to_thread(committed_by, bootstrap, name, name) == 6


@pytest.mark.parametrize("face", ["blocking", "asyncio"])
async def test_an_exception_after_a_poll_leaves_what_it_gave_uncommitted(
    bootstrap: str, topic: TopicMaker, face: str
) -> None:
    name = topic()
    write(bootstrap, name, [0], 10)

    def in_a_thread() -> None:
        with sync_consumer(bootstrap, name, auto_commit_interval_ms=60_000) as consumer:
            consumer.subscribe([name])
            assert len(consumer.poll(20_000, max_records=4)) == 4
            assert len(consumer.poll(20_000, max_records=4)) == 4
            raise BrokenError

    async def in_a_task() -> None:
        async with consumer_of(bootstrap, name, auto_commit_interval_ms=60_000) as consumer:
            consumer.subscribe([name])
            assert await read(consumer, 4) == [0, 1, 2, 3]
            assert await read(consumer, 4) == [4, 5, 6, 7]
            raise BrokenError

    with pytest.raises(BrokenError):
        await (asyncio.to_thread(in_a_thread) if face == "blocking" else in_a_task())
    assert await asyncio.to_thread(committed_by, bootstrap, name, name) == 4, "the second poll's are not handled"


def test_an_exception_takes_back_no_commit_of_the_users(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    write(bootstrap, name, [0], 10)

    def commit_and_fail(consumer: Consumer) -> None:
        consumer.subscribe([name])
        for record in consumer:
            if record.offset == 6:
                consumer.commit()
                raise BrokenError

    with pytest.raises(BrokenError), sync_consumer(bootstrap, name) as consumer:
        commit_and_fail(consumer)
    assert committed_by(bootstrap, name, name) == 7


def test_a_wakeup_ends_a_block_with_everything_committed(bootstrap: str, topic: TopicMaker) -> None:
    """The poll that raises says that the records of the one before are done with."""
    name = topic()
    write(bootstrap, name, [0], 10)

    def read_all(consumer: Consumer) -> None:
        consumer.subscribe([name])
        for record in consumer:
            if record.offset == 9:
                consumer.wakeup()

    with pytest.raises(WakeUp), sync_consumer(bootstrap, name) as consumer:
        read_all(consumer)
    assert committed_by(bootstrap, name, name) == 10


def test_a_callback_that_raises_at_the_end_does_not_keep_the_member(bootstrap: str, topic: TopicMaker) -> None:
    name = topic()
    write(bootstrap, name, [0], 3)

    def fail(*_: object) -> None:
        raise BrokenError

    consumer = sync_consumer(bootstrap, name, session_timeout_ms=30_000)
    consumer.subscribe([name], on_revoke=fail)
    assert len(consumer.poll(20_000, max_records=3)) == 3
    consumer.commit_async(dict.fromkeys(partitions_of(name, 1), 1), fail)
    with pytest.raises(BrokenError):
        consumer.close()
    write(bootstrap, name, [0], 1)
    with sync_consumer(bootstrap, name, enable_auto_commit=False) as other:
        other.subscribe([name])
        assert other.poll(10_000), "the first member has left, so the partition is free at once"
