"""What the runner does with its queries, and in which order; the queries do what the test says."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.sql.engine.ports import QueryStatus
from penstock.sql.errors import NotReadyError
from penstock.sql.plan.nodes import QueryPlan
from penstock.sql.spark.running import runner as running
from penstock.sql.spark.running.persistent import FollowUp
from penstock.sql.spark.running.runner import RunnerSettings, SparkRunner

WAIT_S = 20.0


class Stage:
    """Where queries play: what they did in turn, and whether a start ends by itself."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.queries: list[FakeQuery] = []
        self.starts_end = threading.Event()
        self.starts_end.set()
        self._changed = threading.Condition()

    def note(self, what: str) -> None:
        with self._changed:
            self.done.append(what)
            self._changed.notify_all()

    def wait_for(self, *done: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(done) <= set(self.done), WAIT_S), self.done


class FakeQuery:
    def __init__(self, stage: Stage, plan: Any, *, paused: bool) -> None:
        stage.queries.append(self)
        self.name = f"{plan.query_id}{plan.text}"
        self.state = "PAUSED" if paused else "STARTING"
        self.need: FollowUp | None = None
        self._stage = stage
        self._broken_off = threading.Event()

    def expect_start(self) -> None:
        self.state = "STARTING"

    def break_off(self) -> None:
        self._broken_off.set()

    def start(self) -> None:
        self._stage.note(f"start {self.name}")
        while not (self._stage.starts_end.wait(0.01) or self._broken_off.is_set()):
            pass
        self.state = "RUNNING"

    def stop(self) -> None:
        self._broken_off.clear()
        self._stage.note(f"stop {self.name}")

    def pause(self) -> None:
        self.stop()
        self.state = "PAUSED"

    def lost(self) -> None:
        self._broken_off.clear()
        self._stage.note(f"lost {self.name}")

    def forget(self) -> None:
        self._stage.note(f"forget {self.name}")

    def needed(self) -> FollowUp | None:
        return self.need

    def follow_up(self) -> None:
        self._stage.note(f"{self.need} {self.name}")
        self.need = None

    def status(self) -> QueryStatus:
        return QueryStatus(state=self.state)  # type: ignore[arg-type]


@pytest.fixture
def stage() -> Stage:
    return Stage()


