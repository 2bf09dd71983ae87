"""Rows on their way: bounds, limits, ends."""

from __future__ import annotations

import threading

import pytest

from penstock.sql.engine.rows import ROWS_MAX, IteratedRows, Row, RowQueue


def rows(*values: int) -> list[Row]:
    return [Row([value]) for value in values]


def test_rows_come_in_order_and_in_portions() -> None:
    queue = RowQueue()
    queue.put(rows(1, 2, 3))
    assert queue.take(2, 0) == rows(1, 2)
    assert queue.take(2, 0) == rows(3)
    assert queue.take(2, 0) == []


def test_a_limit_ends_the_query_after_that_many_rows() -> None:
    queue = RowQueue(limit=2)
    queue.put(rows(1, 2, 3))
    assert queue.ended
    assert queue.take(10, 0) == rows(1, 2)
    assert queue.take(10, 0) is None


def test_no_rows_at_all_with_limit_0() -> None:
    queue = RowQueue(limit=0)
    assert queue.ended
    assert queue.take(1, 0) is None


def test_a_failure_is_told_after_the_rows_before_it() -> None:
    queue = RowQueue()
    queue.put(rows(1))
    queue.end(ValueError("broken"))
    assert queue.take(10, 0) == rows(1)
    with pytest.raises(ValueError, match="broken"):
        queue.take(10, 0)


def test_a_reader_that_waits_is_woken() -> None:
    queue = RowQueue()
    threading.Timer(0.05, queue.put, [rows(1)]).start()
    assert queue.take(10, 10) == rows(1)


def test_a_slow_reader_holds_the_writer_back_and_a_gone_one_frees_it() -> None:
    queue = RowQueue()
    queue.put(rows(*range(ROWS_MAX)))
    assert queue.full
    assert not queue.wait_for_room(0.01)
    queue.take(1, 0)
    assert queue.wait_for_room(0.01)
    queue.put(rows(1))
    queue.close()
    assert queue.wait_for_room(0.01)
    queue.put(rows(1))
    assert queue.take(1, 0) is None


def test_iterated_rows_are_read_as_they_are_asked_for() -> None:
    read = []
    result = IteratedRows((read.append(number) or Row([number]) for number in range(5)), limit=3)  # type: ignore[func-returns-value]
    assert result.take(2, 0) == rows(0, 1)
    assert read == [0, 1]
    assert result.take(2, 0) == rows(2)
    assert result.take(2, 0) is None
