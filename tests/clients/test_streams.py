"""A topic opened as streams: everything arrives once, queues stay bounded, commits stay behind what was taken."""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter, defaultdict
from itertools import islice
from typing import Any

import pytest

from penstock import Consumer, Producer
from penstock.base.types import TopicPartition
from penstock.client.consumer.streams import AsyncMessageStreams, MessageStream, MessageStreams
from penstock.client.errors import InvalidTopic, KafkaTimeout
from tests.clients.support import TopicMaker

COUNT = 400
OPTIONS: dict[str, Any] = {"auto_offset_reset": "earliest", "fetch_max_wait_ms": 50}


@pytest.fixture
def filled(bootstrap: str, topic: TopicMaker) -> str:
    name = topic(partitions=4)
    fill(bootstrap, name, range(COUNT))
    return name


def fill(bootstrap: str, name: str, numbers: range) -> None:
    with Producer(bootstrap_servers=bootstrap) as producer:
        for number in numbers:
            producer.send(name, str(number), partition=number % 4)
        producer.flush(20)


def committed(bootstrap: str, group: str, name: str) -> int:
    with Consumer(bootstrap_servers=bootstrap, group_id=group) as consumer:
        found = consumer.committed([TopicPartition(name, number) for number in range(4)])
        return sum(each.offset for each in found.values() if each is not None)


def wait_for(condition: Any, what: str) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.01)


@pytest.mark.parametrize("how", [str, re.compile, lambda name: [name], lambda name: iter([name])])
def test_topics_as_text_pattern_and_names(bootstrap: str, filled: str, how: Any) -> None:
    with MessageStreams(bootstrap_servers=bootstrap, group_id=f"{filled}-t", topics=how(filled), **OPTIONS) as streams:
        assert sorted(int(each.value) for each in islice(streams[0], COUNT)) == [*range(COUNT)]


def test_topics_that_are_none() -> None:
    with pytest.raises(TypeError, match="topics are given as a list of names"):
        MessageStreams(bootstrap_servers="127.0.0.1:1", group_id="g", topics=5)  # type: ignore[arg-type]


def test_threads_share_a_topic(bootstrap: str, filled: str) -> None:
    taken: list[tuple[int, int, int, int]] = []

    def work(stream: MessageStream) -> None:
        taken.extend((stream.number, each.partition, each.offset, int(each.value)) for each in stream)

    group = f"{filled}-g"
    with MessageStreams(bootstrap_servers=bootstrap, group_id=group, topics=filled, streams=2, **OPTIONS) as streams:
        threads = [threading.Thread(target=work, args=(stream,)) for stream in streams]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(taken) >= COUNT, f"{len(taken)} records")
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "closing ends the streams"
    assert sorted(each[3] for each in taken) == list(range(COUNT))
    streams_of = defaultdict(set)
    offsets: defaultdict[int, list[int]] = defaultdict(list)
    for stream, partition, offset, _ in taken:
        streams_of[partition].add(stream)
        offsets[partition].append(offset)
    assert all(len(numbers) == 1 for numbers in streams_of.values()), "a partition feeds one stream"
    assert Counter(next(iter(numbers)) for numbers in streams_of.values()) == {0: 2, 1: 2}
    assert all(each == sorted(each) for each in offsets.values())
    assert committed(bootstrap, group, filled) == COUNT


def test_commits_stay_behind_what_was_taken(bootstrap: str, filled: str) -> None:
    group = f"{filled}-g"
    for expected in (0, 9):
        with MessageStreams(bootstrap_servers=bootstrap, group_id=group, topics=filled, **OPTIONS) as streams:
            assert len(list(islice(streams[0], 10))) == 10
        # The tenth was given out, and nobody said that it is finished.
        assert committed(bootstrap, group, filled) == expected + 9
    with MessageStreams(bootstrap_servers=bootstrap, group_id=group, topics=filled, **OPTIONS) as streams:
        assert len(list(islice(streams[0], 2))) == 2
        streams.commit()
    assert committed(bootstrap, group, filled) == 20


def test_slow_stream_is_paused_and_does_not_hold_up_the_others(bootstrap: str, filled: str) -> None:
    with MessageStreams(
        bootstrap_servers=bootstrap, group_id=f"{filled}-g", topics=[filled], streams=2, queue_max=10, **OPTIONS
    ) as streams:
        slow, fast = streams
        seen = [fast.get(20_000)]
        slow.get(20_000)
        largest = 0
        while len(seen) < COUNT // 2:
            seen.append(fast.get(20_000))
            largest = max(largest, len(streams._core.buffers[0]), len(streams._core.buffers[1]))
        assert largest <= 10
        partitions = streams._core._routing.partitions_of(0)
        wait_for(lambda: streams._core.consumer.paused() >= partitions, "the slow stream's partitions are paused")
        assert not {each.partition for each in partitions} & {record.partition for record in seen}
        rest = [slow.get(20_000) for _ in range(COUNT // 2 - 1)]
        assert len({(each.partition, each.offset) for each in rest}) == len(rest)
        with pytest.raises(KafkaTimeout, match="stream 0"):
            slow.get(50)


def test_streams_of_two_members_share_the_partitions(bootstrap: str, filled: str) -> None:
    group = f"{filled}-g"
    taken: list[int] = []

    def work(streams: MessageStreams) -> None:
        taken.extend(int(record.value) for record in streams[0])

    def opened() -> MessageStreams:
        options = {**OPTIONS, "heartbeat_interval_ms": 50}
        return MessageStreams(bootstrap_servers=bootstrap, group_id=group, topics=filled, **options)

    with opened() as first, opened() as second:
        threads = [threading.Thread(target=work, args=(each,)) for each in (first, second)]
        for thread in threads:
            thread.start()
        assigned = lambda each: len(each._core.consumer.assignment())  # noqa: E731 - one line
        wait_for(lambda: assigned(first) == 2 and assigned(second) == 2, "two partitions each")
        fill(bootstrap, filled, range(COUNT, COUNT + 40))
        wait_for(lambda: set(taken) >= set(range(COUNT + 40)), f"{len(set(taken))} different records")
    for thread in threads:
        thread.join(60)
    assert committed(bootstrap, group, filled) == COUNT + 40


def test_asyncio_face(bootstrap: str, filled: str) -> None:
    async def test() -> None:
        taken: list[int] = []
        all_taken = asyncio.Event()

        async def work(stream: Any) -> None:
            async for record in stream:
                taken.append(int(record.value))
                if len(taken) >= COUNT:
                    all_taken.set()

        options = {"bootstrap_servers": bootstrap, "group_id": f"{filled}-g", **OPTIONS}
        async with AsyncMessageStreams(topics=filled, streams=3, queue_max=20, **options) as streams:
            tasks = [asyncio.create_task(work(stream)) for stream in streams.streams]
            await all_taken.wait()
        await asyncio.gather(*tasks)
        assert sorted(taken) == list(range(COUNT))

    asyncio.run(asyncio.wait_for(test(), 30))
    assert committed(bootstrap, f"{filled}-g", filled) == COUNT


def test_refused_topic_reaches_the_taker(bootstrap: str) -> None:
    with (
        MessageStreams(bootstrap_servers=bootstrap, group_id="g", topics="no/such name", **OPTIONS) as streams,
        pytest.raises(InvalidTopic, match="no/such name"),
    ):
        streams[0].get(20_000)
