"""Rules that a parsed value must obey. Each says why a value breaks it, and in words what it allows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.base.config.text import format_double


class BadValueError(ValueError):
    """A text that is no value of its key. `reason` names neither the key nor the value.

    `value` is the part at fault, when that is not the whole text.
    """

    def __init__(self, reason: str, value: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.value = value


class Rule(Protocol):
    @property
    def words(self) -> str:
        """What is allowed, for people."""

    def check(self, value: Any) -> None:
        """Raise BadValueError when the value is not allowed."""


@dataclass(frozen=True, slots=True)
class Range:
    at_least: float | None
    at_most: float | None = None

    def check(self, value: Any) -> None:
        if self.at_least is not None and not value >= self.at_least:
            raise BadValueError(f"Value must be at least {self.at_least}")
        if self.at_most is not None and not value <= self.at_most:
            raise BadValueError(f"Value must be no more than {self.at_most}")

    @property
    def words(self) -> str:
        low = None if self.at_least is None else _number(self.at_least)
        high = None if self.at_most is None else _number(self.at_most)
        if low is not None and high is not None:
            return f"{low} to {high}"
        return f"at least {low}" if high is None else f"at most {high}"


@dataclass(frozen=True, slots=True)
class RangeOr:
    """A range, or one value outside it."""

    at_least: int
    at_most: int
    other: int

    def check(self, value: Any) -> None:
        if value != self.other and not self.at_least <= value <= self.at_most:
            raise BadValueError(f"Value must be between {self.at_least} and {self.at_most} or equal to {self.other}")

    @property
    def words(self) -> str:
        return f"{self.at_least} to {self.at_most}, or {self.other}"


class OneOf:
    """One of a few words."""

    __slots__ = ("_any_case", "choices")

    def __init__(self, *choices: str, any_case: bool = False) -> None:
        self.choices = choices
        self._any_case = any_case

    def check(self, value: Any) -> None:
        known = value.lower() in map(str.lower, self.choices) if self._any_case else value in self.choices
        if not known:
            raise BadValueError(f"String must be one of: {', '.join(self.choices)}")

    @property
    def words(self) -> str:
        return _joined(self.choices)


class EachOf:
    """A list whose every word is one of a few."""

    __slots__ = ("choices",)

    def __init__(self, *choices: str) -> None:
        self.choices = choices

    def check(self, value: Any) -> None:
        for word in value:
            if word not in self.choices:
                raise BadValueError(f"String must be one of: {', '.join(self.choices)}", word)

    @property
    def words(self) -> str:
        return f"each {_joined(self.choices)}"


class NonEmpty:
    """A text or list with something in it."""

    __slots__ = ()
    words = "not empty"

    def check(self, value: Any) -> None:
        if not value:
            raise BadValueError("must not be empty")


class ThrottledReplicas:
    """`partition:broker` pairs, or a single `*` for all of them."""

    __slots__ = ()
    words = "`*` or pairs `partition:broker`"
    _PAIR = re.compile(r"[0-9]+:[0-9]+")

    def check(self, value: Any) -> None:
        if value != ("*",) and not all(self._PAIR.fullmatch(pair) for pair in value):
            raise BadValueError("must be the literal '*' or replicas as [partitionId]:[brokerId],...")


def _joined(choices: Sequence[str]) -> str:
    return f"one of {', '.join(choices)}"


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else format_double(value)
