"""What the user was given last and may not be done with: an exception says that he is not.

Asking for more (a poll, the next turn of a loop) says that he is done with everything before. A loop has one record in
hand, a poll all that it gave. What he commits himself meanwhile he is done with, too.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.base.types import TopicPartition
from penstock.client.consumer.window import IterationWindow
from penstock.client.core.types import OffsetAndMetadata


class InHand:
    def __init__(self, window: IterationWindow) -> None:
        self._window = window
        self._first: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}

    def asked_for_more(self) -> None:
        """A poll begins."""
        self._first.clear()
        self._committed.clear()
        self._window.settle()

    def gave(self, first: Mapping[TopicPartition, int]) -> None:
        """A poll gives records from these offsets on."""
        self._first.update(first)

    def gives_one_by_one(self) -> None:
        """What the poll gave goes to a loop: only its current record is in hand, and the window knows that one."""
        self._first.clear()

    def committed(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """By the user himself."""
        self._committed.update({partition: each.offset for partition, each in offsets.items()})

    def unhandled(self) -> dict[TopicPartition, int]:
        """Per partition the offset of the first record that the user is not known to be done with."""
        found = self._window.unread()
        current = self._window.current
        in_hand = [*self._first.items()]
        if current is not None:
            in_hand.append((TopicPartition(current.topic, current.partition), current.offset))
        for partition, offset in in_hand:
            offset = max(offset, self._committed.get(partition, 0))
            found[partition] = min(offset, found.get(partition, offset))
        return found
