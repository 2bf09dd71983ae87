"""Works of many keys on a few threads: in turn for one key, side by side for others, ends ahead of starts."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from penstock.sql.spark.running.lanes import Lanes

WAIT_S = 20.0


class Recorder:
    """Works that say when they begin, and end when they are let go."""

    def __init__(self) -> None:
        self.began: list[str] = []
        self.most_at_once: dict[str, int] = {}
        self._now: list[str] = []
        self._let_go: dict[str, threading.Event] = {}
        self._changed = threading.Condition()

    def work(self, name: str, *, held: bool = False) -> Callable[[], None]:
        """The first part of the name is the key."""
        self._let_go[name] = threading.Event()
        if not held:
            self._let_go[name].set()
        return lambda: self._run(name)

    def let_go(self, name: str) -> None:
        self._let_go[name].set()

    def wait_for(self, *names: str) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: set(names) <= set(self.began), WAIT_S), self.began

    def _run(self, name: str) -> None:
        key = name.split()[0]
        with self._changed:
            self.began.append(name)
            self._now.append(key)
            self.most_at_once[key] = max(self.most_at_once.get(key, 0), self._now.count(key))
            self._changed.notify_all()
        assert self._let_go[name].wait(WAIT_S)
        with self._changed:
            self._now.remove(key)


@pytest.fixture
def errors() -> list[Exception]:
    return []


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def lanes(errors: list[Exception]) -> Iterator[Lanes]:
    made = Lanes({"start": 2, "end": 1}, errors.append, "test")
    yield made
    assert made.close(WAIT_S)


def test_ends_overtake_the_starts_of_others(lanes: Lanes, recorder: Recorder) -> None:
    for name in ("a start", "b start", "c start", "d start"):
        lanes.put("start", name[0], recorder.work(name, held=name[0] in "ab"))
    recorder.wait_for("a start", "b start")
    lanes.put("end", "d", recorder.work("d end"))
    lanes.drop_starts("d")
    assert lanes.wait_ended(["d"], WAIT_S)
    assert recorder.began == ["a start", "b start", "d end"]
    recorder.let_go("a start")
    recorder.wait_for("c start")
    assert "d start" not in recorder.began
    recorder.let_go("b start")


def test_an_end_waits_for_the_start_of_its_own_key_that_runs(lanes: Lanes, recorder: Recorder) -> None:
    lanes.put("start", "a", recorder.work("a start", held=True))
    recorder.wait_for("a start")
    lanes.drop_starts("a")
    lanes.put("end", "a", recorder.work("a end"))
    assert not lanes.wait_ended(["a"], 0.05)
    assert not lanes.is_idle("a")
    recorder.let_go("a start")
    assert lanes.wait_ended(["a"], WAIT_S)
    assert recorder.began == ["a start", "a end"]


def test_works_of_one_key_never_run_at_once(lanes: Lanes, recorder: Recorder) -> None:
    for number in range(30):
        for key in "abc":
            lanes.put("end" if number % 3 else "start", key, recorder.work(f"{key} {number}"))
    assert lanes.wait_ended("abc", WAIT_S)
    assert recorder.most_at_once == {"a": 1, "b": 1, "c": 1}
    for key in "abc":
        assert [name for name in recorder.began if name[0] == key] == [f"{key} {number}" for number in range(30)]


def test_a_work_waits_for_those_it_comes_after(lanes: Lanes, recorder: Recorder) -> None:
    lanes.put("start", "a", recorder.work("a start", held=True))
    recorder.wait_for("a start")
    end = lanes.put("end", "a", recorder.work("a end"))
    forget = lanes.put("end", "source x", recorder.work("source x", held=False), after=[end])
    lanes.put("start", "b", recorder.work("b start"), after=[forget])
    lanes.put("start", "c", recorder.work("c start"))
    recorder.wait_for("c start")
    assert recorder.began == ["a start", "c start"]
    recorder.let_go("a start")
    recorder.wait_for("b start")
    assert recorder.began == ["a start", "c start", "a end", "source x", "b start"]


def test_a_gate_holds_works_back_until_it_is_opened(lanes: Lanes, recorder: Recorder) -> None:
    gate = lanes.gate()
    lanes.put("end", "a", recorder.work("a end"), after=[gate])
    lanes.put("end", "b", recorder.work("b end"))
    assert lanes.wait_ended(["b"], WAIT_S)
    assert recorder.began == ["b end"]
    lanes.open(gate)
    assert lanes.wait_ended(["a"], WAIT_S)


def test_a_work_that_fails_is_told_and_ends_no_thread(
    lanes: Lanes, recorder: Recorder, errors: list[Exception]
) -> None:
    def fail() -> None:
        raise ValueError("broken")

    lanes.put("end", "a", fail)
    lanes.put("end", "a", recorder.work("a end"))
    assert lanes.wait_ended(["a"], WAIT_S)
    assert recorder.began == ["a end"]
    assert [str(error) for error in errors] == ["broken"]


def test_a_close_drops_starts_and_waits_for_ends(recorder: Recorder) -> None:
    lanes = Lanes({"start": 1, "end": 1}, lambda error: None, "test")
    lanes.put("start", "a", recorder.work("a start", held=True))
    recorder.wait_for("a start")
    lanes.put("start", "b", recorder.work("b start"))
    lanes.put("end", "a", recorder.work("a end"))
    recorder.let_go("a start")
    assert lanes.close(WAIT_S)
    assert recorder.began == ["a start", "a end"]
    assert lanes.put("start", "a", recorder.work("a late")).done
    assert lanes.is_idle("a")


def test_a_close_that_waits_too_long_says_so(recorder: Recorder) -> None:
    lanes = Lanes({"start": 1, "end": 1}, lambda error: None, "test")
    lanes.put("end", "a", recorder.work("a end", held=True))
    recorder.wait_for("a end")
    assert not lanes.close(0.05)
    recorder.let_go("a end")
