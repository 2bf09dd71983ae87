"""Shards' timers: keys, postponing, cancelling, what a failed one does, and that an idle runtime sleeps."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.base.errors import ErrorCode, KafkaError
from penstock.coordinator.runtime.shard import CancelTimer, Result, ScheduleTimer
from penstock.coordinator.runtime.timers import TimerEntry, TimerQueue, TimerSet
from tests.unit.coordinator.runtime.fakes import FakeWorld, Stage, Words, record


@pytest.fixture
def stage(make_stage: Callable[..., Stage]) -> Stage:
    return make_stage(commits_at_once=True)


def fire(name: str) -> Callable[[Words], Result[None]]:
    def operation(shard: Words) -> Result[None]:
        shard.fired.append(name)
        return Result([record(name, "fired")], None)

    return operation


def test_a_timer_runs_once_as_a_write(stage: Stage) -> None:
    stage.shard.context.timers.schedule("t", 1000, fire("a"))
    stage.world.advance(0.9)
    assert stage.shard.fired == []
    stage.world.advance(0.2)
    assert stage.shard.fired == ["a"]
    assert stage.newest() == {"a": "fired"}
    stage.world.advance(100)
    assert stage.shard.fired == ["a"]


def test_the_timers_of_a_result_are_set_and_cancelled(stage: Stage) -> None:
    def operation(shard: Words) -> Result[None]:
        return Result(
            [],
            None,
            timers=[
                ScheduleTimer(key="t", delay_ms=100, operation=fire("a")),
                ScheduleTimer(key="u", delay_ms=100, operation=fire("b")),
                CancelTimer(key="t"),
                CancelTimer(key="never set"),
            ],
        )

    stage.write(operation)
    stage.world.advance(1)
    assert stage.shard.fired == ["b"]


def test_the_timers_of_a_refused_write_are_not_set(stage: Stage) -> None:
    stage.log.refusals.append(KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS))
    effects = [ScheduleTimer(key="t", delay_ms=100, operation=fire("a"))]
    stage.write(lambda _: Result([record("a", "1")], None, timers=effects)).exception()
    stage.world.advance(1)
    assert stage.shard.fired == []


def test_the_same_key_replaces(stage: Stage) -> None:
    timers = stage.shard.context.timers
    timers.schedule("later", 1000, fire("old"))
    timers.schedule("later", 2000, fire("new"))
    timers.schedule("sooner", 2000, fire("OLD"))
    timers.schedule("sooner", 500, fire("NEW"))
    stage.world.advance(0.6)
    assert stage.shard.fired == ["NEW"]
    stage.world.advance(1)
    assert stage.shard.fired == ["NEW"]
    stage.world.advance(1)
    assert stage.shard.fired == ["NEW", "new"]


def test_one_timer_may_cancel_or_postpone_another_that_is_due_too(stage: Stage) -> None:
    timers = stage.shard.context.timers

    def first(shard: Words) -> Result[None]:
        shard.fired.append("first")
        timers.cancel("second")
        timers.schedule("third", 1000, fire("third"))
        timers.schedule("first", 5000, fire("again"))
        return Result([], None)

    timers.schedule("first", 100, first)
    timers.schedule("second", 100, fire("second"))
    timers.schedule("third", 100, fire("third"))
    stage.world.advance(0.5)
    assert stage.shard.fired == ["first"]
    stage.world.advance(1)
    assert stage.shard.fired == ["first", "third"]
    stage.world.advance(5)
    assert stage.shard.fired == ["first", "third", "again"]


def test_a_failed_timer_is_tried_again_unless_it_says_no(stage: Stage) -> None:
    timers = stage.shard.context.timers
    timers.schedule("t", 100, fire("a"))
    timers.schedule("u", 200, fire("b"), retry=False)
    stage.log.refusals += [KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)] * 2
    stage.world.advance(0.3)
    assert stage.shard.fired == ["a", "b"]
    assert stage.newest() == {}
    stage.world.advance(5)
    assert stage.shard.fired == ["a", "b", "a"]
    assert stage.newest() == {"a": "fired"}


def test_a_timer_whose_write_is_not_committed_in_time_runs_again(make_stage: Callable[..., Stage]) -> None:
    stage = make_stage()
    stage.shard.context.timers.schedule("t", 100, fire("a"))
    stage.world.advance(6)
    assert stage.shard.fired == ["a", "a"]
    stage.log.commit()
    stage.world.advance(60)
    assert stage.shard.fired == ["a", "a"]


def test_timers_end_with_their_shard(stage: Stage) -> None:
    shard = stage.shard
    shard.context.timers.schedule("t", 100, fire("a"))
    stage.log.lose()
    stage.world.advance(1)
    assert shard.fired == []


def test_without_timers_nobody_wakes_up(stage: Stage) -> None:
    assert stage.world.timer_count == 0
    timers = stage.shard.context.timers
    for number in range(100):
        timers.schedule(str(number), 1000 + number, fire("x"))
    assert stage.world.timer_count == 1
    stage.world.advance(10)
    assert stage.world.timer_count == 0
    assert len(stage.shard.fired) == 100


def test_heartbeats_do_not_make_the_heap_grow(stage: Stage) -> None:
    queue = stage.runtime._timers
    timers = stage.shard.context.timers
    for beat in range(5000):
        timers.schedule("session", 10_000, fire("x"))
        if beat % 7 == 0:
            timers.schedule("join", 100, fire("y"))
            timers.cancel("join")
        stage.world.now_s += 0.001
    assert len(queue._heap) < 1000
    assert len(queue) == 1


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("schedule"), st.sampled_from("abcd"), st.integers(0, 50)),
            st.tuples(st.just("cancel"), st.sampled_from("abcd"), st.just(0)),
            st.tuples(st.just("advance"), st.just(""), st.integers(0, 30)),
        ),
        max_size=60,
    )
)
def test_timers_fire_like_a_sorted_list(steps: list[tuple[str, str, int]]) -> None:
    world = FakeWorld()
    fired: list[tuple[float, str]] = []

    def expired(entry: TimerEntry) -> None:
        fired.append((round(world.now_s, 3), entry.key))

    timers = TimerSet(TimerQueue(world, world), expired)
    model: dict[str, float] = {}
    expected: list[tuple[float, str]] = []
    for step, key, amount in steps:
        if step == "schedule":
            timers.schedule(key, amount * 100, lambda _: Result([], None))
            model[key] = world.now_s + amount / 10
        elif step == "cancel":
            timers.cancel(key)
            model.pop(key, None)
        else:
            until = world.now_s + amount / 10 + 0.05
            due = sorted((at, name) for name, at in model.items() if at <= until)
            expected += [(round(at, 3), name) for at, name in due]
            model = {name: at for name, at in model.items() if at > until}
            world.advance(amount / 10 + 0.05)
        assert {name for name in "abcd" if timers.is_scheduled(name)} == set(model)
    assert sorted(fired) == sorted(expected)
    world.close()
