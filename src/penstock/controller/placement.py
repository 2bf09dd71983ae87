"""Where the replicas of new partitions go: striped over racks, then over the brokers of a rack.

Each partition starts one rack further than the one before and takes its replicas from one rack after the other, so
that replicas leave the rack whenever there is another. Within a rack brokers take turns. Random starting points keep
many small topics from piling up on the first broker. After every broker has led once the order is drawn anew, so that
the followers of a failed leader are not always the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from penstock.base.errors import ErrorCode, KafkaError
from penstock.metadata.image import BrokerRegistration

T = TypeVar("T")
RandomBelow = Callable[[int], int]
"""A random whole number from 0 up to, but not including, the argument."""


def place_replicas(
    brokers: Iterable[BrokerRegistration], *, partitions: int, replication_factor: int, random_below: RandomBelow
) -> list[tuple[int, ...]]:
    """The replicas of each partition, its first leader in front; KafkaError(INVALID_REPLICATION_FACTOR)."""
    racks = _brokers_by_rack(brokers)
    total = sum(map(len, racks))
    _check_replication_factor(replication_factor, total)
    placed: list[tuple[int, ...]] = []
    while len(placed) < partitions:
        order = _shuffled([_shuffled(rack, random_below) for rack in racks], random_below)
        turns = min(total, partitions - len(placed))
        placed += [_place_one(order, turn, replication_factor) for turn in range(turns)]
    return placed


def _brokers_by_rack(brokers: Iterable[BrokerRegistration]) -> list[list[int]]:
    racks: dict[str, list[int]] = {}
    for broker in sorted(brokers, key=lambda each: each.id):
        racks.setdefault(broker.rack or "", []).append(broker.id)
    return [racks[rack] for rack in sorted(racks)]


def _check_replication_factor(replication_factor: int, brokers: int) -> None:
    if brokers == 0:
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, "All brokers are currently fenced.")
    if replication_factor > brokers:
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"The target replication factor of {replication_factor} cannot be reached because only "
            f"{brokers} broker(s) are registered.",
        )


def _place_one(racks: list[list[int]], turn: int, replication_factor: int) -> tuple[int, ...]:
    """Walk the racks from rack `turn` on, and each rack's brokers from the one whose turn it is."""
    walks = []
    for step in range(len(racks)):
        rack = racks[(turn + step) % len(racks)]
        start = (turn // len(racks)) % len(rack)
        walks.append(rack[start:] + rack[:start])
    depth = max(map(len, walks))
    by_depth = [walk[level] for level in range(depth) for walk in walks if level < len(walk)]
    return tuple(by_depth[:replication_factor])


def _shuffled(items: list[T], random_below: RandomBelow) -> list[T]:
    shuffled = list(items)
    for last in range(len(shuffled) - 1, 0, -1):
        other = random_below(last + 1)
        shuffled[last], shuffled[other] = shuffled[other], shuffled[last]
    return shuffled
