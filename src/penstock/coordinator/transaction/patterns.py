"""Patterns for transactional ids, matched in time that grows with the length of the id and of nothing else.

Kafka reads them with RE2, where no pattern can keep the broker busy for minutes; Python's own matcher has no such
bound, so only its parser is used here, and the pattern becomes an automaton whose states are followed side by side.
What such an automaton cannot do (references back, looking around) is refused, as RE2 refuses it.
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]  # the parser that `re` itself uses
import re._parser as sre_parser  # type: ignore[import-not-found]
import warnings
from collections.abc import Callable, Iterable
from typing import Any, Final

PATTERN_LENGTH_MAX: Final = 1_000
STATES_MAX: Final = 10_000

Matches = Callable[[str], bool]
_Accepts = Callable[[str], bool]


class PatternError(Exception):
    """Not a pattern, or one that cannot be had."""


def compile_pattern(pattern: str) -> Matches:
    """A function that says whether a whole text is what the pattern describes."""
    if len(pattern) > PATTERN_LENGTH_MAX:
        raise PatternError(f"the pattern is longer than {PATTERN_LENGTH_MAX} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            parsed = sre_parser.parse(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(str(error)) from error
    if parsed.state.flags & ~re.UNICODE:
        raise PatternError("flags inside a pattern are not supported")
    automaton = _Automaton()
    automaton.end = automaton.add_sequence(0, parsed)
    return automaton.matches


class _Automaton:
    """State 0 is the first. `steps`: on a character that is accepted, to a state; `free`: to states at no cost."""

    def __init__(self) -> None:
        self._steps: list[list[tuple[_Accepts, int]]] = [[]]
        self._free: list[list[tuple[str | None, int]]] = [[]]
        self._sequences = 0
        self.end = 0

    # -- Matching ------------------------------------------------------------------------------------------------------

    def matches(self, text: str) -> bool:
        current = self._closure({0}, is_first=True, is_last=not text)
        for index, character in enumerate(text):
            reached = {target for state in current for accepts, target in self._steps[state] if accepts(character)}
            if not reached:
                return False
            current = self._closure(reached, is_first=False, is_last=index == len(text) - 1)
        return self.end in current

    def _closure(self, states: set[int], *, is_first: bool, is_last: bool) -> set[int]:
        found, open_states = set(states), list(states)
        while open_states:
            for place, target in self._free[open_states.pop()]:
                allowed = place is None or (is_first if place == "first" else is_last)
                if allowed and target not in found:
                    found.add(target)
                    open_states.append(target)
        return found

    # -- Building ------------------------------------------------------------------------------------------------------

    def _new_state(self) -> int:
        if len(self._steps) >= STATES_MAX:
            raise PatternError("the pattern is too large")
        self._steps.append([])
        self._free.append([])
        return len(self._steps) - 1

    def add_sequence(self, state: int, items: Iterable[tuple[Any, Any]]) -> int:
        # Counted too: a repetition of nothing has no states, and may be nested.
        self._sequences += 1
        if self._sequences > STATES_MAX:
            raise PatternError("the pattern is too large")
        for kind, argument in items:
            state = self._add(state, kind, argument)
        return state

    def _add(self, state: int, kind: Any, argument: Any) -> int:
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            return self._add_repeat(state, *argument)
        if kind is sre.BRANCH:
            end = self._new_state()
            for branch in argument[1]:
                start = self._new_state()
                self._free[state].append((None, start))
                self._free[self.add_sequence(start, branch)].append((None, end))
            return end
        if kind is sre.SUBPATTERN:
            _, added_flags, removed_flags, items = argument
            if added_flags or removed_flags:
                raise PatternError("flags inside a pattern are not supported")
            return self.add_sequence(state, items)
        end = self._new_state()
        if kind is sre.AT:
            self._free[state].append((_place(argument), end))
        else:
            self._steps[state].append((_accepts(kind, argument), end))
        return end

    def _add_repeat(self, state: int, least: int, most: Any, items: Any) -> int:
        for _ in range(least):
            state = self.add_sequence(state, items)
        end = self._new_state()
        if most is sre.MAXREPEAT:
            start = self._new_state()
            self._free[state].append((None, start))
            self._free[start].append((None, end))
            self._free[self.add_sequence(start, items)].append((None, start))
            return end
        for _ in range(most - least):
            self._free[state].append((None, end))
            state = self.add_sequence(state, items)
        self._free[state].append((None, end))
        return end


def _place(argument: Any) -> str:
    if argument in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return "first"
    if argument in (sre.AT_END, sre.AT_END_STRING):
        return "last"
    raise PatternError("word boundaries are not supported")


def _accepts(kind: Any, argument: Any) -> _Accepts:
    if kind is sre.LITERAL:
        return chr(argument).__eq__
    if kind is sre.NOT_LITERAL:
        return chr(argument).__ne__
    if kind is sre.ANY:
        return "\n".__ne__
    if kind is sre.IN:
        return _accepts_one_of(argument)
    raise PatternError(f"{str(kind).lower().replace('_', ' ')} is not supported")


def _accepts_one_of(items: list[tuple[Any, Any]]) -> _Accepts:
    negated = bool(items) and items[0][0] is sre.NEGATE
    tests = [_member(kind, argument) for kind, argument in items[negated:]]
    return lambda character: any(test(character) for test in tests) is not negated


def _member(kind: Any, argument: Any) -> _Accepts:
    if kind is sre.RANGE:
        low, high = chr(argument[0]), chr(argument[1])
        return lambda character: low <= character <= high
    if kind is sre.CATEGORY:
        found = _CATEGORIES.get(argument)
        if found is None:
            raise PatternError("this class of characters is not supported")
        return lambda character: re.fullmatch(found, character, re.ASCII) is not None
    return _accepts(kind, argument)


_CATEGORIES: Final = {
    sre.CATEGORY_DIGIT: r"\d",
    sre.CATEGORY_NOT_DIGIT: r"\D",
    sre.CATEGORY_WORD: r"\w",
    sre.CATEGORY_NOT_WORD: r"\W",
    sre.CATEGORY_SPACE: r"\s",
    sre.CATEGORY_NOT_SPACE: r"\S",
}
