"""Members of one group in the loop of the test, and what they say: who owns what, in which generation, read what."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import confluent_kafka

from penstock.base.types import TopicPartition
from penstock.client.consumer.consumer import AsyncConsumer

FAST: dict[str, Any] = {
    "heartbeat_interval_ms": 100,
    "auto_offset_reset": "earliest",
    "auto_commit_interval_ms": 100,
    "metadata_max_age_ms": 500,
    "fetch_max_wait_ms": 100,
    "retry_backoff_ms": 20,
}
TIMEOUT_S = 60.0
_names = itertools.count()


def write(bootstrap: str, topic: str, partitions: Iterable[int], count: int) -> None:
    """`count` records into each partition."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "linger.ms": 1})
    for partition in partitions:
        for number in range(count):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(TIMEOUT_S) == 0


async def eventually(condition: Callable[[], bool], what: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"not within {timeout_s} s: {what()}"
        await asyncio.sleep(0.01)


class Member:
    """One consumer, polled by a task of its own until it stops."""

    def __init__(self, crew: Crew, name: str, options: dict[str, Any]) -> None:
        self.name = name
        self.crew = crew
        self.consumer = AsyncConsumer(**{**FAST, **crew.options, **options})
        self.story: list[tuple[str, tuple[TopicPartition, ...]]] = []
        self.error: Exception | None = None
        self.assignments = 0
        self._stop = asyncio.Event()
        self.may_poll = asyncio.Event()
        self.may_poll.set()
        self.consumer.subscribe(crew.topics, on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        self.task = asyncio.create_task(self._run())

    @property
    def owned(self) -> frozenset[TopicPartition]:
        return frozenset(one for one, holder in self.crew.holders.items() if holder is self)

    async def _run(self) -> None:
        try:
            while not self._stop.is_set():
                await self.may_poll.wait()
                for record in await self.consumer.poll(100):
                    self.crew.delivered[TopicPartition(record.topic, record.partition)].append(record.offset)
        except Exception as error:  # noqa: BLE001 - for the test to look at
            self.error = error

    def _assigned(self, consumer: AsyncConsumer, partitions: Sequence[TopicPartition]) -> None:
        self.story.append(("assigned", tuple(partitions)))
        self.assignments += 1
        for one in partitions:
            self.crew.took(self, one)
        generation = consumer.group_metadata().generation_id
        for one in consumer.assignment():
            self.crew.owners[generation, one].add(self.name)

    def _revoked(self, _: AsyncConsumer, partitions: Sequence[TopicPartition]) -> None:
        self.story.append(("revoked", tuple(partitions)))
        self._gave_up(partitions)

    def _lost(self, _: AsyncConsumer, partitions: Sequence[TopicPartition]) -> None:
        self.story.append(("lost", tuple(partitions)))
        self._gave_up(partitions)

    def _gave_up(self, partitions: Sequence[TopicPartition]) -> None:
        for one in partitions:
            if self.crew.holders.get(one) is self:
                del self.crew.holders[one]

    async def stop(self, *, leave_group: bool = True) -> None:
        """A clean end."""
        self._stop.set()
        self.may_poll.set()
        await self.task
        await self.consumer.close(leave_group=leave_group)
        self.crew.members.remove(self)

    async def crash(self) -> None:
        """Connections break, and nobody is told."""
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)
        await self.consumer._core.close()
        self._gave_up(list(self.owned))
        self.crew.members.remove(self)


class Crew:
    def __init__(self, bootstrap: str, topics: Any, group: str | None = None, **options: Any) -> None:
        self.topics = [topics] if isinstance(topics, str) else topics
        self.group = group or f"group-{time.time_ns()}-{next(_names)}"
        self.options = {"bootstrap_servers": bootstrap, "group_id": self.group, **options}
        self.members: list[Member] = []
        self.holders: dict[TopicPartition, Member] = {}
        self.owners: dict[tuple[int, TopicPartition], set[str]] = defaultdict(set)
        self.delivered: dict[TopicPartition, list[int]] = defaultdict(list)
        self.twice: list[str] = []

    def took(self, member: Member, partition: TopicPartition) -> None:
        holder = self.holders.get(partition)
        if holder is not None and holder is not member:
            self.twice.append(f"{partition}: {holder.name} and {member.name}")
        self.holders[partition] = member

    def join(self, **options: Any) -> Member:
        # A static member that comes back is the same one, in the same generation.
        member = Member(self, options.get("group_instance_id") or f"member-{next(_names)}", options)
        self.members.append(member)
        return member

    async def settled(self, partitions: Iterable[TopicPartition], *, spread: bool = True) -> None:
        """Until every partition has an owner, and every member one where there are enough."""
        wanted = set(partitions)
        least = len(wanted) // max(1, len(self.members)) if spread else 0

        def done() -> bool:
            self.raise_error()
            if set(self.holders) != wanted:
                return False
            same = {member.consumer.group_metadata().generation_id for member in self.members}
            agreed = all(member.consumer.assignment() == member.owned for member in self.members)
            return len(same) == 1 and agreed and all(len(member.owned) >= least for member in self.members)

        await eventually(done, self.tell)

    async def all_read(self, end_offsets: dict[TopicPartition, int]) -> None:
        def done() -> bool:
            self.raise_error()
            return all(set(range(end)) <= set(self.delivered[one]) for one, end in end_offsets.items())

        await eventually(done, self.tell)

    def raise_error(self) -> None:
        for member in self.members:
            if member.error is not None:
                raise member.error

    def tell(self) -> object:
        return {member.name: (sorted(member.owned), member.story[-4:]) for member in self.members}

    def check(self) -> None:
        """No partition had two owners, in a generation or at a time."""
        twice = {place: owners for place, owners in self.owners.items() if len(owners) > 1}
        assert not twice
        assert not self.twice

    async def end(self) -> None:
        for member in list(self.members):
            await member.stop()

    async def __aenter__(self) -> Crew:
        return self

    async def __aexit__(self, kind: Any, *_: object) -> None:
        if kind is None:
            await self.end()
            self.check()
        else:
            for member in list(self.members):
                await member.crash()


def partitions_of(topic: str, count: int) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for number in range(count)]
