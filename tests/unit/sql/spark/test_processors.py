"""What the processors give in the end does not depend on how rows were put into batches."""

from __future__ import annotations

import itertools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import Row

from penstock.sql.functions.registry import FunctionRegistry
from penstock.sql.spark.operators.eager_join import EagerJoinProcessor, Side
from penstock.sql.spark.operators.sessions import PythonAggregate, SessionProcessor
from penstock.sql.spark.operators.undo import UndoProcessor
from penstock.sql.types import BIGINT
from tests.unit.sql.spark.memory_state import run, started

GAP_MS = 10
batches_of_times = st.lists(st.lists(st.integers(0, 120), max_size=6), max_size=6)


def _count() -> PythonAggregate:
    function = FunctionRegistry.builtin().aggregate("COUNT")
    assert function is not None
    return PythonAggregate(name="C", function=function, arguments=(), type=BIGINT)


def _sessions(times: list[int]) -> dict[tuple[int, int], int]:
    """All times at once: a gap longer than the window's ends a session."""
    found: list[list[int]] = []
    for time in sorted(times):
        if found and time - found[-1][-1] <= GAP_MS:
            found[-1].append(time)
        else:
            found.append([time])
    return {(session[0], session[-1]): len(session) for session in found}


@given(batches_of_times)
def test_sessions_are_those_of_all_rows_together(batches: list[list[int]]) -> None:
    processor = SessionProcessor(gap_ms=GAP_MS, keys=("K",), aggregates=(_count(),), order=("ROWTIME", "OFFSET"))
    started(processor)
    offsets = itertools.count()
    given_rows = [[Row(ROWTIME=time, OFFSET=next(offsets)) for time in batch] for batch in batches]
    table: dict[tuple[int, int], int] = {}
    for changes in run(processor, given_rows):
        for change in changes:
            bounds = change.WINDOWSTART, change.WINDOWEND
            if change["__DELETED"]:
                del table[bounds]  # what is deleted was there
            else:
                table[bounds] = change.C
    assert table == _sessions([time for batch in batches for time in batch])


def test_a_session_is_forgotten_when_the_watermark_passes_its_end() -> None:
    processor = SessionProcessor(gap_ms=GAP_MS, keys=("K",), aggregates=(_count(),), order=("ROWTIME",))
    state = started(processor)
    run(processor, [[Row(ROWTIME=5), Row(ROWTIME=100)]])
    assert state.timers == {6, 101}
    processor.forget(5)
    assert [each[:2] for each in processor.load()] == [(5, 5), (100, 100)]
    processor.forget(6)
    assert [each[:2] for each in processor.load()] == [(100, 100)]
    processor.forget(101)
    assert state.state.value is None


def _join(kind: str) -> EagerJoinProcessor:
    left = Side(names=("L",), order=("O",), outer=kind in ("LEFT", "FULL"), before_ms=3, after_ms=7)
    right = Side(names=("R",), order=("O",), outer=kind in ("RIGHT", "FULL"), before_ms=7, after_ms=3)
    return EagerJoinProcessor(left=left, right=right)


def _row(side: int, time: int, offset: int) -> Row:
    return Row(__SIDE=side, __TIME=time, L=(offset, time), R=(offset, time), O=offset)


sided_times = st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 30)), max_size=5), max_size=5)


@given(sided_times)
def test_eager_pairs_are_all_that_lie_within_and_outer_rows_come_first(batches: list[list[tuple[int, int]]]) -> None:
    processor = _join("FULL")
    started(processor)
    offsets = itertools.count()
    rows = [[_row(side, time, next(offsets)) for side, time in batch] for batch in batches]
    every = [row for batch in rows for row in batch]
    lefts = [row.L for row in every if row["__SIDE"] == 0]
    rights = [row.R for row in every if row["__SIDE"] == 1]
    given_out: list[tuple[Any, Any]] = [(row.L, row.R) for changes in run(processor, rows) for row in changes]
    pairs = [each for each in given_out if None not in each]
    assert sorted(pairs) == sorted((one, other) for one in lefts for other in rights if -3 <= other[1] - one[1] <= 7)
    alone = [each for each in given_out if None in each]
    assert len(alone) == len(set(alone)), "each row goes out alone once at most"
    for one in lefts:
        assert any(each[0] == one for each in given_out), "no row of an outer side is lost"


def test_rows_without_a_key_meet_nobody_and_leave_no_state() -> None:
    processor = _join("LEFT")
    state = started(processor)
    [rows] = run(processor, [[_row(0, 1, 1), _row(1, 1, 2)]], key=(None,))
    assert [(row.L, row.R) for row in rows] == [((1, 1), None)]
    assert state.state.value is None


def test_rows_of_a_join_are_forgotten_when_no_partner_can_come() -> None:
    processor = _join("LEFT")
    state = started(processor)
    run(processor, [[_row(0, 10, 1), _row(1, 10, 2)]])
    assert state.timers == {18, 14}
    processor.forget(14)
    assert processor.load() == ([(10, ((1, 10),))], [])
    processor.forget(18)
    assert state.state.value is None


@given(st.lists(st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=4), max_size=6))
def test_signed_changes_add_up_to_the_last_row(batches: list[list[int | None]]) -> None:
    processor = UndoProcessor(("V",), ("OFFSET",))
    started(processor)
    offsets = itertools.count()
    rows = [
        [Row(V=value, OFFSET=next(offsets), ROWTIME=1, __DELETED=value is None) for value in batch][::-1]
        for batch in batches
    ]
    total: dict[int, int] = {}
    for changes in run(processor, rows):
        for change in changes:
            total[change.V] = total.get(change.V, 0) + change["__SIGN"]
    written = [value for batch in batches for value in batch]
    last = written[-1] if written else None
    assert {value: count for value, count in total.items() if count} == ({} if last is None else {last: 1})
