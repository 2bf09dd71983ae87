"""The states of one partition's position."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.base.config.rules import BadValueError
from penstock.client.consumer.positions import (
    EARLIEST,
    LATEST,
    FetchPosition,
    FetchStatus,
    PartitionState,
    parse_reset_policy,
)


def at(offset: int, epoch: int = -1, leader: int | None = None, leader_epoch: int = -1) -> FetchPosition:
    return FetchPosition(offset, epoch, leader, leader_epoch)


def test_a_partition_begins_without_a_position() -> None:
    state = PartitionState()
    assert state.status is FetchStatus.INITIALIZING
    assert not state.is_fetchable
    assert state.lag(read_committed=False) is None


def test_a_seek_without_an_epoch_is_trusted() -> None:
    state = PartitionState()
    state.seek_unvalidated(at(5))
    assert state.is_fetchable
    assert not state.leader_is(1, 7), "there is no epoch to hold against the leader's"
    assert state.position == at(5, -1, 1, 7)


def test_a_position_with_an_epoch_is_validated_against_each_new_leader() -> None:
    state = PartitionState()
    state.seek_unvalidated(at(5, epoch=2))
    assert state.leader_is(1, 3)
    asked = state.position
    assert asked is not None
    assert state.status is FetchStatus.AWAIT_VALIDATION
    assert state.validated(asked)
    assert not state.leader_is(1, 3), "the same leader is not asked again"
    state.advance(9, 3)
    assert state.leader_is(2, 4)


def test_an_answer_about_an_older_position_validates_nothing() -> None:
    state = PartitionState()
    state.seek_unvalidated(at(5, 2, 1, 3))
    asked = state.position
    assert asked is not None
    state.seek_unvalidated(at(6, 2, 1, 3))
    assert not state.validated(asked)
    assert state.status is FetchStatus.AWAIT_VALIDATION


def test_everything_but_reading_on_changes_the_generation() -> None:
    state = PartitionState()
    generations = [state.generation]
    for change in (
        lambda: state.seek(at(1)),
        lambda: state.request_reset(EARLIEST),
        lambda: state.seek_unvalidated(at(2, 1)),
        lambda: state.leader_is(1, 1),
    ):
        change()
        generations.append(state.generation)
    assert sorted(set(generations)) == generations
    state.skip_validation()
    state.advance(3, 1)
    assert state.generation == generations[-1]


def test_a_seek_ends_a_reset() -> None:
    state = PartitionState()
    state.request_reset(LATEST)
    assert state.position is None
    state.seek(at(3))
    assert (state.status, state.reset_policy) == (FetchStatus.FETCHING, None)


def test_lag_counts_to_what_the_reader_may_see() -> None:
    state = PartitionState()
    state.seek(at(3))
    state.end_offset = 7
    assert state.lag(read_committed=True) == 4
    state.high_watermark, state.last_stable_offset = 10, 8
    assert (state.lag(read_committed=False), state.lag(read_committed=True)) == (7, 5)


def test_a_follower_is_read_until_its_lease_is_over() -> None:
    state = PartitionState()
    state.seek(at(0, -1, 1, 1))
    state.prefer_replica(3, until=10.0)
    assert state.read_replica(9.9) == 3
    assert state.read_replica(10.0) is None
    state.prefer_replica(3, until=20.0)
    state.leader_is(2, 2)
    assert state.read_replica(11.0) is None, "a new leader chooses again"


@pytest.mark.parametrize(
    ("text", "kind", "duration_ms"),
    [
        ("earliest", "earliest", 0),
        (" LATEST ", "latest", 0),
        ("none", "none", 0),
        ("by_duration:PT1H", "by_duration", 3_600_000),
        ("by_duration:P1DT2H3M4.5S", "by_duration", 93_784_500),
    ],
)
def test_reset_policies_are_read(text: str, kind: str, duration_ms: int) -> None:
    policy = parse_reset_policy(text)
    assert (policy.kind, policy.duration_ms) == (kind, duration_ms)


@pytest.mark.parametrize("text", ["", "first", "by_duration", "by_duration:", "by_duration:P", "by_duration:1h"])
def test_other_words_are_no_policy(text: str) -> None:
    with pytest.raises(BadValueError):
        parse_reset_policy(text)


def test_a_policy_says_what_to_ask_for() -> None:
    assert EARLIEST.timestamp(5) == -2
    assert LATEST.timestamp(5) == -1
    assert parse_reset_policy("none").timestamp(5) is None
    assert parse_reset_policy("by_duration:PT1S").timestamp(5_000) == 4_000


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("seek"), st.integers(0, 9), st.integers(-1, 3)),
        st.tuples(st.just("leader"), st.integers(1, 3), st.integers(0, 3)),
        st.tuples(st.just("reset")),
        st.tuples(st.just("validated")),
    ),
    max_size=30,
)


@given(_STEPS)
def test_no_sequence_leaves_a_partition_that_is_read_without_a_position(steps: list[tuple[object, ...]]) -> None:
    state = PartitionState()
    for step in steps:
        match step:
            case ("seek", int(offset), int(epoch)):
                state.seek_unvalidated(at(offset, epoch))
            case ("leader", int(leader), int(epoch)):
                state.leader_is(leader, epoch)
            case ("reset",):
                state.request_reset(EARLIEST)
            case _ if state.position is not None:
                state.validated(state.position)
        assert (state.position is None) == (state.status in (FetchStatus.INITIALIZING, FetchStatus.AWAIT_RESET))
        if state.status is FetchStatus.AWAIT_VALIDATION:
            assert state.position is not None
            assert state.position.offset_epoch >= 0
