"""Which records the user may not be done with: after a poll, in a loop, and with commits of his own."""

from __future__ import annotations

from penstock.base.types import TopicPartition
from penstock.client.consumer.in_hand import InHand
from penstock.client.consumer.records import ConsumerRecords
from penstock.client.consumer.window import IterationWindow
from penstock.client.core.types import OffsetAndMetadata
from penstock.records.record import ConsumerRecord

FIRST, SECOND = TopicPartition("t", 0), TopicPartition("t", 1)


def records(partition: TopicPartition, *offsets: int) -> list[ConsumerRecord]:
    return [ConsumerRecord(*partition, offset, 0, 0, None, b"", (), -1) for offset in offsets]


def test_all_of_a_poll_is_in_hand_until_the_next_one() -> None:
    in_hand = InHand(IterationWindow())
    in_hand.asked_for_more()
    in_hand.gave({FIRST: 10, SECOND: 3})
    assert in_hand.unhandled() == {FIRST: 10, SECOND: 3}
    in_hand.asked_for_more()
    assert in_hand.unhandled() == {}


def test_of_a_loop_the_current_record_is_in_hand() -> None:
    window = IterationWindow()
    in_hand = InHand(window)
    in_hand.gave({FIRST: 5, SECOND: 0})
    in_hand.gives_one_by_one()
    iterator = window.open(ConsumerRecords([*records(FIRST, 5, 6), *records(SECOND, 0)]))
    assert in_hand.unhandled() == {FIRST: 5, SECOND: 0}
    next(iterator)
    assert in_hand.unhandled() == {FIRST: 5, SECOND: 0}
    next(iterator)
    assert in_hand.unhandled() == {FIRST: 6, SECOND: 0}
    next(iterator)
    assert in_hand.unhandled() == {SECOND: 0}
    in_hand.asked_for_more()
    assert in_hand.unhandled() == {}


def test_what_is_left_of_a_loop_is_not_in_hand_but_not_handled() -> None:
    window = IterationWindow()
    in_hand = InHand(window)
    next(window.open(ConsumerRecords(records(FIRST, 5, 6, 7))))
    in_hand.asked_for_more()
    assert in_hand.unhandled() == {FIRST: 6}


def test_the_users_own_commit_is_never_taken_back() -> None:
    in_hand = InHand(IterationWindow())
    in_hand.gave({FIRST: 10, SECOND: 3})
    in_hand.committed({FIRST: OffsetAndMetadata(15), SECOND: OffsetAndMetadata(1)})
    assert in_hand.unhandled() == {FIRST: 15, SECOND: 3}
