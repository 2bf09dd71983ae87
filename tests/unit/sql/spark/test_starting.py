"""How many queries start at once: fewer on a machine that is too busy, more when it is not."""

from __future__ import annotations

import threading
from contextlib import ExitStack

import pytest

from penstock.sql.spark.running.starting import StartBrokenOffError, Turns

WAIT_S = 20.0


def never() -> bool:
    return False


def taken(turns: Turns) -> threading.Event:
    """Set once another has its turn, which it gives back at once."""
    done = threading.Event()

    def take() -> None:
        with turns.turn(never):
            done.set()

    threading.Thread(target=take, daemon=True).start()
    return done


def test_no_more_than_the_limit_start_at_once() -> None:
    turns = Turns(2)
    turns.was_quick()
    with turns.turn(never):
        with turns.turn(never):
            third = taken(turns)
            assert not third.wait(0.05)
        assert third.wait(WAIT_S)


def test_after_one_that_was_too_slow_they_start_one_by_one_until_they_are_quick() -> None:
    turns = Turns(3)
    turns.was_quick()
    with ExitStack() as stack:
        stack.enter_context(turns.turn(never))
        turns.was_too_slow()
        second = taken(turns)
        assert not second.wait(0.05)
        turns.was_quick()
        assert second.wait(WAIT_S)
    for _ in range(5):
        turns.was_quick()
    assert turns.limit == 3


def test_who_is_broken_off_waits_for_no_turn() -> None:
    turns = Turns(1)
    with turns.turn(never), pytest.raises(StartBrokenOffError), turns.turn(lambda: True):
        raise AssertionError("it had its turn")
