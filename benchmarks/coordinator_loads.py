"""Loads on the coordinators: groups that form, offset commits, transactions."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

from benchmarks import coordinator_wire as messages
from benchmarks import wire
from benchmarks.conversations import Conversation, Conversations

HEARTBEAT_SECONDS = 0.02
COORDINATOR_SECONDS = 0.05
RETRY_SECONDS = 0.002


def _until_there(request: bytes, error_of: Callable[[memoryview], int]) -> Conversation:
    """Asks until the coordinator is there."""
    while (error := error_of((yield request))) in messages.RETRIABLE:
        yield COORDINATOR_SECONDS
    _check(error, "the coordinator")


def _check(error: int, what: str) -> None:
    if error:
        raise RuntimeError(f"{what} answered error code {error}")


class FormingGroup:
    """A group whose members all come at the same time; formed when all of them have the same generation."""

    def __init__(self, group: str, size: int) -> None:
        self._group = group
        self._size = size
        self._synced: dict[int, int] = {}
        self._started = 0.0
        self.seconds: float | None = None

    def members(self) -> list[Conversation]:
        """The clock starts with the first request."""
        return [self._member() for _ in range(self._size)]

    def _member(self) -> Conversation:
        self._started = self._started or time.perf_counter()
        yield from _until_there(messages.find_coordinator(self._group), messages.find_coordinator_error)
        member = ""
        while self.seconds is None:
            joined = messages.joined((yield messages.join_group(self._group, member)))
            member = joined.member
            if joined.error in messages.RETRIABLE:
                yield COORDINATOR_SECONDS
                continue
            if joined.error in (messages.MEMBER_ID_REQUIRED, messages.REBALANCE_IN_PROGRESS):
                continue
            _check(joined.error, "JoinGroup")
            error = messages.error_after_throttle((yield messages.sync_group(self._group, joined)))
            if error == messages.REBALANCE_IN_PROGRESS:
                continue
            _check(error, "SyncGroup")
            self._count(joined.generation)
            yield from self._stay(joined)
        # Not measured; without it the next group would share the broker with the end of this one.
        yield messages.leave_group(self._group, member)

    def _count(self, generation: int) -> None:
        self._synced[generation] = self._synced.get(generation, 0) + 1
        if self._synced[generation] == self._size:
            self.seconds = time.perf_counter() - self._started

    def _stay(self, joined: messages.Joined) -> Conversation:
        """Heartbeats until the group is formed or rebalances."""
        while self.seconds is None:
            yield HEARTBEAT_SECONDS
            error = messages.error_after_throttle((yield messages.heartbeat(self._group, joined)))
            if error == messages.REBALANCE_IN_PROGRESS:
                return
            _check(error, "Heartbeat")


def form_groups(port: int, size: int, rounds: int) -> dict[str, float]:
    """Median time in which a new group of so many members becomes stable."""
    name = f"bench-group-{time.time_ns()}"
    return {"milliseconds": statistics.median(_form(port, f"{name}-{one}", size) for one in range(rounds)) * 1000}


def _form(port: int, name: str, size: int) -> float:
    group = FormingGroup(name, size)
    Conversations(port, group.members()).run()
    assert group.seconds is not None
    return group.seconds


def commits(port: int, topic: str, connections: int, count: int) -> dict[str, float]:
    """Offset commits of one partition, one in flight per connection, each connection with a group of its own."""

    def commit(group: str) -> Conversation:
        yield from _until_there(messages.offset_commit(group, topic, 0), messages.offset_commit_error)
        for offset in range(count // connections):
            _check(messages.offset_commit_error((yield messages.offset_commit(group, topic, offset))), "OffsetCommit")

    name = f"bench-commits-{time.time_ns()}"
    find = _until_there(messages.find_coordinator(name), messages.find_coordinator_error)
    Conversations(port, [find]).run()
    seconds = Conversations(port, [commit(f"{name}-{number}") for number in range(connections)]).run()
    return {"commits": count, "seconds": seconds}


def transactions(port: int, topic: str, connections: int, count: int) -> dict[str, float]:
    """Transactions of one record each by producers of the older protocol, one connection per producer."""
    name = f"bench-transactions-{time.time_ns()}"
    producers = [_Producer(f"{name}-{number}", topic) for number in range(connections)]
    # They are there before the clock starts.
    Conversations(port, [one.begin() for one in producers]).run()
    seconds = Conversations(port, [one.run(count // connections) for one in producers]).run()
    return {"transactions": count, "seconds": seconds}


class _Producer:
    def __init__(self, transactional_id: str, topic: str) -> None:
        self._id = transactional_id
        self._topic = topic
        self._identity = (-1, -1)

    def begin(self) -> Conversation:
        find = messages.find_coordinator(self._id, for_transactions=True)
        yield from _until_there(find, messages.find_coordinator_error)
        while (error := messages.error_after_throttle(answer := (yield messages.init_producer_id(self._id)))) in (
            messages.RETRIABLE
        ):
            yield COORDINATOR_SECONDS
        _check(error, "InitProducerId")
        self._identity = messages.producer_id(answer)

    def run(self, count: int) -> Conversation:
        for sequence in range(count):
            yield from self._add_partition()
            batch = messages.transactional_batch(self._identity, sequence, b"x" * 100)
            produced = yield messages.transactional_produce(self._id, self._topic, batch)
            _check(wire.produce_error(produced), "Produce")
            ended = yield messages.end_transaction(self._id, self._identity, commit=True)
            _check(messages.error_after_throttle(ended), "EndTxn")

    def _add_partition(self) -> Conversation:
        add = messages.add_partition(self._id, self._identity, self._topic)
        while error := messages.add_partition_error((yield add)):
            # The markers of the transaction before are still under way.
            if error != messages.CONCURRENT_TRANSACTIONS:
                _check(error, "AddPartitionsToTxn")
            yield RETRY_SECONDS


COORDINATOR_LOADS: dict[str, Callable[..., dict[str, float]]] = {
    load.__name__: load for load in (form_groups, commits, transactions)
}
