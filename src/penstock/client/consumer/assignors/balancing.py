"""The core of both sticky assignors: as even as possible, then as few moves as possible.

Who owned what comes as claims; of two members that claim one partition the later generation is right, and of two with
the same generation neither. Where all members read the same topics every member keeps what it had up to its share, and
members above the smaller share are those that may have the larger one: no other even assignment moves less.

Where they read different topics, everyone keeps all it had, new partitions go to the member with the fewest among those
that can take them, and then partitions are passed on along the shortest chain of members from a fuller to an emptier
one (by two or more) until no such chain is left. By a theorem about semi-matchings that is as even as it can be.

Last of all, members exchange partitions that are far from them (in other racks) for nearer ones, one for one, as long
as that helps: this changes no count, and a group in which nothing can be exchanged stays as it is.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence

from penstock.base.types import TopicPartition

Given = dict[str, list[TopicPartition]]
Move = tuple[str, TopicPartition, str]
"""From whom, what, to whom."""
IsFar = Callable[[str, TopicPartition], bool]
"""Whether a member would read a partition from another rack."""


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
    is_far: IsFar = lambda _member, _partition: False,
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
        given = kept | _share_evenly([member for member in members if member in active], kept, free, is_far)
    else:
        given = kept
        _fill(given, free, readers, is_far)
        _pass_on(given, can_read)
    _draw_near(given, can_read, is_far)
    return {member: sorted(own) for member, own in given.items()}


def _share_evenly(members: Sequence[str], kept: Given, free: list[TopicPartition], is_far: IsFar) -> Given:
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
    _deal(members, given, shares, sorted(free), is_far)
    return given


def _deal(
    members: Sequence[str], given: Given, shares: Mapping[str, int], free: Iterable[TopicPartition], is_far: IsFar
) -> None:
    """One to each in turn, so that a topic's partitions spread over the members that have room."""
    waiting = [member for member in members if len(given[member]) < shares[member]]
    for partition in free:
        member = next((one for one in waiting if not is_far(one, partition)), waiting[0])
        given[member].append(partition)
        waiting.remove(member)
        if len(given[member]) < shares[member]:
            waiting.append(member)


def _fill(given: Given, free: Iterable[TopicPartition], readers: Mapping[str, Sequence[str]], is_far: IsFar) -> None:
    """Partitions that few can take come first: the others still have a choice afterwards."""
    for partition in sorted(free, key=lambda one: (len(readers[one.topic]), one)):
        taker = min(readers[partition.topic], key=lambda member: (len(given[member]), is_far(member, partition)))
        given[taker].append(partition)


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


def _draw_near(given: Given, can_read: Mapping[str, frozenset[str]], is_far: IsFar) -> None:
    """Exchanges until none would help; each leaves less that is far."""
    is_better = True
    while is_better:
        is_better = False
        for member in given:
            for partition in [one for one in given[member] if is_far(member, one)]:
                is_better |= _exchange(member, partition, given, can_read, is_far)


def _exchange(
    member: str, partition: TopicPartition, given: Given, can_read: Mapping[str, frozenset[str]], is_far: IsFar
) -> bool:
    """Bring one partition near by a move that leaves the counts as they are, or for another in exchange."""
    for other in given:
        if other not in can_read[partition.topic] or is_far(other, partition):
            continue
        back = None
        if len(given[other]) + 1 != len(given[member]):
            back = _in_exchange(member, other, given, can_read, is_far)
            if back is None:
                continue
            given[other].remove(back)
            given[member].append(back)
        given[member].remove(partition)
        given[other].append(partition)
        return True
    return False


def _in_exchange(
    member: str, other: str, given: Given, can_read: Mapping[str, frozenset[str]], is_far: IsFar
) -> TopicPartition | None:
    """What `other` gives back: best of all something that is far from it, never something near that becomes far."""
    possible = [one for one in given[other] if member in can_read[one.topic]]
    return min(
        (one for one in possible if is_far(other, one) or not is_far(member, one)),
        key=lambda one: (not is_far(other, one), is_far(member, one), one),
        default=None,
    )


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Topics and numbers, both sorted."""
    found: dict[str, list[int]] = defaultdict(list)
    for topic, number in sorted(partitions):
        found[topic].append(number)
    return dict(found)
