"""What the consumer reads."""

from __future__ import annotations

import re

import pytest

from penstock.base.types import TopicPartition
from penstock.client.consumer.positions import EARLIEST, FetchStatus
from penstock.client.consumer.subscription import Mode, SubscriptionState
from penstock.client.core.types import OffsetAndMetadata
from penstock.client.errors import InvalidState

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


@pytest.fixture
def subscription() -> SubscriptionState:
    return SubscriptionState(EARLIEST)


def test_the_three_ways_exclude_each_other(subscription: SubscriptionState) -> None:
    subscription.subscribe(["a"])
    with pytest.raises(InvalidState, match="unsubscribe"):
        subscription.assign([A0])
    with pytest.raises(InvalidState, match="pattern"):
        subscription.subscribe_pattern(re.compile("a"))
    subscription.unsubscribe()
    subscription.assign([A0])
    assert subscription.mode is Mode.ASSIGN


def test_a_changed_subscription_says_so(subscription: SubscriptionState) -> None:
    assert subscription.subscribe(["a", "b"])
    assert not subscription.subscribe(["b", "a"])
    assert subscription.subscribe(["a"])


def test_a_pattern_matches_whole_names(subscription: SubscriptionState) -> None:
    subscription.subscribe_pattern(re.compile("a.*"))
    assert subscription.match_pattern(["a", "ab", "ba"])
    assert subscription.topics == {"a", "ab"}
    assert not subscription.match_pattern(["ab", "a"])
    assert subscription.matches_subscription([A0])
    assert not subscription.matches_subscription([B0])


def test_partitions_that_stay_keep_their_positions(subscription: SubscriptionState) -> None:
    subscription.subscribe(["a", "b"])
    subscription.assigned([A0, A1])
    subscription.seek(A0, 7)
    version = subscription.version
    subscription.assign_from_group([A0, B0])
    assert subscription.version > version
    assert subscription.partitions == (A0, B0)
    position = subscription.state(A0).position
    assert position is not None
    assert position.offset == 7
    subscription.revoked([A0])
    subscription.assigned([A0])
    assert subscription.state(A0).status is FetchStatus.INITIALIZING, "what comes back begins again"


def test_the_same_assignment_is_no_change(subscription: SubscriptionState) -> None:
    subscription.assign([A0])
    version = subscription.version
    assert not subscription.assign([A0])
    assert subscription.version == version


def test_the_group_assigns_only_to_subscribers(subscription: SubscriptionState) -> None:
    with pytest.raises(InvalidState):
        subscription.assigned([A0])


def test_an_unassigned_partition_has_no_state(subscription: SubscriptionState) -> None:
    with pytest.raises(InvalidState, match="a-0 is not assigned"):
        subscription.seek(A0, 1)


def test_a_committed_offset_does_not_undo_a_seek(subscription: SubscriptionState) -> None:
    subscription.assign([A0, A1])
    subscription.seek(A0, 3)
    for partition in (A0, A1, B0):
        subscription.set_committed(partition, OffsetAndMetadata(9))
    assert subscription.all_consumed() == {A0: OffsetAndMetadata(3), A1: OffsetAndMetadata(9)}


def test_a_commit_stops_before_what_an_iterator_has_not_given(subscription: SubscriptionState) -> None:
    subscription.assign([A0, A1, B0])
    subscription.seek(A0, 10)
    subscription.seek(A1, 20)
    subscription.unread = lambda: {A0: 4}
    assert subscription.all_consumed() == {A0: OffsetAndMetadata(4), A1: OffsetAndMetadata(20)}


def test_a_commit_never_goes_past_a_position_that_was_sought(subscription: SubscriptionState) -> None:
    """A loop's record is in hand, and the user has gone back behind it."""
    subscription.assign([A0])
    subscription.seek(A0, 2)
    subscription.unread = lambda: {A0: 4}
    assert subscription.all_consumed() == {A0: OffsetAndMetadata(2)}


def test_partitions_about_to_go_are_not_fetched(subscription: SubscriptionState) -> None:
    subscription.subscribe(["a"])
    subscription.assigned([A0])
    subscription.seek(A0, 0)
    subscription.mark_pending_revocation([A0, B0])
    assert not subscription.state(A0).is_fetchable
