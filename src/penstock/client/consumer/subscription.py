"""What the consumer reads: topics, a pattern or chosen partitions, and the state of every partition it has now.

One of the three ways is chosen by the first call and stays until `unsubscribe`. With topics or a pattern the partitions
come and go through the group: `assigned` adds, `revoked` and `lost` take away, `assign_from_group` does both at once
and leaves what stays untouched (a cooperative rebalance goes on reading those). With `assign` the user chooses.

Pure and for one loop. `version` grows with every change of the assignment, so that others can see that there was one.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from penstock.base.types import TopicPartition
from penstock.client.consumer.positions import (
    FetchPosition,
    FetchStatus,
    PartitionState,
    ResetPolicy,
)
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import InvalidState

_NOTHING: Final[Mapping[TopicPartition, int]] = {}


class Mode(enum.Enum):
    NONE = "nothing"
    TOPICS = "topics"
    PATTERN = "a pattern"
    ASSIGN = "chosen partitions"


class SubscriptionState:
    def __init__(self, reset_policy: ResetPolicy) -> None:
        self.reset_policy = reset_policy
        self.mode = Mode.NONE
        self.topics: frozenset[str] = frozenset()
        """Topics the user named, or those that match the pattern."""
        self.pattern: re.Pattern[str] | None = None
        self.listener: object | None = None
        self.version = 0
        self.unread: Callable[[], Mapping[TopicPartition, int]] = lambda: _NOTHING
        """Offsets of the first records that were taken for an iterator but not yet given to the user; when an exception
        ends his work, of those that he is not done with."""
        self._partitions: dict[TopicPartition, PartitionState] = {}

    # How partitions are chosen.

    @property
    def uses_group(self) -> bool:
        """Whether partitions come from the group."""
        return self.mode in (Mode.TOPICS, Mode.PATTERN)

    def subscribe(self, topics: Iterable[str], listener: object | None = None) -> bool:
        """True when the set of topics changed."""
        wanted = frozenset(topics)
        self._enter(Mode.TOPICS)
        self.listener = listener
        changed = wanted != self.topics
        self.topics = wanted
        return changed

    def subscribe_pattern(self, pattern: re.Pattern[str], listener: object | None = None) -> None:
        self._enter(Mode.PATTERN)
        self.listener = listener
        self.pattern = pattern

    def match_pattern(self, names: Iterable[str]) -> bool:
        """Take the topics that the pattern matches out of `names`; True when that is another set than before."""
        assert self.pattern is not None
        matched = frozenset(name for name in names if self.pattern.fullmatch(name))
        changed = matched != self.topics
        self.topics = matched
        return changed

    def assign(self, partitions: Iterable[TopicPartition]) -> bool:
        """The user's own choice; partitions that stay keep their positions. True when the set changed."""
        self._enter(Mode.ASSIGN)
        changed = self._set_partitions(partitions)
        self.topics = frozenset(partition.topic for partition in self._partitions)
        return changed

    def unsubscribe(self) -> None:
        self.mode = Mode.NONE
        self.topics = frozenset()
        self.pattern = None
        self.listener = None
        self._set_partitions(())

    # What the group does.

    def assign_from_group(self, partitions: Iterable[TopicPartition]) -> bool:
        """The whole assignment of a new generation; what stays is left as it is."""
        self._check_group()
        return self._set_partitions(partitions)

    def assigned(self, partitions: Iterable[TopicPartition]) -> None:
        """These come in addition; one that is there already is left as it is."""
        self._check_group()
        self._set_partitions([*self._partitions, *partitions])

    def revoked(self, partitions: Iterable[TopicPartition]) -> None:
        """These are given up."""
        gone = set(partitions)
        self._set_partitions([each for each in self._partitions if each not in gone])

    def lost(self, partitions: Iterable[TopicPartition]) -> None:
        """These belong to somebody else already."""
        self.revoked(partitions)

    def mark_pending_revocation(self, partitions: Iterable[TopicPartition]) -> None:
        """About to be given up: nothing is fetched for them while the listener is asked."""
        for partition in partitions:
            if (state := self._partitions.get(partition)) is not None:
                state.pending_revocation = True

    def matches_subscription(self, partitions: Iterable[TopicPartition]) -> bool:
        """Whether all these could be meant for this member: a late assignment may be for an older subscription."""
        if self.mode is Mode.PATTERN:
            assert self.pattern is not None
            return all(self.pattern.fullmatch(each.topic) for each in partitions)
        return all(each.topic in self.topics for each in partitions)

    # Partitions.

    @property
    def partitions(self) -> tuple[TopicPartition, ...]:
        """In the order in which they came."""
        return tuple(self._partitions)

    def __contains__(self, partition: object) -> bool:
        return partition in self._partitions

    def __len__(self) -> int:
        return len(self._partitions)

    def get(self, partition: TopicPartition) -> PartitionState | None:
        return self._partitions.get(partition)

    def state(self, partition: TopicPartition) -> PartitionState:
        """`InvalidState` for a partition that is not assigned."""
        try:
            return self._partitions[partition]
        except KeyError:
            raise InvalidState(
                f"Partition {partition} is not assigned to this consumer: assign it, or wait for the group to."
            ) from None

    def items(self) -> Iterator[tuple[TopicPartition, PartitionState]]:
        return iter(self._partitions.items())

    def in_status(self, status: FetchStatus) -> list[TopicPartition]:
        return [partition for partition, state in self._partitions.items() if state.status is status]

    def paused(self) -> frozenset[TopicPartition]:
        return frozenset(partition for partition, state in self._partitions.items() if state.paused)

    # Offsets.

    def seek(self, partition: TopicPartition, offset: int, leader_epoch: int = -1) -> None:
        self.state(partition).seek_unvalidated(FetchPosition(offset, leader_epoch))

    def request_reset(self, partition: TopicPartition, policy: ResetPolicy | None = None) -> None:
        self.state(partition).request_reset(policy or self.reset_policy)

    def set_committed(self, partition: TopicPartition, committed: OffsetAndMetadata) -> None:
        """Begin a partition without a position where the group stopped. Others are left alone: a seek came first."""
        state = self._partitions.get(partition)
        if state is not None and state.status is FetchStatus.INITIALIZING:
            state.seek_unvalidated(FetchPosition(committed.offset, committed.leader_epoch))

    def all_consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What a commit without offsets commits: the position behind what the user was given, of each partition."""
        unread = self.unread()
        consumed = {}
        for partition, state in self._partitions.items():
            position = state.position
            if position is None or not state.has_valid_position:
                continue
            # The user may have gone back behind what he has in hand.
            offset = min(unread.get(partition, position.offset), position.offset)
            epoch = position.offset_epoch if offset == position.offset else -1
            consumed[partition] = OffsetAndMetadata(offset, "", epoch)
        return consumed

    # Inside.

    def _enter(self, mode: Mode) -> None:
        if self.mode not in (Mode.NONE, mode):
            raise InvalidState(
                f"This consumer reads {self.mode.value} already and cannot read {mode.value} as well: "
                "call unsubscribe() first."
            )
        self.mode = mode

    def _check_group(self) -> None:
        if not self.uses_group:
            raise InvalidState("The group assigned partitions to a consumer that has no subscription.")

    def _set_partitions(self, partitions: Iterable[TopicPartition]) -> bool:
        before = self._partitions
        after = {partition: before.get(partition) or PartitionState() for partition in partitions}
        self._partitions = after
        changed = after.keys() != before.keys()
        self.version += changed
        return changed
