"""The core of both sticky assignors: as even as possible, then as few moves as possible.

Who owned what comes as claims; of two members that claim one partition the later generation is right, and of two with
the same generation neither. Where all members read the same topics every member keeps what it had up to its share, and
members above the smaller share are those that may have the larger one: no other even assignment moves less.

Where they read different topics, everyone keeps all it had, new partitions go to the member with the fewest among those
that can take them, and then partitions are passed on along the shortest chain of members from a fuller to an emptier
one (by two or more) until no such chain is left. By a theorem about semi-matchings that is as even as it can be.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence

from penstock.base.types import TopicPartition

Given = dict[str, list[TopicPartition]]
Move = tuple[str, TopicPartition, str]
"""From whom, what, to whom."""


class Claim:
    """What one member says it had, and in which generation."""

    __slots__ = ("generation", "partitions")

    def __init__(self, partitions: Iterable[TopicPartition], generation: int) -> None:
        self.partitions = tuple(partitions)
        self.generation = generation


def owners_of(claims: Mapping[str, Claim]) -> dict[TopicPartition, str]:
    """Each partition's last owner, without those that two members claim for the same generation."""
    best: dict[TopicPartition, tuple[int, str | None]] = {}
    for member, claim in claims.items():
        for partition in claim.partitions:
            generation, owner = best.get(partition, (claim.generation - 1, None))
            if claim.generation > generation:
                best[partition] = claim.generation, member
            elif claim.generation == generation and owner != member:
                best[partition] = generation, None
    return {partition: owner for partition, (_, owner) in best.items() if owner is not None}


def balance(
    members: Sequence[str],
    readers: Mapping[str, Sequence[str]],
    partitions: Sequence[TopicPartition],
    owners: Mapping[TopicPartition, str],
) -> Given:
    """`members` in order; `readers` by topic, the members that may have its partitions."""
    can_read = {topic: frozenset(found) for topic, found in readers.items()}
    kept: Given = {member: [] for member in members}
    free: list[TopicPartition] = []
    for partition in partitions:
        owner = owners.get(partition)
        if owner is not None and owner in can_read[partition.topic]:
            kept[owner].append(partition)
        else:
            free.append(partition)
    if len({*can_read.values()}) <= 1:
        active = next(iter(can_read.values()), frozenset())
        return kept | _share_evenly([member for member in members if member in active], kept, free)
    _fill(kept, free, readers)
    _pass_on(kept, can_read)
    return {member: sorted(own) for member, own in kept.items()}


def _share_evenly(members: Sequence[str], kept: Given, free: list[TopicPartition]) -> Given:
    if not members:
        return {}
    total = len(free) + sum(len(kept[member]) for member in members)
    least, extras = divmod(total, len(members))
    # Those who have the most keep the larger shares; `sorted` is stable, so ties go by the order of members.
    shares = {
        member: least + (rank < extras) for rank, member in enumerate(sorted(members, key=lambda one: -len(kept[one])))
    }
    given: Given = {}
    for member in members:
        given[member] = kept[member][: shares[member]]
        free.extend(kept[member][shares[member] :])
    free.sort()
    _deal(members, given, shares, deque(free))
    return {member: sorted(own) for member, own in given.items()}


def _deal(members: Sequence[str], given: Given, shares: Mapping[str, int], free: deque[TopicPartition]) -> None:
    """One to each in turn, so that a topic's partitions spread over the members that have room."""
    waiting = deque(member for member in members if len(given[member]) < shares[member])
    while free:
        member = waiting.popleft()
        given[member].append(free.popleft())
        if len(given[member]) < shares[member]:
            waiting.append(member)


def _fill(given: Given, free: Iterable[TopicPartition], readers: Mapping[str, Sequence[str]]) -> None:
    """Partitions that few can take come first: the others still have a choice afterwards."""
    for partition in sorted(free, key=lambda one: (len(readers[one.topic]), one)):
        given[min(readers[partition.topic], key=lambda member: len(given[member]))].append(partition)


def _pass_on(given: Given, can_read: Mapping[str, frozenset[str]]) -> None:
    while chain := _find_chain(given, can_read):
        for giver, partition, taker in chain:
            given[giver].remove(partition)
            given[taker].append(partition)


def _find_chain(given: Given, can_read: Mapping[str, frozenset[str]]) -> list[Move]:
    """A chain from some member to one with at least two partitions less; empty when there is none at all."""
    hopeless: set[str] = set()
    for start in sorted(given, key=lambda member: -len(given[member])):
        if start not in hopeless:
            chain, reached = _chain_from(start, given, can_read)
            if chain:
                return chain
            # Fuller ones were looked at before: where this one finds nobody, those it reaches cannot either.
            hopeless |= reached
    return []


def _chain_from(start: str, given: Given, can_read: Mapping[str, frozenset[str]]) -> tuple[list[Move], set[str]]:
    """The shortest chain of moves from `start`, or none and the members that were reached."""
    enough = len(given[start]) - 2
    came_by: dict[str, tuple[str, TopicPartition]] = {}
    waiting = deque([start])
    while waiting:
        giver = waiting.popleft()
        for taker, partition in _takers(giver, given, can_read).items():
            if taker == start or taker in came_by:
                continue
            came_by[taker] = giver, partition
            if len(given[taker]) <= enough:
                return _walk_back(start, taker, came_by), set()
            waiting.append(taker)
    return [], set(came_by)


def _takers(giver: str, given: Given, can_read: Mapping[str, frozenset[str]]) -> dict[str, TopicPartition]:
    """Members which could take something of `giver`, and what; the emptiest first."""
    last_of_topic: dict[str, TopicPartition] = {each.topic: each for each in given[giver]}
    takers: dict[str, TopicPartition] = {}
    for topic, partition in last_of_topic.items():
        for member in can_read[topic]:
            takers.setdefault(member, partition)
    return dict(sorted(takers.items(), key=lambda item: (len(given[item[0]]), item[0])))


def _walk_back(start: str, end: str, came_by: Mapping[str, tuple[str, TopicPartition]]) -> list[Move]:
    chain = []
    while end != start:
        giver, partition = came_by[end]
        chain.append((giver, partition, end))
        end = giver
    return chain


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topics and numbers, both sorted."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        found[topic].append(number)
    return dict(found)
