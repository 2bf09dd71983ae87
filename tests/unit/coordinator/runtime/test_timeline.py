"""The timeline structures against copies of plain dictionaries, one for each offset."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from penstock.coordinator.runtime.timeline import NOT_REPLAYING, Timeline, TimelineDict

KEYS = st.sampled_from("abcd")


class TimelineMachine(RuleBasedStateMachine):
    """`history[n]` is how everything was before the record at offset n."""

    def __init__(self) -> None:
        super().__init__()
        self.timeline = Timeline()
        self.left: TimelineDict[str, int] = TimelineDict(self.timeline)
        self.right: TimelineDict[str, int] = TimelineDict(self.timeline)
        self.model: tuple[dict[str, int], dict[str, int]] = ({}, {})
        self.end = 0
        self.committed = 0
        self.history = {0: self.model}

    @rule(
        changes=st.lists(st.tuples(st.sampled_from(("left", "right")), KEYS, st.none() | st.integers(0, 9)), max_size=4)
    )
    def replay(self, changes: list[tuple[str, str, int | None]]) -> None:
        left, right = dict(self.model[0]), dict(self.model[1])
        self.timeline.now = self.end
        for target, key, number in changes:
            structure, model = (self.left, left) if target == "left" else (self.right, right)
            if number is None:
                assert structure.pop(key, -7) == model.pop(key, -7)
            else:
                structure.set(key, number)
                model[key] = number
        self.timeline.now = NOT_REPLAYING
        self.end += 1
        self.model = (left, right)
        self.history[self.end] = self.model

    @precondition(lambda self: self.committed < self.end)
    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        self.committed = data.draw(st.integers(self.committed, self.end))
        self.timeline.commit(self.committed)

    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        self.end = data.draw(st.integers(self.committed, self.end))
        self.timeline.rollback(self.end)
        self.model = self.history[self.end]

    @precondition(lambda self: self.committed > 0)
    @rule()
    def what_is_committed_stays(self) -> None:
        with pytest.raises(ValueError, match="committed"):
            self.timeline.rollback(self.committed - 1)

    @invariant()
    def both_views_are_right(self) -> None:
        self.timeline.check_invariants()
        committed = self.history[self.committed]
        for structure, newest, old in (
            (self.left, self.model[0], committed[0]),
            (self.right, self.model[1], committed[1]),
        ):
            assert dict(structure.items()) == newest
            assert dict(structure.items_committed()) == old
            assert sorted(structure) == sorted(newest)
            assert sorted(structure.keys_committed()) == sorted(old)
            assert sorted(structure.values_committed()) == sorted(old.values())
            assert len(structure) == len(newest)
            for key in "abcd":
                assert structure.get(key, -7) == newest.get(key, -7)
                assert structure.get_committed(key, -7) == old.get(key, -7)
                assert (key in structure) == (key in newest)
        if self.committed == self.end:
            assert self.timeline.pending_count == 0


TimelineMachine.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
test_timeline = TimelineMachine.TestCase


def test_writes_below_the_committed_end_are_not_journalled() -> None:
    timeline = Timeline(committed_end=10)
    words: TimelineDict[str, int] = TimelineDict(timeline)
    timeline.now = 9
    words.set("a", 1)
    assert timeline.pending_count == 0
    assert words.get_committed("a") == 1
    timeline.now = 10
    words.set("a", 2)
    assert timeline.pending_count == 1
    assert (words["a"], words.get_committed("a")) == (2, 1)


def test_nothing_changes_outside_of_a_replay() -> None:
    words: TimelineDict[str, int] = TimelineDict(Timeline())
    with pytest.raises(RuntimeError):
        words.set("a", 1)