@pytest.fixture
def runner(stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[SparkRunner]:
    def query(plan: QueryPlan, *_: Any, paused: bool) -> FakeQuery:
        return FakeQuery(stage, plan, paused=paused)

    monkeypatch.setattr(running, "PersistentQuery", query)
    monkeypatch.setattr(running, "Builder", lambda spark, *_: SimpleNamespace(spark=spark))
    monkeypatch.setattr(running, "_LOOK_S", 0.01)
    stores: Any = SimpleNamespace(close_table=lambda name: stage.note(f"forget source {name}"))
    spark: Any = SimpleNamespace(sparkContext=None)
    nothing: Any = None
    settings = RunnerSettings(data_dir=tmp_path, checkpoint_uri="")
    made = SparkRunner(spark, nothing, stores, nothing, settings, lambda entries: None)
    yield made
    stage.starts_end.set()
    made.close()


def plan(query_id: str, text: str = "") -> Any:
    return SimpleNamespace(query_id=query_id, text=text)


def state(runner: SparkRunner, query_id: str) -> str | None:
    status = runner.status(query_id)
    return None if status is None else status.state


def until(check: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not check():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_terminate_answers_while_other_queries_start(runner: SparkRunner, stage: Stage) -> None:
    stage.starts_end.clear()
    for number in range(20):
        runner.start(plan(f"Q{number}"))
    stage.wait_for("start Q0", "start Q1")
    runner.stop("Q19", forget=True)
    assert runner.wait_ended(["Q19"], [], WAIT_S)
    assert stage.done[-2:] == ["stop Q19", "forget Q19"]
    assert "start Q19" not in stage.done
    assert state(runner, "Q19") is None
    assert [state(runner, query_id) for query_id in ("Q0", "Q18")] == ["STARTING", "STARTING"]
    stage.starts_end.set()
    until(lambda: all(state(runner, f"Q{number}") == "RUNNING" for number in range(19)))
    assert "start Q19" not in stage.done


def test_a_query_that_starts_is_broken_off_and_stopped(runner: SparkRunner, stage: Stage) -> None:
    stage.starts_end.clear()
    runner.start(plan("Q"))
    stage.wait_for("start Q")
    runner.pause("Q")
    assert runner.wait_ended(["Q"], [], WAIT_S)
    assert state(runner, "Q") == "PAUSED"
    runner.resume("Q")
    assert state(runner, "Q") == "STARTING"
    stage.starts_end.set()
    until(lambda: state(runner, "Q") == "RUNNING")
    assert stage.done == ["start Q", "stop Q", "start Q"]


def test_a_replaced_query_is_stopped_before_the_new_one_starts(runner: SparkRunner, stage: Stage) -> None:
    runner.start(plan("Q", " old"))
    until(lambda: state(runner, "Q") == "RUNNING")
    runner.start(plan("Q", " new"))
    stage.wait_for("start Q new")
    assert stage.done == ["start Q old", "stop Q old", "start Q new"]


def test_a_source_is_forgotten_when_its_query_has_stopped_and_before_another_starts(
    runner: SparkRunner, stage: Stage
) -> None:
    stage.starts_end.clear()
    runner.start(plan("Q"))
    stage.wait_for("start Q")
    runner.stop("Q", forget=True)
    runner.forget_source("T")
    runner.start(plan("NEXT"))
    assert runner.wait_ended(["Q"], ["T"], WAIT_S)
    stage.wait_for("start NEXT")
    assert stage.done == ["start Q", "stop Q", "forget Q", "forget source T", "start NEXT"]


def test_a_query_that_is_paused_from_its_beginning_starts_on_resume(runner: SparkRunner, stage: Stage) -> None:
    runner.start(plan("Q"), paused=True)
    assert state(runner, "Q") == "PAUSED"
    runner.resume("Q")
    stage.wait_for("start Q")


def test_what_time_makes_necessary_is_done_once(runner: SparkRunner, stage: Stage) -> None:
    runner.start(plan("Q"))
    until(lambda: state(runner, "Q") == "RUNNING")
    stage.queries[0].need = "fail"
    until(lambda: stage.queries[0].need is None)
    stage.queries[0].need = "settle"
    stage.wait_for("settle Q")
    assert stage.done == ["start Q", "fail Q", "settle Q"]


def test_queries_go_on_when_java_was_started_anew(runner: SparkRunner, stage: Stage) -> None:
    for query_id in ("RUNS", "STOPS"):
        runner.start(plan(query_id))
    runner.start(plan("PAUSED"), paused=True)
    stage.wait_for("start RUNS", "start STOPS")
    runner.spark_ended()
    stage.wait_for("lost RUNS", "lost STOPS", "lost PAUSED")
    with pytest.raises(NotReadyError, match="Spark is starting again"):
        runner.check(plan("X"))
    runner.start(plan("LATE"))
    runner.stop("STOPS", forget=True)
    assert not runner.wait_ended(["STOPS"], [], 0.1)  # only Spark can delete its checkpoint
    assert "start LATE" not in stage.done
    stage.done.clear()
    spark: Any = SimpleNamespace(sparkContext=None)
    runner.use(spark)
    stage.wait_for("start RUNS", "start LATE", "forget STOPS")
    assert runner.builder.spark is spark
    assert runner.wait_ended(["STOPS"], [], WAIT_S)
    assert sorted(stage.done) == ["forget STOPS", "start LATE", "start RUNS"]


def test_a_close_stops_everything_and_starts_nothing_any_more(runner: SparkRunner, stage: Stage) -> None:
    stage.starts_end.clear()
    for number in range(6):
        runner.start(plan(f"Q{number}"))
    stage.wait_for("start Q0")
    runner.close()
    stopped = [each for each in stage.done if each.startswith("stop")]
    assert sorted(stopped) == [f"stop Q{number}" for number in range(6)]
    assert "start Q5" not in stage.done
